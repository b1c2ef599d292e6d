package serve

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/page/style"
)

// Policies of what a page may load. Our own pages have one file of styles and one
// script. A report brings a stricter one of its own; here stands what it cannot say itself.
const (
	pagePolicy   = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	reportPolicy = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

//go:embed pages.html
var pagesHTML string

//go:embed style.css
var styleCSS string

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("pages").Funcs(template.FuncMap{
		"line": layout.Line,
		"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	}).Parse(pagesHTML))
})

// page sends one of our own pages.
func page(w http.ResponseWriter, code int, name string, data any) {
	var doc bytes.Buffer
	if err := pages().ExecuteTemplate(&doc, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(doc.Bytes()) // who went away sees nothing
}

// report sends a report, which is one file.
func report(w http.ResponseWriter, doc []byte) {
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(doc) // who went away sees nothing
}

// refuse says why there is no page.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Connection", "close") // who is not to be here holds no connection
	page(w, code, "refusal", why)
}

func nothingHere(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotFound, "Nothing is here.")
}

// assets are what our own pages load.
func assets(mux *http.ServeMux) {
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = io.WriteString(w, style.Base+styleCSS)
	})
}
