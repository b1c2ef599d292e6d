package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

var targetsPlan = model.LoadPlan{URL: "http://127.0.0.1:8080/", Connections: 1, DurationMS: 1000, KeepAlive: true, Headers: []string{"X-All: yes", "Accept: */*"}}

func TestReadTargets(t *testing.T) {
	const text = `# what users do
{"path": "/", "weight": 3}

  {"url": "http://127.0.0.1:8080/a b?q=ä ö#top", "method": "put", "body": "x=1", "headers": {"accept": "text/html", "B": "2"}, "name": "save"}
{"path": "/api?x=1&y=2", "body": {"id": 7}, "expect": 201, "check": "ok"}
{"path": "/gone", "expect": [404, 410]}`
	got, err := ReadTargets([]byte(text), targetsPlan)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Target{
		{Name: "GET /", Method: "GET", Path: "/", Weight: 3},
		{Name: "save", Method: "PUT", Path: "/a%20b?q=ä%20ö", Body: []byte("x=1"), Headers: []string{"B: 2", "accept: text/html"}, Weight: 1},
		{Name: "POST /api?x=1&y=2", Method: "POST", Path: "/api?x=1&y=2", Body: []byte(`{"id": 7}`), Weight: 1, Expect: []int{201}, Check: "ok"},
		{Name: "GET /gone", Method: "GET", Path: "/gone", Weight: 1, Expect: []int{404, 410}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	plan := targetsPlan
	plan.Targets = got
	j, err := prepare(plan)
	if err != nil {
		t.Fatal(err)
	}
	const put = "PUT /a%20b?q=ä%20ö HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: "
	if whole := string(j.requests[1].bytes); !strings.HasPrefix(whole, put) || !strings.HasSuffix(whole, "Content-Length: 3\r\nX-All: yes\r\nB: 2\r\naccept: text/html\r\n\r\nx=1") {
		t.Errorf("the second request:\n%s", whole)
	}
}

func TestReadTargetsSaysWhichLineIsWrong(t *testing.T) {
	many := strings.Repeat("{\"path\":\"/\"}\n", maxTargets+1)
	var names strings.Builder
	for i := range maxTargetNames + 1 {
		fmt.Fprintf(&names, "{\"path\":\"/%d\"}\n", i)
	}
	for text, want := range map[string]string{
		"":                             "no target",
		"# nothing\n":                  "no target",
		"{\"path\":\"/\"}\n{\"path\":": "line 2: want an object",
		`["/"]`:                        "line 1: want an object",
		`{"path":"/"} {"path":"/b"}`:   "line 1: something follows",
		`{"path":"/","wieght":2}`:      `unknown field "wieght"`,
		`{}`:                           `want either "path" or "url"`,
		`{"path":"/","url":"http://127.0.0.1:8080/"}`: `want either "path" or "url"`,
		`{"path":"b"}`:                                           "begins with a single /",
		`{"path":"//other/"}`:                                    "begins with a single /",
		`{"path":"/\r\nX: y"}`:                                   "begins with a single /",
		`{"url":"http://127.0.0.1:8081/"}`:                       "want one at http://127.0.0.1:8080",
		`{"url":"https://127.0.0.1:8080/"}`:                      "want one at http://127.0.0.1:8080",
		`{"url":"http://user:pw@127.0.0.1:8080/"}`:               "Authorization",
		`{"path":"/","weight":0}`:                                "weight 0: want more than 0",
		`{"path":"/","weight":-1}`:                               "weight -1",
		`{"path":"/","weight":1e9}`:                              "weight 1e+09",
		`{"path":"/","expect":"200"}`:                            "want a status like 200",
		`{"path":"/","expect":[200,700]}`:                        "expect 700",
		`{"path":"/","expect":100}`:                              "expect 100",
		`{"path":"/","method":"GE T"}`:                           `method "GE T"`,
		`{"path":"/","method":"head","check":"x"}`:               "HEAD has no body",
		`{"path":"/","method":"head","length":0}`:                "HEAD has no body",
		`{"path":"/","length":-1}`:                               "length -1: want 0 or more",
		`{"path":"/","length":1.5}`:                              "want an object",
		`{"path":"/","headers":{"A\r\nB":"c"}}`:                  "header",
		`{"path":"/","headers":{"A":"c\r\nB: d"}}`:               "control characters",
		`{"path":"/","headers":{"Content-Length":"10"}}`:         "leave the header out",
		`{"path":"/","name":"a\u001b[2J"}`:                       "control characters",
		`{"path":"/","name":"` + strings.Repeat("x", 300) + `"}`: "1 to 200 bytes",
		many:                                  fmt.Sprintf("line %d: want at most %d targets", maxTargets+1, maxTargets),
		names.String():                        fmt.Sprintf("line %d: want at most %d different names", maxTargetNames+1, maxTargetNames),
		strings.Repeat("#", MaxTargetsFile+1): "more than",
	} {
		if list, err := ReadTargets([]byte(text), targetsPlan); err == nil || !strings.Contains(err.Error(), want) || list != nil {
			t.Errorf("%.80q: %v, want an error with %q", text, err, want)
		}
	}
}

// FuzzReadTargets: whatever is taken is a plan that can be carried out, and each of its requests is one
// request for net/http, too, with the method, the URL and the body that were asked for.
func FuzzReadTargets(f *testing.F) {
	for _, seed := range []string{
		`{"path":"/","weight":3}`, "# c\n\n{\"path\":\"/a?b=c\",\"body\":\"x\"}\n", `{"url":"http://127.0.0.1:8080/%2f?","expect":[200,404],"check":"ok"}`,
		`{"path":"/a b","headers":{"Content-Type":"a","content-type":"b"},"body":{"a":[1]},"method":"patch"}`, `{"path":"/%zz"}`, `{"path":"/?a b\n"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ReadTargets(text, targetsPlan)
		if err != nil {
			return
		}
		plan := targetsPlan
		plan.Targets = list
		j, err := prepare(plan)
		if err != nil {
			t.Fatalf("taken, and then refused: %v", err)
		}
		for i, r := range j.requests {
			checkOneRequest(t, r.bytes, list[i])
		}
	})
}

// checkOneRequest holds that raw is one request for net/http, too, the one that was asked for.
func checkOneRequest(t *testing.T, raw []byte, want model.Target) {
	t.Helper()
	from := bufio.NewReader(bytes.NewReader(raw))
	got, err := http.ReadRequest(from)
	if err != nil {
		t.Fatalf("request %q: %v", raw, err)
	}
	body, err := io.ReadAll(got.Body)
	if _, more := from.ReadByte(); err != nil || more != io.EOF || got.Method != want.Method || got.RequestURI != want.Path || !bytes.Equal(body, want.Body) {
		t.Fatalf("request %q is %s %s with the body %q, %v, %v; want %+v", raw, got.Method, got.RequestURI, body, err, more, want)
	}
}

func TestRequestsAreChosenByTheirWeights(t *testing.T) {
	plan := targetsPlan
	for i, w := range []float64{1, 2, 0.5, 6.5} {
		plan.Targets = append(plan.Targets, model.Target{Name: fmt.Sprint(i), Method: "GET", Path: "/", Weight: w})
	}
	j, err := prepare(plan)
	if err != nil {
		t.Fatal(err)
	}
	var got [4]int
	th := &thread{seed: 1}
	const n = 100_000
	for range n {
		got[j.choose(th.random()).name]++
	}
	for i, want := range []int{10_000, 20_000, 5_000, 65_000} {
		if got[i] < want*95/100 || got[i] > want*105/100 {
			t.Errorf("target %d was chosen %d times of %d, want about %d", i, got[i], n, want)
		}
	}
	for _, end := range []uint64{0, 1<<64 - 1} {
		if j.choose(end) == nil {
			t.Error("an end of the numbers stands for no request")
		}
	}
}

// Each target has its own count, and it is nginx's.
func TestTargetsAreCountedAsNginxDoes(t *testing.T) {
	address, counts := startNginx(t, "", "$request_method $request_uri $status", `
		location /a { return 200 "the whole answer"; }
		location /b { return 302 /a; }
		location /c { return 404 gone; }
		location /d { return 503 busy; }
		location /e { default_type text/plain; return 200 "another text"; }
		location /f { default_type text/plain; return 200 "another text"; }`)
	plan := model.LoadPlan{URL: "http://" + address + "/", Connections: 9, Threads: 2, Requests: 2003, KeepAlive: true, TimeoutMS: 60_000}
	const text = `{"path": "/a", "weight": 4, "check": "whole answer"}
{"path": "/b?x=1", "name": "moved"}
{"path": "/b?x=2", "name": "moved"}
{"path": "/b", "expect": 200}
{"path": "/c"}
{"path": "/c?expected", "expect": [404, 410], "check": "gone"}
{"path": "/d", "method": "POST", "body": "x", "expect": 200}
{"path": "/e", "check": "the whole answer"}
{"path": "/e", "method": "HEAD"}
{"path": "/f", "length": 12, "check": "another"}
{"path": "/f?short", "length": 11}`
	var err error
	if plan.Targets, err = ReadTargets([]byte(text), plan); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{"GET /a": "2xx", "moved": "3xx", "GET /b": "check:status", "GET /c": "4xx", "GET /c?expected": "expected:4xx",
		"POST /d": "5xx", "GET /e": "check:body", "HEAD /e": "2xx", "GET /f": "2xx", "GET /f?short": "check:length"}
	status := map[string]string{"GET /a": "200", "GET /b": "302", "GET /c": "404", "GET /c?expected": "404", "POST /d": "503", "GET /e": "200", "HEAD /e": "200", "GET /f": "200", "GET /f?short": "200"}
	want, all, exact := map[string]int64{}, int64(0), map[string]int64{}
	for _, rate := range []float64{0, 4000} {
		plan.Rate = rate
		records := runPlan(t, t.Context(), plan)
		last := records[len(records)-1]
		if got, names := len(last.Targets), slices.Collect(maps.Keys(outcomes)); got != len(names) {
			t.Fatalf("%d targets in the record, want %d: %+v", got, len(names), last.Targets)
		}
		addOutcomes(exact, phaseNamed(records, "hold").Statuses)
		for _, target := range last.Targets {
			n := sum(target.Outcomes)
			if d := cmp.Diff(map[string]int64{outcomes[target.Name]: n}, target.Outcomes); d != "" {
				t.Errorf("%s (-want +got):\n%s", target.Name, d)
			}
			if replies := countReplies(target.Outcomes); target.Response.Count != replies {
				t.Errorf("%s: %d replies, %d latencies", target.Name, replies, target.Response.Count)
			}
			all += n
			if target.Name != "moved" {
				want[target.Name+" "+status[target.Name]] += n
			}
		}
	}
	got := counts()
	for line, n := range got {
		exact[line[len(line)-3:]] -= n
	}
	if sum(exact) != 0 || slices.Max(slices.Collect(maps.Values(exact))) != 0 {
		t.Errorf("exact statuses, ours beyond nginx's: %v", exact)
	}
	moved := got["GET /b?x=1 302"] + got["GET /b?x=2 302"]
	delete(got, "GET /b?x=1 302")
	delete(got, "GET /b?x=2 302")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the access log (-ours +nginx's):\n%s", d)
	}
	if all != 2*2003 || sum(want)+moved != all {
		t.Errorf("%d requests in all, %d moved in nginx's log; want %d", all, moved, 2*2003)
	}
}

func TestRequestsWithoutAConnectionHaveATarget(t *testing.T) {
	s := serve(t, func(_ *net.TCPConn, _ int64) bool { return true }) // never answers
	plan := model.LoadPlan{URL: s.url, Connections: 1, Rate: 200, Requests: 40, TimeoutMS: 50, KeepAlive: true}
	var err error
	if plan.Targets, err = ReadTargets([]byte("{\"path\":\"/a\"}\n{\"path\":\"/b\"}"), plan); err != nil {
		t.Fatal(err)
	}
	all := runPlan(t, t.Context(), plan)
	outcomes := map[string]int64{}
	for _, target := range all[len(all)-1].Targets {
		for name, n := range target.Outcomes {
			outcomes[name] += n
		}
	}
	if d := cmp.Diff(phaseNamed(all, "hold").Outcomes, outcomes); d != "" || sum(outcomes) != 40 {
		t.Errorf("outcomes of all targets (-of the phase +of targets):\n%s", d)
	}
}

func TestATextIsFoundInPieces(t *testing.T) {
	for _, c := range []struct {
		body, text string
		want       bool
	}{
		{"aaab", "aab", true}, {"abababac", "ababac", true}, {"abcabd", "abce", false}, {"", "a", false}, {"xa", "a", true}, {"aab", "aac", false},
	} {
		for cut := range len(c.body) + 1 {
			p := newPattern(c.text)
			have := p.search(p.search(0, []byte(c.body[:cut])), []byte(c.body[cut:]))
			if got := int(have) == len(c.text); got != c.want {
				t.Errorf("%q in %q, cut at %d: %v", c.text, c.body, cut, got)
			}
		}
	}
}

// FuzzPattern compares with a search in the whole.
func FuzzPattern(f *testing.F) {
	f.Add([]byte("abababac"), []byte("ababac"), uint8(3))
	f.Add([]byte("aaaaab"), []byte("aab"), uint8(1))
	f.Fuzz(func(t *testing.T, body, text []byte, size uint8) {
		if len(text) == 0 {
			return
		}
		p, have := newPattern(string(text)), int32(0)
		for piece := range slices.Chunk(body, int(size)+1) {
			have = p.search(have, piece)
		}
		if got, want := int(have) == len(text), bytes.Contains(body, text); got != want {
			t.Fatalf("%q in %q by %d: %v, want %v", text, body, size+1, got, want)
		}
	})
}
