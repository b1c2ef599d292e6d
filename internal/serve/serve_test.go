package serve

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// patience is how long something is waited for that must come.
const patience = 60 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// started is a server that answers until the test ends.
func started(t *testing.T, opt Options, h http.Handler, set func(*Server)) *Server {
	t.Helper()
	if opt.Listen == "" {
		opt.Listen = "127.0.0.1:0"
	}
	s, err := Listen(opt, h)
	check(t, err)
	if set != nil {
		set(s)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		check(t, <-ended)
	})
	return s
}

// hostile is a name that a directory of somebody's may have.
const hostile = "\"'><script>alert(1)</script></style>]]>\u202e../../etc&id=x#y"

// shelved is a shelf of runs, and how often a page of it was made.
func shelved() (Shelf, *atomic.Int32) {
	var made atomic.Int32
	list := []Entry{
		{ID: "b/2", What: hostile, Answer: hostile, Says: hostile, Whole: true},
		{ID: hostile, Whole: true},
		{ID: "open"},
	}
	return Shelf{
		Name: hostile,
		List: func() ([]Entry, error) { return list, nil },
		Report: func(out io.Writer, id string) error {
			made.Add(1)
			_, err := fmt.Fprintf(out, "report of %s", id)
			return err
		},
		Compare: func(out io.Writer, a, b string) error {
			_, err := fmt.Fprintf(out, "%s beside %s", a, b)
			return err
		},
	}, &made
}

// asked is a request as a client of any kind may make it.
type asked struct {
	method, path, host string
	header             http.Header
	outside            bool // the path is not in the pages' folder
}

func (a asked) of(t *testing.T, s *Server, client *http.Client) (int, http.Header, string) {
	t.Helper()
	u, err := url.Parse(s.URL())
	check(t, err)
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	method := a.method
	if method == "" {
		method = http.MethodGet
	}
	if !a.outside {
		a.path = strings.TrimSuffix(u.Path, "/") + a.path
	}
	r, err := http.NewRequestWithContext(ctx, method, u.Scheme+"://"+u.Host+a.path, nil)
	check(t, err)
	r.Host = a.host
	for name, values := range a.header {
		r.Header[name] = values
	}
	got, err := client.Do(r)
	check(t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	check(t, err)
	return got.StatusCode, got.Header, string(body)
}

// entered is the header of who brought the token.
func entered(s *Server) http.Header {
	return http.Header{"Cookie": {s.guard.cookie() + "=" + s.guard.token}}
}

func with(h http.Header, pairs ...string) http.Header {
	h = h.Clone()
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestWhoHasNotTheTokenSeesNothing(t *testing.T) {
	shelf, made := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	for _, a := range []asked{
		{path: "/"}, {path: "/run?id=b/2"}, {path: "/style.css"}, {path: "/nowhere"},
		{path: "/?token="}, {path: "/?token=" + s.guard.token[1:]}, {path: "/run?id=b/2&token=x"},
		{path: "/", header: http.Header{"Cookie": {s.guard.cookie() + "=x"}}},
		{path: "/", header: http.Header{"Cookie": {"plimsoll_1=" + s.guard.token}}},
		{path: "/", header: http.Header{"Authorization": {"Bearer " + s.guard.token}}},
		{path: "/", outside: true}, {path: "/", outside: true, header: entered(s)}, {path: "/run?id=b/2", outside: true, header: entered(s)},
		{path: "/?token=" + s.guard.token, outside: true}, {path: "/" + s.guard.place, outside: true, header: entered(s)},
	} {
		code, _, body := a.of(t, s, http.DefaultClient)
		if code != http.StatusForbidden || strings.Contains(body, "b/2") || strings.Contains(body, s.guard.token) {
			t.Errorf("%+v: %d %s", a, code, body)
		}
	}
	if made.Load() != 0 {
		t.Error("a report was made for nobody")
	}
}

func TestTheTokenIsTakenOnceAndBecomesACookie(t *testing.T) {
	shelf, _ := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	code, h, body := asked{path: "/?token=" + s.guard.token}.of(t, s, http.DefaultClient)
	cookie := h.Get("Set-Cookie")
	if code != http.StatusOK || !strings.Contains(cookie, "; HttpOnly") || !strings.Contains(cookie, "; SameSite=Strict") || strings.Contains(cookie, "Domain") || !strings.Contains(cookie, "; Path=/"+s.guard.place+"/;") {
		t.Errorf("%d, cookie %q", code, cookie)
	}
	if strings.Contains(body, s.guard.token) {
		t.Error("the page itself has the token")
	}
	code, h, body = asked{path: "/", header: entered(s)}.of(t, s, http.DefaultClient)
	if code != http.StatusOK || !strings.Contains(body, "b/2") {
		t.Errorf("%d %s", code, body)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if h.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, h.Get(name), want)
		}
	}
	if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("policy %q", csp)
	}
}

// Another site's name for this address (DNS rebinding), another site's script, and whatever would change something.
func TestOtherSitesAreRefused(t *testing.T) {
	shelf, made := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	in := entered(s)
	own := s.guard.host()
	_, port, err := net.SplitHostPort(own)
	check(t, err)
	for _, c := range []struct {
		asked
		want int
	}{
		{asked{host: "evil.example:" + port}, http.StatusMisdirectedRequest},
		{asked{host: "evil.example"}, http.StatusMisdirectedRequest},
		{asked{host: "127.0.0.1.evil.example:" + port}, http.StatusMisdirectedRequest},
		{asked{host: "10.0.0.1:" + port}, http.StatusMisdirectedRequest},
		{asked{host: "127.0.0.1:1"}, http.StatusMisdirectedRequest},
		{asked{host: "127.0.0.1"}, http.StatusMisdirectedRequest},
		{asked{host: "localhost:" + port}, http.StatusOK},
		{asked{host: "[::1]:" + port}, http.StatusOK},
		{asked{header: with(in, "Origin", "http://evil.example")}, http.StatusForbidden},
		{asked{header: with(in, "Origin", "null")}, http.StatusForbidden},
		{asked{header: with(in, "Origin", "https://"+own)}, http.StatusForbidden},
		{asked{header: with(in, "Origin", "http://"+own)}, http.StatusOK},
		{asked{header: with(in, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script")}, http.StatusForbidden},
		{asked{header: with(in, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty")}, http.StatusForbidden},
		{asked{header: with(in, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe")}, http.StatusForbidden},
		{asked{header: with(in, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")}, http.StatusOK},
		{asked{header: with(in, "Sec-Fetch-Site", "none")}, http.StatusOK},
		{asked{method: "POST"}, http.StatusMethodNotAllowed},
		{asked{method: "DELETE"}, http.StatusMethodNotAllowed},
		{asked{method: "OPTIONS"}, http.StatusMethodNotAllowed},
		{asked{method: "HEAD"}, http.StatusOK},
	} {
		c.path = "/"
		if c.header == nil {
			c.header = in
		}
		if code, _, _ := c.of(t, s, http.DefaultClient); code != c.want {
			t.Errorf("%s host %q %v: %d, want %d", c.method, c.host, c.header, code, c.want)
		}
	}
	if made.Load() != 0 {
		t.Error("a report was made")
	}
}

func TestOnlyWhatIsListedIsOpened(t *testing.T) {
	shelf, made := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	get := func(path string) (int, string) {
		code, _, body := asked{path: path, header: entered(s)}.of(t, s, http.DefaultClient)
		return code, body
	}
	for _, id := range []string{"", ".", "..", "b", "b/2/", "b/../b/2", "../../../etc/passwd", "/etc/passwd", "b%2f2%00", "B/2"} {
		if code, _ := get("/run?id=" + id); code != http.StatusNotFound {
			t.Errorf("%q: %d", id, code)
		}
		if code, _ := get("/compare?a=b/2&b=" + id); code != http.StatusNotFound {
			t.Errorf("beside %q: %d", id, code)
		}
	}
	for _, path := range []string{"/../../etc/passwd", "/run/../../etc/passwd", "//etc/passwd", "/.git/config"} {
		if code, _ := get(path); code == http.StatusOK {
			t.Errorf("%s was answered", path)
		}
	}
	if made.Load() != 0 {
		t.Fatal("a report was made of what is not listed")
	}
	for i, c := range []struct{ path, want string }{
		{"/run?id=b/2", "report of b/2"}, {"/run?id=b/2", "report of b/2"},
		{"/run?id=open", "report of open"}, {"/run?id=open", "report of open"},
		{"/run?id=" + url.QueryEscape(Entry{ID: hostile}.Key()), "report of " + hostile},
		{"/compare?a=b/2&b=open", "b/2 beside open"},
	} {
		if code, body := get(c.path); code != http.StatusOK || body != c.want {
			t.Errorf("%d: %d %q, want %q", i, code, body, c.want)
		}
	}
	if n := made.Load(); n != 4 {
		t.Errorf("%d reports were made, want 4: that of a run that is whole is kept", n)
	}
}

// What a name from outside says becomes text, and its link leads to that run.
func TestNamesFromOutsideAreText(t *testing.T) {
	shelf, _ := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	_, _, body := asked{path: "/", header: entered(s)}.of(t, s, http.DefaultClient)
	doc, err := html.Parse(strings.NewReader(body))
	check(t, err)
	links := map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && strings.Contains(n.Data, "\u202e") {
			t.Errorf("%q turns the direction", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" {
			t.Error("a script came in")
		}
		for _, a := range n.Attr {
			if n.Data == "a" && a.Key == "href" {
				u, err := url.Parse(a.Val)
				check(t, err)
				links[u.Query().Get("id")] = u.Path == "run" && u.Host == ""
			}
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has %s", n.Data, a.Key)
			}
		}
	}
	for _, id := range []string{"b/2", hostile, "open"} {
		if !links[Entry{ID: id}.Key()] {
			t.Errorf("no link to %q", id)
		}
	}
}

// A directory may be called anything. The page of all of them is text without what steers a terminal or an editor, and what a
// browser sends for one of them is that one.
func TestADirectoryMayBeCalledAnything(t *testing.T) {
	ids := []string{"\xff\xe2\x80\xae", "\x1b[2J\x07", "two\nlines\r", "\u202eright", "\ufffd", "100%", "%ff", "a b/\u00fc+&;\"'<", "\U000e0061"}
	shelf, _ := shelved()
	shelf.List = func() (list []Entry, _ error) {
		for _, id := range ids {
			list = append(list, Entry{ID: id})
		}
		return list, nil
	}
	s := started(t, Options{}, shelf.Handler(), nil)
	get := func(path string) (int, string) {
		code, _, body := asked{path: path, header: entered(s)}.of(t, s, http.DefaultClient)
		return code, body
	}
	_, body := get("/")
	if at := strings.IndexFunc(body, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }); at >= 0 || !utf8.ValidString(body) {
		t.Errorf("the page has %q", body[max(at-20, 0):])
	}
	doc, err := html.Parse(strings.NewReader(body))
	check(t, err)
	var values, links []string
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch {
			case n.Data == "input" && a.Key == "value":
				values = append(values, a.Val)
			case n.Data == "a" && a.Key == "href":
				links = append(links, a.Val)
			}
		}
	}
	if len(values) != 2*len(ids) || len(links) != len(ids) {
		t.Fatalf("%d values and %d links for %d runs", len(values), len(links), len(ids))
	}
	for i, id := range ids {
		if _, got := get("/" + links[i]); got != "report of "+id {
			t.Errorf("the link %s leads to %q, want the report of %q", links[i], got, id)
		}
		a, b := url.QueryEscape(values[2*i]), url.QueryEscape(values[2*i+1])
		if _, got := get("/compare?a=" + a + "&b=" + b); got != id+" beside "+id {
			t.Errorf("%s compares %q, want %q twice", a, got, id)
		}
	}
}

func TestAFaultIsSaid(t *testing.T) {
	shelf, _ := shelved()
	shelf.Report = func(io.Writer, string) error { return errors.New("the block is <cut short>") }
	s := started(t, Options{}, shelf.Handler(), nil)
	code, _, body := asked{path: "/run?id=b/2", header: entered(s)}.of(t, s, http.DefaultClient)
	if code != http.StatusInternalServerError || !strings.Contains(body, "&lt;cut short&gt;") {
		t.Errorf("%d %s", code, body)
	}
}

func TestKeptPagesAreBounded(t *testing.T) {
	h := &shelf{}
	for i := range 5 {
		h.keep(fmt.Sprint(i), make([]byte, keptPages/2-1))
	}
	if len(h.kept) != 2 || h.take("4") == nil || h.take("3") == nil || h.take("0") != nil {
		t.Errorf("%d pages are kept", len(h.kept))
	}
	b := bounded{most: 3}
	if _, err := b.Write([]byte("abcd")); err == nil {
		t.Error("a page without end was taken")
	}
}

// Connections that say nothing, or never come to an end, hold nobody else up.
func TestSlowClientsAreDropped(t *testing.T) {
	shelf, _ := shelved()
	s := started(t, Options{}, shelf.Handler(), func(s *Server) {
		s.http.ReadHeaderTimeout, s.http.ReadTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	at := s.guard.host()
	var slow []net.Conn
	for i := range 2 * maxConnections {
		c, err := net.Dial("tcp", at)
		check(t, err)
		defer c.Close()
		if i%2 == 0 {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nX-Slow: ", at)
		}
		slow = append(slow, c)
	}
	if err := answered(s); err != nil {
		t.Errorf("behind slow clients: %v", err)
	}
	check(t, slow[0].SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.Copy(io.Discard, slow[0]); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that never ends its request is still there")
	}
}

// answered asks until there is an answer: on a busy machine this test itself may be as
// slow as the clients that are dropped.
func answered(s *Server) error {
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		r, err := http.NewRequest(http.MethodGet, "http://"+s.guard.host()+s.guard.path(), nil)
		if err != nil {
			return err
		}
		r.Header, r.Close = entered(s), true
		got, err := http.DefaultClient.Do(r)
		if err == nil {
			got.Body.Close()
			if got.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(got.Status)
		}
		last = err
	}
	return last
}

func TestALongHeaderIsRefused(t *testing.T) {
	shelf, _ := shelved()
	s := started(t, Options{}, shelf.Handler(), nil)
	c, err := net.Dial("tcp", s.guard.host())
	check(t, err)
	defer c.Close()
	check(t, c.SetDeadline(time.Now().Add(patience)))
	go func() {
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 4*maxHeader))
	}() // it is cut off in the midst
	got, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && got.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered with %d", got.StatusCode)
	}
}

func TestOthersThanThisMachineNeedTLS(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.org:0"} {
		if s, err := Listen(Options{Listen: at}, nil); err == nil {
			s.listener.Close()
			t.Errorf("%s was taken without TLS", at)
		} else if !strings.Contains(err.Error(), "--insecure") {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, bad := range []Options{{Listen: "127.0.0.1"}, {Listen: "127.0.0.1:0", Cert: "x"}, {Listen: "127.0.0.1:0", Key: "x"}, {Listen: "127.0.0.1:0", Cert: "/dev/null", Key: "/dev/null"}} {
		if s, err := Listen(bad, nil); err == nil {
			s.listener.Close()
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestOverTLS(t *testing.T) {
	opt, pool := selfSigned(t, "plimsoll.test")
	shelf, _ := shelved()
	s := started(t, opt, shelf.Handler(), nil)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	_, h, _ := asked{path: "/?token=" + s.guard.token}.of(t, s, client)
	if cookie := h.Get("Set-Cookie"); !strings.Contains(cookie, "; Secure") {
		t.Errorf("cookie %q", cookie)
	}
	_, port, err := net.SplitHostPort(s.guard.host())
	check(t, err)
	for host, want := range map[string]int{"plimsoll.test:" + port: http.StatusOK, "evil.example:" + port: http.StatusMisdirectedRequest} {
		if code, _, _ := (asked{path: "/", host: host, header: entered(s)}).of(t, s, client); code != want {
			t.Errorf("%s: %d, want %d", host, code, want)
		}
	}
}

// selfSigned makes a certificate for a name and for this machine.
func selfSigned(t *testing.T, name string) (Options, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	dir := t.TempDir()
	opt := Options{Listen: "127.0.0.1:0", Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	check(t, os.WriteFile(opt.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check(t, os.WriteFile(opt.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	leaf, err := x509.ParseCertificate(der)
	check(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return opt, pool
}
