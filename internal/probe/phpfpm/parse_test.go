package phpfpm

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/service/phpfpm"
)

func TestLog(t *testing.T) {
	b, err := os.ReadFile("testdata/fpm.log")
	if err != nil {
		t.Fatal(err)
	}
	got := map[logLine]int{}
	for line := range bytes.Lines(b) {
		l, ok := parseLogLine(bytes.TrimSpace(line))
		if !ok {
			t.Errorf("not understood: %s", line)
		}
		got[l]++
	}
	want := map[logLine]int{
		{"www", "slow_request"}: 2, {"www", "max_children_reached"}: 1, {"onde", "max_children_reached"}: 1, {"www", "terminated"}: 2,
		{"", "listen_error"}: 1, {"", "other"}: 1, {"", ""}: 6, {"www", ""}: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, line := range []string{"", "[x] y", "[21-Nov-2026 09:56:32", "[21-Nov-2026 09:56:32] WARNING", "[0x00007f] usleep() /x.php:1", "[21-Nov-2026 09:56:32]  [pool www] pid 1"} {
		if l, ok := parseLogLine([]byte(line)); ok {
			t.Errorf("%q was taken for %+v", line, l)
		}
	}
	if l, ok := parseLogLine([]byte("[21-Nov-2026 09:56:32.123456] WARNING: [pool a b] x")); !ok || l != (logLine{"a b", "other"}) {
		t.Errorf("with fractions of a second: %+v %v", l, ok)
	}
}

func TestStatusPages(t *testing.T) {
	for file, want := range map[string][4]float64{"testdata/status-tcp.fcgi": {1, 33, 0, 1}, "testdata/status-listen.fcgi": {0, 0, 2, 2}} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, errs, err := readReply(bytes.NewReader(b))
		if err != nil || len(errs) > 0 {
			t.Fatalf("%s: %q %v", file, errs, err)
		}
		code, body, err := parseCGI(out)
		if err != nil || code != 200 {
			t.Fatalf("%s: %d %v", file, code, err)
		}
		s, err := parseStatus(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]float64{*s.AcceptedConn, *s.ListenQueueLen, *s.IdleProcesses, *s.TotalProcesses}; got != want {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
}

// TestCountsThatCannotBe: FPM 8.2 with pm.max_children = 16 said so under 800 requests a second of a connection each.
func TestCountsThatCannotBe(t *testing.T) {
	st, err := parseStatus([]byte(`{"pool":"www","accepted conn":7011,"idle processes":0,"active processes":347,"total processes":347,"max active processes":808}`))
	if err != nil {
		t.Fatal(err)
	}
	rec := livetest.NewRecord()
	put(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "www", answer{status: st}, phpfpm.Pool{MaxChildren: 16}, false)
	for name, want := range map[string]bool{"phpfpm_accepted_connections{www}": true, "phpfpm_idle_processes{www}": true,
		"phpfpm_active_processes{www}": false, "phpfpm_total_processes{www}": false, "phpfpm_max_active_processes{www}": false} {
		if _, there := rec.Values[name]; there != want {
			t.Errorf("%s: there %v, want %v", name, there, want)
		}
	}
}

func TestBadReplies(t *testing.T) {
	end := appendRecord(nil, endRequest, make([]byte, 8))
	for name, b := range map[string][]byte{
		"empty": nil, "HTTP": []byte("HTTP/1.1 400 Bad"), "cut off": end[:10], "short end": appendRecord(nil, endRequest, []byte{1}),
		"no end": appendRecord(nil, stdout, []byte("x")), "overloaded": appendRecord(nil, endRequest, []byte{0, 0, 0, 0, 2, 0, 0, 0}),
	} {
		if out, _, err := readReply(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: was taken: %q", name, out)
		}
	}
	if _, err := statusRequest("/" + strings.Repeat("x", 200)); err == nil {
		t.Error("a path of 200 bytes was taken")
	}
	for _, page := range []string{"", "{}", "[]", `{"pool":"x"}`, "File not found."} {
		if _, err := parseStatus([]byte(page)); err == nil {
			t.Errorf("%q was taken", page)
		}
	}
	if code, _, err := parseCGI([]byte("Status: 404 Not Found\r\nContent-type: text/html\r\n\r\nFile not found.\n")); err != nil || code != 404 {
		t.Errorf("404: %d %v", code, err)
	}
}

func TestServicesOfTheSamePoolName(t *testing.T) {
	www := &phpfpm.Config{Pools: []phpfpm.Pool{{Name: "www"}}}
	list := []*service{
		{master: host.Proc{PID: 1, Comm: "php-fpm8.1"}, conf: www}, {master: host.Proc{PID: 2, Comm: "php-fpm8.2"}, conf: www},
		{master: host.Proc{PID: 3, Comm: "php-fpm8.2"}, conf: www}, {master: host.Proc{PID: 4, Comm: "php-fpm8.2"}, conf: &phpfpm.Config{Pools: []phpfpm.Pool{{Name: "other"}}}},
	}
	nameApart(list)
	var got []string
	for _, s := range list {
		got = append(got, s.label("www"))
	}
	if d := cmp.Diff([]string{"www@php-fpm8.1", "www@2", "www@3", "www"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzReply(f *testing.F) {
	for _, file := range []string{"testdata/status-tcp.fcgi", "testdata/status-listen.fcgi"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, _, err := readReply(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(out) > len(b) {
			t.Errorf("%d bytes out of %d", len(out), len(b))
		}
		if _, body, err := parseCGI(out); err == nil {
			parseStatus(body)
		}
	})
}

func FuzzLogLine(f *testing.F) {
	f.Add([]byte("[21-Nov-2026 09:56:32] WARNING: [pool www] server reached pm.max_children setting (3), consider raising it"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := parseLogLine(b); !ok && l != (logLine{}) {
			t.Errorf("%q: %+v although not understood", b, l)
		}
	})
}

// FuzzRequest checks that what we send has the lengths that it says.
func FuzzRequest(f *testing.F) {
	f.Add("/status")
	f.Fuzz(func(t *testing.T, uri string) {
		b, err := statusRequest(uri)
		if err != nil {
			return
		}
		for len(b) > 0 {
			size := int(binary.BigEndian.Uint16(b[4:]))
			if len(b) < 8+size {
				t.Fatalf("a record of %d bytes in %d", size, len(b))
			}
			b = b[8+size:]
		}
	})
}
