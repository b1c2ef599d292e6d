package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// tokenName is the parameter that brings the token.
const tokenName = "token"

// guard lets pass who came by the address that was printed, and asks for nothing but
// to read. It answers all others itself.
type guard struct {
	name  string // the host that it listens on, as it was given
	port  int
	token string
	// place is the folder in which all pages are. Cookies know no ports: a browser shows them
	// to whatever else listens at this host, another user's server too, but for what lies in
	// another folder, and this one's name nobody else knows.
	place string
	leaf  *x509.Certificate // nil without TLS
	next  http.Handler
}

// host is by what the printed address names the server: 0.0.0.0 and :: are no names.
func (g *guard) host() string {
	name := g.name
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "localhost"
	}
	return net.JoinHostPort(name, strconv.Itoa(g.port))
}

// cookie is the name under which a browser keeps the token. Cookies know no ports, so
// that two servers need two names.
func (g *guard) cookie() string { return "plimsoll_" + strconv.Itoa(g.port) }

// path is where pages are.
func (g *guard) path() string { return "/" + g.place + "/" }

const fullAddress = "Open the address that Plimsoll printed, with its token; each start has a new one."

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy":      pagePolicy,
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	} {
		h.Set(name, value)
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "Nothing can be changed here: changes are made in the terminal.")
	case !g.known(r.Host):
		refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("%q is no name of this server.", r.Host))
	case !g.sameOrigin(r):
		refuse(w, http.StatusForbidden, "Another site asked for this, and only this one may.")
	case !strings.HasPrefix(r.URL.Path, g.path()):
		refuse(w, http.StatusForbidden, fullAddress)
	case r.URL.Query().Has(tokenName):
		g.enter(w, r)
	case !g.hasCookie(r):
		refuse(w, http.StatusForbidden, fullAddress)
	default:
		http.StripPrefix(strings.TrimSuffix(g.path(), "/"), g.next).ServeHTTP(w, r)
	}
}

// known says whether a Host header names this server: an address, which no other
// site's name can be made to stand for, localhost, the name that it listens on, or one of
// its certificate.
func (g *guard) known(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // the scheme's own port is left out
		name, port = strings.Trim(host, "[]"), "80"
		if g.leaf != nil {
			port = "443"
		}
	}
	if port != strconv.Itoa(g.port) {
		return false
	}
	if ip := net.ParseIP(name); ip != nil {
		return ip.IsLoopback() || !Loopback(g.name)
	}
	return strings.EqualFold(name, "localhost") || strings.EqualFold(name, g.name) || g.leaf != nil && g.leaf.VerifyHostname(name) == nil
}

// sameOrigin says whether no other site asks. To follow a link from elsewhere is fine:
// what is shown then is the user's.
func (g *guard) sameOrigin(r *http.Request) bool {
	scheme := "http://"
	if g.leaf != nil {
		scheme = "https://"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (g *guard) right(token string) bool {
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (g *guard) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(g.cookie())
	return err == nil && g.right(c.Value)
}

// enter takes the token, and gives a cookie for it. The page that follows is asked for by
// this one, and not by a redirect: a browser that came from another site would not send the cookie then.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if !g.right(r.URL.Query().Get(tokenName)) {
		refuse(w, http.StatusForbidden, "This token is not right; each start of Plimsoll has a new one.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.token, Path: g.path(), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.leaf != nil})
	page(w, http.StatusOK, "entrance", nil)
}
