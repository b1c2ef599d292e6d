package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// viewer looks on until the run is over, or the test is.
type viewer struct {
	lines *bufio.Scanner
	seen  map[string]string
	code  int
	close func() error
}

func looksOn(t *testing.T, s *Server) *viewer {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	t.Cleanup(done)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.guard.host()+s.guard.path()+"events", nil)
	check(t, err)
	r.Header = entered(s)
	got, err := http.DefaultClient.Do(r)
	check(t, err)
	t.Cleanup(func() { got.Body.Close() })
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 1<<20)
	return &viewer{lines: lines, seen: map[string]string{}, code: got.StatusCode, close: got.Body.Close}
}

// next takes what is sent next, and says whether the run goes on.
func (v *viewer) next(t *testing.T) bool {
	t.Helper()
	event := ""
	for v.lines.Scan() {
		line := v.lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if event == "over" {
			return false
		}
		var parts []Part
		check(t, json.Unmarshal([]byte(data), &parts))
		for _, p := range parts {
			v.seen[p.ID] = p.HTML
		}
		return true
	}
	t.Fatalf("the connection ended: %v", v.lines.Err())
	return false
}

func (v *viewer) until(t *testing.T, id, want string) {
	t.Helper()
	for v.seen[id] != want {
		if !v.next(t) {
			t.Fatalf("%s is %q at the end, want %q", id, v.seen[id], want)
		}
	}
}

func TestViewersSeeWhatIs(t *testing.T) {
	l := NewLive("a", "b")
	s := started(t, Options{}, l.Handler(), nil)
	l.Show(Part{"a", "<b>1</b>\nand 2"}, Part{"nobody asked for", "x"})
	early := looksOn(t, s)
	early.until(t, "a", "<b>1</b>\nand 2")
	l.Show(Part{"a", "3"}, Part{"b", "4"})
	early.until(t, "b", "4")
	late := looksOn(t, s)
	late.until(t, "a", "3")
	code, _, body := asked{path: "/", header: entered(s)}.of(t, s, http.DefaultClient)
	if code != http.StatusOK || !strings.Contains(body, `<div id="b">4</div>`) || strings.Contains(body, "nobody") {
		t.Errorf("without a script: %d %s", code, body)
	}
	l.Show(Part{"a", "the end"})
	gone := l.End()
	for _, v := range []*viewer{early, late} {
		for v.next(t) {
		}
		if v.seen["a"] != "the end" || v.seen["b"] != "4" {
			t.Errorf("in the end it saw %v", v.seen)
		}
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("somebody is still said to look on")
	}
	after := looksOn(t, s)
	for after.next(t) {
	}
	if after.seen["a"] != "the end" {
		t.Errorf("after the end: %v", after.seen)
	}
}

func TestNoMoreViewersThanAreLet(t *testing.T) {
	l := NewLive("a")
	s := started(t, Options{}, l.Handler(), nil)
	var all []*viewer
	for i := range maxViewers {
		v := looksOn(t, s)
		if v.code != http.StatusOK {
			t.Fatalf("viewer %d: %d", i, v.code)
		}
		all = append(all, v)
	}
	if v := looksOn(t, s); v.code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", v.code)
	}
	check(t, all[0].close())
	deadline := time.Now().Add(patience)
	for looksOn(t, s).code != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("nobody has taken the place of one who went")
		}
		l.Show(Part{"a", fmt.Sprint(time.Now())})
		time.Sleep(10 * time.Millisecond)
	}
}

// One who takes nothing holds neither the run up nor others, and what waits for him is bounded.
func TestASlowViewerHoldsNobodyUp(t *testing.T) {
	l := NewLive("a")
	s := started(t, Options{}, l.Handler(), nil)
	c, err := net.Dial("tcp", s.guard.host())
	check(t, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "GET %sevents HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", s.guard.path(), s.guard.host(), entered(s).Get("Cookie"))
	check(t, err)
	quick := looksOn(t, s)
	for i := range 200 {
		text := fmt.Sprint(i, strings.Repeat("x", 100_000))
		l.Show(Part{"a", text})
		quick.until(t, "a", text)
	}
}

func TestALivePageIsNobodyElses(t *testing.T) {
	l := NewLive("a")
	l.Show(Part{"a", "secret"})
	s := started(t, Options{}, l.Handler(), nil)
	for _, path := range []string{"/", "/events", "/live.js"} {
		if code, _, body := (asked{path: path}).of(t, s, http.DefaultClient); code != http.StatusForbidden || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	code, h, body := asked{path: "/live.js", header: entered(s)}.of(t, s, http.DefaultClient)
	if code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/javascript") || !strings.Contains(body, "EventSource") {
		t.Errorf("%d %v", code, h)
	}
}

// For nobody nothing is drawn, and for who looks on without scripts as for others.
func TestWhetherAnybodyLooksOn(t *testing.T) {
	l := NewLive("a")
	s := started(t, Options{}, l.Handler(), nil)
	if l.Watched() {
		t.Error("somebody looks on, and nobody came")
	}
	v := looksOn(t, s)
	if !l.Watched() {
		t.Error("a viewer is nobody")
	}
	check(t, v.close())
	for deadline := time.Now().Add(patience); l.Watched(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("who went is still there")
		}
		l.Show(Part{"a", fmt.Sprint(time.Now())})
	}
	asked{path: "/", header: entered(s)}.of(t, s, http.DefaultClient)
	if !l.Watched() {
		t.Error("who asks for the page is nobody")
	}
}
