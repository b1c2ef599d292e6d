package nginx

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readLines(t testing.TB, file string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

func TestAccessLogFormats(t *testing.T) {
	for name, c := range map[string]struct {
		format []string
		file   string
		want   []AccessLine
	}{
		"timed": {[]string{"$remote_addr [$time_local] \"$request\" $status $request_time ", "$upstream_response_time $upstream_addr"}, "testdata/access-timed.log",
			[]AccessLine{{200, 0.086, 0.085, true, true}, {200, 0, 0, true, true}}},
		"json": {[]string{"escape=json", `{"ts":"$time_iso8601","ua":"$http_user_agent","status":"$status","rt":"$request_time","urt":"$upstream_response_time"}`}, "testdata/access-json.log",
			[]AccessLine{{200, 0.321, 0.321, true, true}, {200, 0.301, 0.301, true, true}}},
	} {
		f := ParseLogFormat(c.format)
		var got []AccessLine
		for _, line := range readLines(t, c.file) {
			a, ok := f.Parse(line)
			if !ok {
				t.Errorf("%s: not understood: %s", name, line)
			}
			got = append(got, a)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestAccessLogCombined(t *testing.T) {
	got := map[int]int{}
	f := CombinedFormat()
	for _, line := range readLines(t, "testdata/access-combined.log") {
		a, ok := f.Parse(line)
		if !ok || a.HasRequest || a.HasUpstream {
			t.Errorf("got %+v %v of %s", a, ok, line)
		}
		got[a.Status]++
	}
	want := map[int]int{200: 3, 404: 3, 502: 8, 504: 2, 503: 2, 499: 1, 9: 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("statuses (-want +got):\n%s", d)
	}
}

func TestRequestLine(t *testing.T) {
	for format, want := range map[string]string{
		`$remote_addr "$request" $status`: "GET /a?b HTTP/1.1",
		`$remote_addr "$uri" $status`:     "",
		`x $request`:                      "",
	} {
		got := ParseLogFormat([]string{format}).RequestLine([]byte(`10.0.0.1 "GET /a?b HTTP/1.1" 404`))
		if string(got) != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

func TestLogFormats(t *testing.T) {
	for name, c := range map[string]struct {
		format, line string
		want         AccessLine
		ok           bool
	}{
		"several tries":        {"$status $upstream_response_time", "502 0.001, 0.002 : -, 1.500", AccessLine{Status: 502, Upstream: 1.503, HasUpstream: true}, true},
		"no upstream":          {"$status $upstream_response_time", "200 -", AccessLine{Status: 200}, true},
		"braces":               {"[${status}]$request_time;", "[404]12.5;", AccessLine{Status: 404, Request: 12.5, HasRequest: true}, true},
		"text first":           {"nginx: $status", "nginx: 200", AccessLine{Status: 200}, true},
		"other text first":     {"nginx: $status", "apache: 200", AccessLine{}, false},
		"nothing parts two":    {"$bytes_sent$status", "10200", AccessLine{}, false},
		"no status":            {"$request_time", "0.1", AccessLine{Request: 0.1, HasRequest: true}, false},
		"a status of four":     {"$status", "2000", AccessLine{}, false},
		"cut off":              {"$remote_addr $status ", "1.2.3.4", AccessLine{}, false},
		"a dollar is no name":  {"$ $status", "$ 200", AccessLine{Status: 200}, true},
		"after the last field": {"$status $http_cookie|$x", "200 anything", AccessLine{Status: 200}, true},
	} {
		f := ParseLogFormat([]string{c.format})
		got, ok := f.Parse([]byte(c.line))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %+v %v, want %+v %v", name, got, ok, c.want, c.ok)
		}
	}
}

func FuzzAccessLine(f *testing.F) {
	f.Add("$remote_addr - [$time_local] \"$request\" $status $request_time $upstream_response_time", "1 - [2] \"G\" 200 0.1 0.2, -")
	f.Add(`{"s":"$status"}`, `{"s":"200"}`)
	f.Fuzz(func(t *testing.T, format, line string) {
		a, ok := ParseLogFormat([]string{format}).Parse([]byte(line))
		if ok && (a.Status < 0 || a.Status > 999 || a.Request < 0 || math.IsNaN(a.Upstream)) {
			t.Errorf("%q by %q: %+v", line, format, a)
		}
	})
}

// BenchmarkAccessLine answers: what does a line of an access log cost to parse?
func BenchmarkAccessLine(b *testing.B) {
	combined := []byte(`203.0.113.77 - - [21/Nov/2026:09:42:59 +0000] "GET /index.php?id=12345 HTTP/1.1" 200 612 "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"`)
	timed := []byte(`203.0.113.77 - - [21/Nov/2026:09:42:59 +0000] "GET /index.php?id=12345 HTTP/1.1" 200 612 "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36" 0.123 0.122`)
	for name, c := range map[string]struct {
		f    *LineFormat
		line []byte
	}{
		"format=combined": {CombinedFormat(), combined},
		"format=timed":    {ParseLogFormat([]string{`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time $upstream_response_time`}), timed},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, ok := c.f.Parse(c.line); !ok {
					b.Fatal("not understood")
				}
			}
		})
	}
}
