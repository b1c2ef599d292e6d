package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Entry is a run as it is listed.
type Entry struct {
	ID      string // its name to Shelf, of any bytes
	Started time.Time
	What    string // the URL or the command
	Answer  string
	Says    string // the verdict's sentence
	Took    string
	// Whole: it was closed, and will not change any more.
	Whole bool
}

// Key is the ID as it stands in pages and comes back from them. A page cannot hold every name, and what a browser
// makes of those that it cannot is another's: so what does not print is written as %xx, byte for byte, and % too.
func (e Entry) Key() string {
	var b strings.Builder
	for rest := e.ID; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if unicode.IsPrint(r) && r != utf8.RuneError && r != '%' { // RuneError may be a byte that is no UTF-8
			b.WriteRune(r)
		} else {
			for _, c := range []byte(rest[:size]) {
				fmt.Fprintf(&b, "%%%02x", c)
			}
		}
		rest = rest[size:]
	}
	return b.String()
}

// Shelf is a directory of runs. Its functions may be called at the same time.
type Shelf struct {
	Name string
	// List lists the runs, the newest first.
	List func() ([]Entry, error)
	// Report writes the page of a run, and Compare that of two. IDs are those of List.
	Report  func(out io.Writer, id string) error
	Compare func(out io.Writer, a, b string) error
}

const (
	// mostListed is how many runs the page lists.
	mostListed = 500
	// keptPages is how many bytes of pages are held, so that going back to one is quick.
	keptPages = 64 << 20
	// maxPage is the most of one page, in bytes.
	maxPage = 256 << 20
)

// shelf answers for a Shelf.
type shelf struct {
	Shelf
	making chan struct{} // one page is made at a time: it takes all of a CPU
	mu     sync.Mutex
	kept   []kept // the one that was asked for last stands last
}

type kept struct {
	key string
	doc []byte
}

// Handler shows the runs of a shelf.
func (s Shelf) Handler() http.Handler {
	h := &shelf{Shelf: s, making: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	assets(mux)
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /run", h.run)
	mux.HandleFunc("GET /compare", h.compare)
	mux.HandleFunc("/", nothingHere)
	return mux
}

// listing is what the page of a shelf shows.
type listing struct {
	Name string
	Runs []Entry
	Left int
}

func (h *shelf) list(w http.ResponseWriter, _ *http.Request) {
	runs, err := h.List()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	page(w, http.StatusOK, "shelf", listing{h.Name, runs[:min(len(runs), mostListed)], max(len(runs)-mostListed, 0)})
}

func (h *shelf) run(w http.ResponseWriter, r *http.Request) {
	e, ok := h.find(w, r.URL.Query().Get("id"))
	if !ok {
		return
	}
	h.send(w, r, e.Whole, fmt.Sprintf("%q %d", e.ID, e.Started.UnixMilli()), func(out io.Writer) error { return h.Report(out, e.ID) })
}

func (h *shelf) compare(w http.ResponseWriter, r *http.Request) {
	a, ok := h.find(w, r.URL.Query().Get("a"))
	if !ok {
		return
	}
	b, ok := h.find(w, r.URL.Query().Get("b"))
	if !ok {
		return
	}
	key := fmt.Sprintf("%q %d %q %d", a.ID, a.Started.UnixMilli(), b.ID, b.Started.UnixMilli())
	h.send(w, r, a.Whole && b.Whole, key, func(out io.Writer) error { return h.Compare(out, a.ID, b.ID) })
}

// find looks a run up in the list by its key: what is not in it, such as a path, is no run.
func (h *shelf) find(w http.ResponseWriter, key string) (Entry, bool) {
	runs, err := h.List()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return Entry{}, false
	}
	i := slices.IndexFunc(runs, func(e Entry) bool { return e.Key() == key })
	if i < 0 {
		refuse(w, http.StatusNotFound, fmt.Sprintf("No run %q is here; choose it from the list.", key))
		return Entry{}, false
	}
	return runs[i], true
}

// send sends a page that is kept, or makes it.
func (h *shelf) send(w http.ResponseWriter, r *http.Request, keep bool, key string, write func(io.Writer) error) {
	doc, err := h.made(r.Context(), keep, key, write)
	switch {
	case r.Context().Err() != nil:
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error())
	default:
		report(w, doc)
	}
}

func (h *shelf) made(ctx context.Context, keep bool, key string, write func(io.Writer) error) ([]byte, error) {
	select {
	case h.making <- struct{}{}:
		defer func() { <-h.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if doc := h.take(key); doc != nil {
		return doc, nil
	}
	out := bounded{most: maxPage}
	if err := write(&out); err != nil {
		return nil, err
	}
	if keep {
		h.keep(key, out.Bytes())
	}
	return out.Bytes(), nil
}

// take returns a kept page, nil for none.
func (h *shelf) take(key string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.kept, func(k kept) bool { return k.key == key })
	if i < 0 {
		return nil
	}
	k := h.kept[i]
	h.kept = append(slices.Delete(h.kept, i, i+1), k)
	return k.doc
}

// keep keeps a page; those that nobody asked for the longest make room.
func (h *shelf) keep(key string, doc []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, kept{key, doc})
	sum := 0
	for i, k := range slices.Backward(h.kept) {
		if sum += len(k.doc); sum > keptPages {
			h.kept = slices.Delete(h.kept, 0, i+1)
			return
		}
	}
}

// bounded is a page in the making.
type bounded struct {
	bytes.Buffer
	most int
}

// Write refuses what makes the page too large.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errors.New("the page would be too large for a browser; plimsoll show prints the verdict")
	}
	return b.Buffer.Write(p)
}
