package load

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

const accessLog = `192.0.2.1 - - [10/Oct/2025:13:55:36 +0200] "GET /a?x=1 HTTP/1.1" 200 12 "https://shop.example/" "Mozilla/5.0 (\"X\"; \xC3\xA4)"
192.0.2.1 - bob [10/Oct/2025:13:55:36 +0200] "GET /b HTTP/2.0" 404 0 "-" "-"
[2001:db8::1] - - [10/Oct/2025:11:55:38 +0000] "HEAD /b HTTP/1.1" 200 0

shop.example:443 192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] "GET /a?x=1 HTTP/1.1" 200 12 "https://shop.example/" "Mozilla/5.0 (\"X\"; \xC3\xA4)" "203.0.113.9" 0.003
192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] "POST /order HTTP/1.1" 201 0 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] "\x16\x03\x01" 400 150 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] "GET http://other/ HTTP/1.1" 400 150 "-" "-"
192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] "-" 408 0 "-" "-"
not a line
`

func TestReadAnAccessLog(t *testing.T) {
	got, err := ReadTargetFile([]byte(accessLog), targetsPlan)
	if err != nil {
		t.Fatal(err)
	}
	const agent = "User-Agent: Mozilla/5.0 (\"X\"; ä)"
	want := TargetFile{
		Targets: []model.Target{
			{Name: "GET /a", Method: "GET", Path: "/a?x=1", Headers: []string{"Referer: https://shop.example/", agent}, Weight: 2},
			{Name: "GET /b", Method: "GET", Path: "/b", Weight: 1},
			{Name: "HEAD /b", Method: "HEAD", Path: "/b", Weight: 1},
		},
		Recorded: &model.Recording{From: "access log", Requests: 4, AtMicros: []int64{0, 500_000, 1_000_000, 2_000_000}, Of: []int32{0, 1, 0, 2}},
		Second:   1_000_000,
		Notes:    []string{"1 left out: " + leftMethod, "1 left out: " + leftNoLine, "3 left out: " + leftNoTarget},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

const harExport = `{"log": {"version": "1.2", "entries": [
{"startedDateTime": "2025-10-10T13:55:36.250+02:00", "request": {"method": "GET", "url": "https://shop.example/a?q=x y#top",
  "headers": [{"name": ":authority", "value": "shop.example"}, {"name": "Host", "value": "shop.example"}, {"name": "Cookie", "value": "sid=sesame"}, {"name": "Connection", "value": "keep-alive"}, {"name": "X-Bad", "value": "a\nb"}], "bodySize": 0}},
{"startedDateTime": "2025-10-10T11:55:36Z", "request": {"method": "post", "url": "https://shop.example:443/login",
  "headers": [{"name": "Content-Type", "value": "application/x-www-form-urlencoded"}, {"name": "Content-Length", "value": "9"}], "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "user", "value": "a b"}, {"name": "p", "value": "&"}]}}},
{"startedDateTime": "2025-10-10T11:55:37Z", "request": {"method": "PUT", "url": "https://SHOP.example/img", "headers": [], "postData": {"text": "AAEC", "encoding": "base64"}}},
{"startedDateTime": "2025-10-10T11:55:37Z", "request": {"method": "PUT", "url": "https://shop.example/lost", "headers": [], "bodySize": 7}},
{"startedDateTime": "2025-10-10T11:55:38Z", "request": {"method": "GET", "url": "https://cdn.example/x.js", "headers": []}},
{"startedDateTime": "2025-10-10T11:55:38Z", "request": {"method": "GET", "url": "wss://shop.example/socket", "headers": []}}
]}}`

func TestReadAHARExport(t *testing.T) {
	got, err := ReadTargetFile([]byte("\ufeff"+harExport), targetsPlan)
	if err != nil {
		t.Fatal(err)
	}
	want := TargetFile{
		Targets: []model.Target{
			{Name: "POST /login", Method: "POST", Path: "/login", Headers: []string{"Content-Type: application/x-www-form-urlencoded"}, Body: []byte("user=a+b&p=%26"), Weight: 1},
			{Name: "GET /a", Method: "GET", Path: "/a?q=x%20y", Headers: []string{"Cookie: sid=sesame"}, Weight: 1},
			{Name: "PUT /img", Method: "PUT", Path: "/img", Body: []byte{0, 1, 2}, Weight: 1},
		},
		Recorded: &model.Recording{From: "HAR export", Requests: 3, AtMicros: []int64{0, 250_000, 1_000_000}, Of: []int32{0, 1, 2}},
		Notes:    []string{"what was recorded at https://shop.example:443 goes to http://127.0.0.1:8080", "1 left out: " + leftNoBody, "2 left out: " + leftOrigin},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	plan := targetsPlan
	plan.URL, plan.Headers = "https://cdn.example/", []string{"Cookie: mine"}
	if got, err := ReadTargetFile([]byte(harExport), plan); err != nil || len(got.Targets) != 1 || got.Targets[0].Path != "/x.js" {
		t.Errorf("%+v, %v; want what was recorded at the load's own origin, where there is some", got, err)
	}
	plan.URL = "http://127.0.0.1/"
	if got, err := ReadTargetFile([]byte(harExport), plan); err != nil || len(got.Targets[1].Headers) != 0 {
		t.Errorf("%+v, %v; want the user's Cookie in the place of the recorded one", got, err)
	}
}

func TestRecordingsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1 - - [10/Oct/2025:13:55:37 +0200] \"POST / HTTP/1.1\" 200 1\n": "no request in this access log that can be sent (1 left out",
		`{"log": {"entries": []}}`: "no request in this HAR export",
		`{"log": {"entries": [`:    "HAR export: unexpected end",
		`{"log": {"entries": [{"startedDateTime": "yesterday", "request": {"method": "GET", "url": "http://127.0.0.1:8080/", "headers":[]}}]}}`: "entry 1: startedDateTime",
		"hello\n": "line 1: want an object",
	} {
		if got, err := ReadTargetFile([]byte(text), targetsPlan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error with %q", text, got, err, want)
		}
	}
	file, err := ReadTargetFile([]byte("{\"path\": \"/\"}"), targetsPlan)
	if _, err2 := file.Replay(targetsPlan, 1); err != nil || err2 == nil {
		t.Errorf("%v, %v: want targets that have no pace of their own", err, err2)
	}
}

// More names than can be counted apart: the rarest share one.
func TestTheRarestOfARecordingShareAName(t *testing.T) {
	var log strings.Builder
	for i := range 2 * maxTargetNames {
		for range min(i+1, 5) {
			fmt.Fprintf(&log, "a - - [10/Oct/2025:13:55:37 +0200] \"GET /%d HTTP/1.1\" 200 1\n", i)
		}
	}
	got, err := ReadTargetFile([]byte(log.String()), targetsPlan)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]float64{}
	for _, target := range got.Targets {
		names[target.Name] += target.Weight
	}
	if len(names) != maxTargetNames || names["GET /0"] != 0 || names["GET /1"] != 0 || names[nameOfOthers] == 0 {
		t.Errorf("%d names, of the others %v: want %d, the first and rarest among the others", len(names), names[nameOfOthers], maxTargetNames)
	}
	plan := targetsPlan
	plan.Targets, plan.Recorded = got.Targets, got.Recorded
	plan.Recorded.Of, plan.Recorded.AtMicros = nil, nil
	if err := Check(plan); err != nil {
		t.Error(err)
	}
	if kept := plan.WithoutSecrets(); len(kept.Targets) != maxTargetNames || kept.Targets[0].Path != "" {
		t.Errorf("a run keeps %d targets, the first %+v; want the names alone", len(kept.Targets), kept.Targets[0])
	}
}

// Each request is sent once, as it was recorded and in that order; a ramp before it draws them.
func TestARecordingIsReplayed(t *testing.T) {
	const n = 300
	var log strings.Builder
	for i := range n {
		fmt.Fprintf(&log, "a - - [10/Oct/2025:13:55:%02d +0200] \"GET /%d?n=%d HTTP/1.1\" 200 1 \"-\" \"agent %d\"\n", 10+i/30, i%4, i, i%7)
	}
	for _, c := range []struct {
		why    string
		change func(*model.LoadPlan)
		want   int // requests
	}{
		{"HTTP/1.1", func(*model.LoadPlan) {}, n},
		{"HTTP/2", func(p *model.LoadPlan) { p.HTTP2, p.Streams = true, 3 }, n},
		{"pipelined", func(p *model.LoadPlan) { p.Pipeline = 3 }, n},
		{"two threads, with calm and ramp", func(p *model.LoadPlan) { p.Threads, p.CalmMS, p.RampMS = 2, 20, 50 }, n},
		{"a part", func(p *model.LoadPlan) { p.DurationMS = 100 }, n / 2},
	} {
		t.Run(c.why, func(t *testing.T) {
			listen := map[bool]string{true: "http2"}[c.why == "HTTP/2"]
			address, counts := startNginx(t, listen, "$request_uri $http_user_agent", "location / { return 200 ok; }")
			plan := model.LoadPlan{URL: "http://" + address + "/", Connections: 4, Threads: 1, KeepAlive: true, TimeoutMS: 600_000}
			c.change(&plan)
			file, err := ReadTargetFile([]byte(log.String()), plan)
			if err != nil {
				t.Fatal(err)
			}
			plan.Targets = file.Targets
			if plan, err = file.Replay(plan, 50); err != nil { // ten seconds
				t.Fatal(err)
			}
			if want := map[bool]int64{true: 200, false: 100}[c.want == n]; plan.DurationMS != want || plan.Recorded.Requests != c.want {
				t.Errorf("%d requests in %d ms, want %d in %d", plan.Recorded.Requests, plan.DurationMS, c.want, want)
			}
			all := runPlan(t, t.Context(), plan)
			if diff := cmp.Diff(map[string]int64{"2xx": int64(c.want)}, phaseNamed(all, "hold").Outcomes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			names := map[string]int64{}
			for _, of := range all[len(all)-1].Targets {
				names[of.Name] = of.Outcomes["2xx"]
			}
			share := int64(c.want / 4)
			want := map[string]int64{"GET /0": share + int64(c.want%4+1)/2, "GET /1": share + int64(c.want%4)/2, "GET /2": share, "GET /3": share}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("by name (-want +got):\n%s", diff)
			}
			got := counts()
			for i := range c.want {
				if line := fmt.Sprintf("/%d?n=%d agent %d", i%4, i, i%7); got[line] == 0 || got[line] != 1 && plan.RampMS == 0 {
					t.Errorf("%q came %d times, want once (and in a ramp perhaps again)", line, got[line])
				}
			}
			if other := phaseNamed(all, "calm").Requests + phaseNamed(all, "ramp").Requests; sum(got) != int64(c.want)+other {
				t.Errorf("nginx counted %d requests, want %d and %d before", sum(got), c.want, other)
			}
		})
	}
}

// The times are those of the recording, divided by the speed; a thread has every so manyth.
func TestReplayedRequestsAreDueWhenTheyWereRecorded(t *testing.T) {
	plan := targetsPlan
	plan.Threads, plan.RampMS, plan.DurationMS = 3, 100, 0
	file, err := ReadTargetFile([]byte(accessLog), plan)
	if err != nil {
		t.Fatal(err)
	}
	plan.Targets = file.Targets
	if plan, err = file.Replay(plan, 0.5); err != nil || plan.DurationMS != 6000 {
		t.Fatalf("%d ms, %v; want three seconds at half the speed", plan.DurationMS, err)
	}
	a := newArrivals(plan, newTimeline(plan))
	got := map[int64]int64{}
	for id := range int64(3) {
		times := a.of(int(id), 3)
		for k := id; k < a.total; k += 3 {
			if at := times.at(k); k >= a.ramp() {
				got[k-a.ramp()] = at/1e6 - 100
			}
		}
	}
	if want := map[int64]int64{0: 0, 1: 1000, 2: 2000, 3: 4000}; !maps.Equal(got, want) {
		t.Errorf("due %v ms after the ramp, want %v", got, want)
	}
}

func TestPlansOfRecordingsThatAreNone(t *testing.T) {
	good := model.Recording{From: "access log", Requests: 2, Speed: 1, AtMicros: []int64{0, 5}, Of: []int32{0, 0}}
	for why, change := range map[string]func(*model.LoadPlan){
		"nothing":            func(p *model.LoadPlan) { p.Recorded.AtMicros, p.Recorded.Of = nil, nil },
		"out of order":       func(p *model.LoadPlan) { p.Recorded.AtMicros = []int64{5, 0} },
		"before the start":   func(p *model.LoadPlan) { p.Recorded.AtMicros = []int64{-1, 0} },
		"unknown targets":    func(p *model.LoadPlan) { p.Recorded.Of = []int32{0, 1} },
		"fewer than times":   func(p *model.LoadPlan) { p.Recorded.Of = []int32{0} },
		"no speed":           func(p *model.LoadPlan) { p.Recorded.Speed = 0 },
		"too fast":           func(p *model.LoadPlan) { p.Recorded.Speed = 1e9 },
		"in stages":          func(p *model.LoadPlan) { p.Stages = []model.Stage{{AtMS: 1, Rate: 1}} },
		"so many requests":   func(p *model.LoadPlan) { p.Requests = 1 },
		"a closed loop":      func(p *model.LoadPlan) { p.Rate = 0 },
		"at random":          func(p *model.LoadPlan) { p.Arrivals = model.Poisson },
		"without any target": func(p *model.LoadPlan) { p.Targets = nil },
	} {
		plan := targetsPlan
		plan.Rate, plan.Targets = 1, []model.Target{{Name: "a", Method: "GET", Path: "/", Weight: 1}}
		r := good
		plan.Recorded = &r
		if err := Check(plan); err != nil {
			t.Fatal(err)
		}
		change(&plan)
		if err := Check(plan); err == nil {
			t.Errorf("%s: was taken", why)
		}
	}
}

// FuzzReadRecording: whatever is taken is a plan that can be carried out, drawn and replayed, and each of its requests is one.
func FuzzReadRecording(f *testing.F) {
	f.Add([]byte(accessLog), 1.0)
	f.Add([]byte(harExport), 2.5)
	f.Add([]byte(`{"log":{"entries":[{"startedDateTime":"0001-01-01T00:00:00Z","request":{"method":"GET","url":"http://127.0.0.1:8080/%20","headers":null,"postData":{"text":null}}}]}}`), 0.001)
	f.Fuzz(func(t *testing.T, text []byte, speed float64) {
		file, err := ReadTargetFile(text, targetsPlan)
		if err != nil || file.Recorded == nil {
			return
		}
		drawn := targetsPlan
		drawn.Targets, drawn.Recorded = file.Targets, &model.Recording{From: file.Recorded.From, Requests: file.Recorded.Requests}
		j, err := prepare(drawn)
		if err != nil {
			t.Fatalf("%q was taken, and is no plan: %v", text, err)
		}
		for i, r := range j.requests {
			checkOneRequest(t, r.bytes, drawn.Targets[i])
		}
		plan, err := file.Replay(drawn, speed)
		if err != nil {
			return
		}
		if err := Check(plan); err != nil && plan.DurationMS <= maxMillis && plan.Rate <= maxRate {
			t.Fatalf("%q at speed %g is no plan: %v", text, speed, err)
		} else if err == nil && !slices.IsSorted(plan.Recorded.AtMicros) {
			t.Fatalf("%q at speed %g: out of order", text, speed)
		}
	})
}

// FuzzOrigin: what is an origin is the same read again.
func FuzzOrigin(f *testing.F) {
	f.Add("http://[::1]:80/x")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil || origin(u) == "" {
			return
		}
		again, err := url.Parse(origin(u))
		if err != nil || origin(again) != origin(u) {
			t.Fatalf("%q is at %q, which is at %v (%v)", text, origin(u), again, err)
		}
	})
}
