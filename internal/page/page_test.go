package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"plimsoll/internal/compare"
	"plimsoll/internal/judge"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
)

var update = flag.Bool("update", os.Getenv("PLIMSOLL_UPDATE") == "1", "write golden files anew")

const start = 1_000_000_000_000 // Unix milliseconds

// made is a run of so many seconds that is written for a test.
type made struct {
	seconds int64
	hosts   []string
	text    string // stands wherever a text is from outside; "" for harmless ones
	series  int    // more of them on each host
}

func (m made) or(text string) string {
	if m.text != "" {
		return m.text
	}
	return text
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func counter(name string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Counter, Labels: labels}
}

func gauge(name string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Labels: labels}
}

// write records the run in a directory.
func (m made) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	at := func(second int64) int64 { return start + 1000*second }
	run := model.Run{Version: m.or("test"), Started: start, Notes: []string{m.or("a note")}, Tracing: &model.Tracing{Level: "light", Profiles: []string{m.or("cpu")}},
		Plan: model.Plan{Mode: "run", Generator: m.hosts[0], Interval: 1000,
			Load: &model.LoadPlan{URL: "http://server/" + m.text, Method: "GET", Connections: 10, DurationMS: 1000 * (m.seconds - 6)}},
		Windows: []model.Window{{Name: model.Baseline, Start: start, End: at(2)}, {Name: model.Calm, Start: at(2), End: at(4)},
			{Name: model.Hold, Start: at(4), End: at(m.seconds - 2)}, {Name: model.Cool, Start: at(m.seconds - 2), End: at(m.seconds)}}}
	if named := m.or(""); named != "" {
		run.Windows = append(run.Windows, model.Window{Name: named, Start: at(5), End: at(6)})
	}
	for _, h := range m.hosts {
		run.Hosts = append(run.Hosts, model.Host{Name: h, Spec: "netns:" + h, Machine: h, Kernel: m.or("6.1"), CPUs: 2})
	}
	w, err := writer.Create(dir, run)
	check(t, err)
	for second := range m.seconds + 1 {
		m.round(w, at(second), second)
		if second%20 == 0 {
			check(t, w.Commit())
		}
	}
	for second := int64(4); second < m.seconds-2; second++ {
		h := hdr.New(1, 60_000_000, 3)
		check(t, h.RecordValues(1000+second%7*100, 20))
		if second == 7 { // the spike that no picture may lose
			check(t, h.RecordValue(1_500_000))
		}
		enc, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		check(t, err)
		w.Interval(at(second), at(second+1), "response", string(enc))
	}
	w.Event(model.Event{Time: at(5), Host: m.hosts[0], Kind: m.or("kernel.log"), Text: m.or("table full, dropping packet")})
	w.Status(m.hosts[0], "node_disk_io_time_seconds_total", model.Status{State: model.Denied, Why: m.or("run as root")})
	check(t, w.Commit())
	check(t, w.Close())
	return dir
}

// round records one round: a table that fills in the hold window, a CPU, processes.
func (m made) round(w *writer.Writer, t, second int64) {
	load := min(max(second-4, 0), m.seconds-6)
	w.Sample(m.hosts[0], t, counter("plimsoll_load_outcomes_total", "phase", "outcome"), float64(90*load), model.Hold, "2xx")
	w.Sample(m.hosts[0], t, counter("plimsoll_load_outcomes_total", "phase", "outcome"), float64(10*load), model.Hold, "connect:"+m.or("timeout"))
	w.Sample(m.hosts[0], t, counter("plimsoll_load_wait_seconds_total", "phase", "outcome"), float64(load), model.Hold, "2xx")
	for quantile, seconds := range map[string]float64{"0.5": 0.0012, "0.99": 0.0016, "1": 1.5} {
		w.Sample(m.hosts[0], t, gauge("plimsoll_load_latency_seconds", "phase", "kind", "quantile"), seconds, model.Hold, "response", quantile)
	}
	for _, h := range m.hosts {
		w.Sample(h, t, gauge("node_nf_conntrack_entries_limit"), 200)
		w.Sample(h, t, gauge("node_nf_conntrack_entries"), float64(min(200, 100*load)))
		w.Sample(h, t, counter("node_nf_conntrack_stat_drop"), float64(30*load))
		for cpu := range 2 {
			for i, mode := range []string{"user", "system", "idle"} {
				w.Sample(h, t, counter("node_cpu_seconds_total", "cpu", "mode"), float64(second)*[]float64{0.2, 0.1, 0.7}[i], fmt.Sprint(cpu), mode)
			}
		}
		for i := range 5 + m.series {
			w.Sample(h, t, counter("namedprocess_namegroup_cpu_seconds_total", "groupname", "mode"), float64(second)*0.1*float64(1+i%5+int(second)*i%3), m.or("worker")+fmt.Sprint(i), "user")
		}
	}
}

// read judges the run by the test's own rule, and reads what the page shows of it.
func read(t testing.TB, dir string) (model.Report, *Run) {
	t.Helper()
	rules, err := ruleset.Load(os.DirFS("testdata/rules"))
	check(t, err)
	rec, err := record.Open(dir)
	check(t, err)
	defer rec.Close()
	q, err := query.Of(rec)
	check(t, err)
	r, err := judge.Asked(q, rec, rules)
	check(t, err)
	out, err := Read(rec, q, r, rules)
	check(t, err)
	return r, out
}

func written(t testing.TB, runs ...*Run) string {
	t.Helper()
	var b bytes.Buffer
	check(t, Write(&b, Page{Title: "Plimsoll: " + runs[0].Verdict.Sentence, Runs: runs}))
	return b.String()
}

func parsed(t testing.TB, doc string) *html.Node {
	t.Helper()
	n, err := html.Parse(strings.NewReader(doc))
	check(t, err)
	return n
}

// words is the text of a page, a line a piece, without what its drawings say by shape.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		text := strings.Join(strings.Fields(d.Data), " ")
		if d.Type == html.TextNode && text != "" && d.Parent.Data != "style" && d.Parent.Data != "script" {
			fmt.Fprintln(&b, text)
		}
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	_, run := read(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t))
	run.Dir = "run"
	for i, f := range run.Tables.Cost {
		if f.Name == "run" || f.Name == "watching" {
			run.Tables.Cost[i].Value = "…"
		}
	}
	run.Flames = nil
	got := words(parsed(t, written(t, run)))
	const golden = "testdata/page.txt"
	if *update {
		check(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the words of the page (-want +got); PLIMSOLL_UPDATE=1 writes them anew\n%s", d)
	}
}

// TestNumbers: what the page says in numbers is what the text and JSON say.
func TestNumbers(t *testing.T) {
	r, run := read(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t))
	page := words(parsed(t, written(t, run)))
	var text bytes.Buffer
	check(t, report.Text(&text, r, report.TextOptions{Width: 200, Detail: report.Everything}))
	flat := strings.Join(strings.Fields(text.String()), " ")
	for _, f := range run.Facts {
		switch f.Name {
		case "failed": // the text has the outcomes
			f.Value = strings.SplitN(f.More, " ", 2)[0]
		case "good": // and the share that failed, where there is one
			if failed := layout.Share(1-r.Load.GoodShare) + " of what was tried failed"; strings.Contains(flat, failed) {
				continue
			}
		}
		if !strings.Contains(flat, strings.TrimSuffix(f.Value, "/s")) {
			t.Errorf("%s is %q on the page, and the text says\n%s", f.Name, f.Value, text.String())
		}
	}
	if len(r.Verdict.Root) == 0 {
		t.Fatalf("the run has no root: %s", r.Verdict.Sentence)
	}
	if len(run.First) < 2 {
		t.Errorf("the page does not say what to do first, and at what cost: %v", run.First)
	}
	shown := strings.Join(strings.Fields(page), " ")
	for _, s := range run.First { // the text may break lines, but not words
		if words := strings.Join(strings.Fields(s.Text), " "); !strings.Contains(flat, words) || !strings.Contains(shown, words) {
			t.Errorf("%q is not both in the text and on the page", words)
		}
	}
	for _, f := range r.Verdict.Root[0].Fix {
		for _, words := range []string{report.Terms(f), report.Changes(f)} {
			if !strings.Contains(shown, words) {
				t.Errorf("the page says of a fix something else than %q", words)
			}
		}
	}
	for _, f := range r.Verdict.Findings {
		for _, c := range f.Clues {
			if c.Value != nil && !strings.Contains(page, report.Number(*c.Value)+"\n") || !strings.Contains(page, c.Say) {
				t.Errorf("the page lacks clue %s: %s", c.ID, c.Say)
			}
		}
	}
	for _, want := range []string{r.Verdict.Sentence, report.Offered(r), "binds"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestWholeNumbers: a size in bytes keeps all its digits, as in JSON.
func TestWholeNumbers(t *testing.T) {
	for v, want := range map[float64]string{7726788608: "7726788608", 0.89126133300001: "0.891261333", 1e-7: "1e-07", 180: "180"} {
		var doc bytes.Buffer
		check(t, report.Document(&doc, map[string]float64{"v": v}))
		if got := report.Number(v); got != want || !strings.Contains(doc.String(), want+"\n") {
			t.Errorf("%v is %q on the page, and in JSON\n%s", v, got, doc.String())
		}
	}
}

// TestHostile: no text of a run becomes part of the page, steers it or makes it wide.
func TestHostile(t *testing.T) {
	evil := "<script>alert(1)</script>]]></style><img src=x onerror=alert(1)>\"'`\u202e\u2066\x1b[8m\u0000javascript:alert(1)" + strings.Repeat("W", 10_000)
	hosts := []string{"client" + evil, "server"}
	_, run := read(t, made{seconds: 12, hosts: hosts, text: evil}.write(t))
	page := written(t, run)
	for _, bad := range []string{"<script>alert", "<img", "\u202e", "\u2066", "\x1b", "\x00", strings.Repeat("W", mostText+1)} {
		if strings.Contains(page, bad) {
			at := strings.Index(page, bad)
			t.Errorf("%.20q stands in the page: …%.300q", bad, page[max(at-200, 0):])
		}
	}
	if n := strings.Count(page, "</style>"); n != 1 {
		t.Errorf("%d styles end, want 1", n)
	}
	wellFormed(t, page)
	scripts(t, page)
	leave(t, "hostile.html", page)
}

// leave leaves a page, or the JSON of its numbers, in $PLIMSOLL_PAGES, for ui/test.
func leave(t *testing.T, name, text string) {
	if folder := os.Getenv("PLIMSOLL_PAGES"); folder != "" {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
}

// scripts holds the page's scripts against what they may be: data that is JSON, and the
// page's own, which its policy names by its hash.
func scripts(t *testing.T, page string) {
	t.Helper()
	own := 0
	for n := range parsed(t, page).Descendants() {
		if n.Type != html.ElementNode || n.Data != "script" {
			continue
		}
		text := n.FirstChild.Data
		switch {
		case has(n, "type", "application/json"):
			if !json.Valid([]byte(text)) || strings.ContainsAny(text, "<>&\u2028") {
				t.Errorf("data that is not JSON, or not safe in a page: %.200s", text)
			}
		case text == pageJS && len(n.Attr) == 0:
			own++
		default:
			t.Errorf("a script that is not the page's own: %.200s", text)
		}
	}
	sum := sha256.Sum256([]byte(pageJS))
	policy := "default-src &#39;none&#39;; img-src data:; style-src &#39;unsafe-inline&#39;; script-src &#39;sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "&#39;"
	if own != 1 || !strings.Contains(html.UnescapeString(page), html.UnescapeString(policy)) {
		t.Errorf("%d scripts of the page's own, want 1, and a policy that lets it run alone", own)
	}
}

// elements are those that the page is made of.
var elements = strings.Fields(`html head meta title style body nav b a main header p h1 h2 h3 h4 br dl div dt dd small section table thead tbody tr th td
	figure figcaption span script article details summary ul ol li code pre footer svg desc rect path text circle`)

// wellFormed holds a page against what any page has to be: only known elements, no
// resource from elsewhere, each name once, headings in order, drawings with titles, tables
// with heads.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	ids := map[string]bool{}
	var links []string
	level := 0
	for n := range parsed(t, page).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("the page has an element <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("two parts are called %q", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "href":
				links = append(links, a.Val)
			case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "style", a.Key == "xlink:href":
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			case strings.Contains(a.Val, "url("):
				t.Errorf("<%s> fetches: %s=%q", n.Data, a.Key, a.Val)
			}
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '4' {
			now := int(n.Data[1] - '0')
			if now > level+1 {
				t.Errorf("<h%d> follows <h%d>", now, level)
			}
			level = now
		}
		if n.Data == "svg" && has(n, "role", "img") && (n.FirstChild == nil || n.FirstChild.Data != "title") {
			t.Error("a drawing has no title")
		}
		if n.Data == "table" && !slices.ContainsFunc(slices.Collect(n.ChildNodes()), func(c *html.Node) bool { return c.Data == "thead" }) {
			t.Error("a table has no head")
		}
	}
	for _, l := range links {
		if !strings.HasPrefix(l, "#") || !ids[l[1:]] {
			t.Errorf("a link goes to %q, which is not on the page", l)
		}
	}
}

func has(n *html.Node, key, value string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key && a.Val == value })
}

func TestWellFormed(t *testing.T) {
	dir := made{seconds: 12, hosts: []string{"client", "server"}}.write(t)
	_, a := read(t, dir)
	_, b := read(t, dir)
	wellFormed(t, written(t, a, b))
	if strings.Contains(pageCSS, "url(") || strings.Contains(pageCSS, "@import") {
		t.Error("the style fetches something")
	}
}

// TestSize: a page can be mailed.
func TestSize(t *testing.T) {
	for _, test := range []struct {
		name string
		run  made
		most int
	}{
		{"a minute with 5,000 series", made{seconds: 60, hosts: []string{"client", "server"}, series: 2480}, 500_000},
		{"an hour of five hosts", made{seconds: 3600, hosts: []string{"a", "b", "c", "d", "e"}}, 2_000_000},
	} {
		_, run := read(t, test.run.write(t))
		n := len(written(t, run))
		t.Logf("%s: %d bytes", test.name, n)
		if n > test.most {
			t.Errorf("%s: %d bytes, want at most %d", test.name, n, test.most)
		}
	}
}

// TestCompared: two runs on one page, with the numbers that the text has.
func TestCompared(t *testing.T) {
	a, b := opened(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t)), opened(t, made{seconds: 14, hosts: []string{"client", "server"}}.write(t))
	x, err := compare.NewSide(a)
	check(t, err)
	y, err := compare.NewSide(b)
	check(t, err)
	c := compare.Compare(x, y)
	one, err := Compare(c, a, b)
	check(t, err)
	var doc, text bytes.Buffer
	check(t, Write(&doc, Page{Title: "A and B", Compared: []*Comparison{one}}))
	check(t, report.Comparison(&text, c, report.TextOptions{Width: 200}))
	wellFormed(t, doc.String())
	for _, d := range one.Rows {
		for _, s := range []string{d.Name, d.A, d.B, d.Ratio, d.Interval, d.Answer} {
			if !strings.Contains(text.String(), s) || !strings.Contains(words(parsed(t, doc.String())), s) {
				t.Errorf("%s: %q is not both in the text and on the page", d.Name, s)
			}
		}
	}
	if len(one.Figures) < 3 || len(one.Figures[0].Keys) != 2 {
		t.Errorf("%d charts lay one run over the other", len(one.Figures))
	}
}

func opened(t *testing.T, dir string) *record.Run {
	t.Helper()
	run, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { run.Close() })
	return run
}

func TestWalk(t *testing.T) {
	slow, fast, good, none := 100.0, 400.0, 1.0, 0.0
	walk := model.Tuning{Stopped: "nothing holds it back", End: model.TuneEnd{Answer: model.AnswerHealthy, Sentence: "It was served.", TuneLoad: model.TuneLoad{GoodRPS: &fast}},
		Steps: []model.TuneStep{{Number: 1, Sentence: "slow", TuneLoad: model.TuneLoad{GoodRPS: &slow, GoodShare: &good, P50: &none, P99: &none}, Root: &model.Finding{Rule: "x.full", Title: "full"},
			Fix: &model.TuneFix{Outcome: model.Kept, Sentence: "it paid", Changes: []model.TuneChange{{What: "net.core.somaxconn", Host: "server", Old: "1", New: "<b>"}}}}}}
	var doc bytes.Buffer
	check(t, Write(&doc, Page{Title: "tune", Tuned: Walk(walk)}))
	wellFormed(t, doc.String())
	page := words(parsed(t, doc.String()))
	for _, want := range []string{"It was served.", "nothing holds it back", "100", "full", "net.core.somaxconn on server: 1 → <b>", "kept", "it paid"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, layout.Micros(0)) {
		t.Error("nobody's wait came to an end, and it is drawn as none at all")
	}
	if !strings.Contains(doc.String(), `width="25.00%"`) {
		t.Error("a quarter of the best is not drawn as such")
	}
}

// TestBill: a capacity's page says what a request costs and what is promised, in the text's words.
func TestBill(t *testing.T) {
	each := 0.00728
	v := model.Verdict{Answer: model.AnswerCapacity, Sentence: "The CPUs are the limit (server).", Bill: &model.Bill{
		CPUSeconds: 11.5, MachineShare: 0.96, SecondsPerRequest: &each, Samples: 217, Services: []model.LoadGroup{{Name: "php-fpm", Share: 1}}, Notes: []string{"a note <b>"},
		Entries: []model.BillEntry{{Mechanism: "compiling_php", Text: "PHP compiles its scripts", Share: 0.54, PlusMinus: 0.04, SecondsPerRequest: &each, Why: "it is done once", ByHand: "perf record -a",
			Functions: []model.BillFunction{{Function: "zend_compile", File: "/usr/zend.c", Line: 7, Share: 0.3}},
			Avoidable: []model.Saving{{ID: "opcache", Title: "Switch opcache on", Evidence: "<i>", Share: 0.54, Throughput: 2.17, Remedy: "php.ini: opcache.enable=1", Costs: "shared memory"}}}}}}
	doc := written(t, &Run{Report: model.Report{Verdict: v}, Bill: billOf(v)})
	wellFormed(t, doc)
	page := words(parsed(t, doc))
	for _, want := range []string{"7.28 ms of CPU time each (php-fpm 100 %), by 217 samples", "PHP compiles its scripts", "54 %", "± 4.0 %", "zend_compile zend.c:7 30 %",
		"Switch opcache on: up to 2.17 × the replies by: php.ini: opcache.enable=1", "It costs shared memory.", "perf record -a", "a note <b>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	v.Answer, v.Bill.MachineShare = model.AnswerHealthy, 0.3
	if len(billOf(v).Items) > 0 {
		t.Error("a healthy run on idle CPUs has a bill, and the text has none")
	}
}

func TestTested(t *testing.T) {
	var doc bytes.Buffer
	check(t, Write(&doc, Page{Title: "a test", Tested: &Tested{Sentence: "1 of 2 trials right.", Notes: []string{"a note"},
		Tables: []Table{{Title: "The matrix", Head: []string{"truth", "named"}, Rows: [][]string{{"x.full", "x.full"}, {"<i>", "y"}}, Alarms: map[int]bool{1: true}}}}}))
	wellFormed(t, doc.String())
	if strings.Count(doc.String(), `<tr class="binds">`) != 1 || !strings.Contains(words(parsed(t, doc.String())), "<i>") {
		t.Errorf("one row of the matrix is wrong, and all are words:\n%s", doc.String())
	}
}

func TestAbsentIsNoZero(t *testing.T) {
	_, run := read(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t))
	client := run.Hosts[slices.IndexFunc(run.Hosts, func(h Host) bool { return h.Name == "client" })]
	if !slices.Contains(client.Unseen, "Disks: busy (denied: run as root)") {
		t.Errorf("what was denied is not said: %q", client.Unseen)
	}
	if slices.ContainsFunc(client.Figures, func(f Figure) bool { return f.Title == "Disks: busy" }) {
		t.Error("what was denied is drawn")
	}
}

// What a program is held back by is marked at its place on a request's way, and what is about another program is not.
func TestFindingsStandAtTheirPrograms(t *testing.T) {
	list := []Stage{{Name: "Workers", host: "a", process: "nginx", rules: workerRules}, {Name: "Workers", host: "a", process: "memcached", rules: workerRules},
		{Name: "Upstream", host: "a", rules: upstreamRules}}
	at := map[string]string{"host": "a", "listen": "127.0.0.1:11211"}
	if got := stagesOf(list, model.Finding{Rule: "memcached.evicts", Subject: at}); !slices.Equal(got, []int{1}) {
		t.Errorf("memcached's stands at %v, want 1", got)
	}
	redis := model.Finding{Rule: "redis.evicts", Subject: at}
	if got := stagesOf(list, redis); got != nil {
		t.Errorf("Redis' stands at %v", got)
	}
	list = withProgram(list, redis)
	if got := stagesOf(list, redis); !slices.Equal(got, []int{2}) || list[3].Name != "Upstream" {
		t.Errorf("Redis' stands at %v of %+v, want 2, before what waits for others", got, list)
	}
}

// Of two sides the second looks like the second, also where the first has nothing to show.
func TestASideWithoutCoursesKeepsItsPlace(t *testing.T) {
	rec := opened(t, made{seconds: 20, hosts: []string{"client", "server"}}.write(t))
	r, err := newReader(rec)
	check(t, err)
	f := r.figure(plot{title: "x", unit: aSecond}, append(named("A", nil), named("B", r.one("", "plimsoll_load_outcomes_total", rate))...))
	if len(f.Keys) != 2 || !f.Keys[0].None || f.Keys[1].None || strings.Count(string(f.SVG), `<path d="" stroke="`+svg.Colors[0]) != 1 || !strings.Contains(string(f.SVG), `stroke="`+svg.Colors[1]) {
		t.Errorf("keys %+v of %s", f.Keys, f.SVG)
	}
}

// Under an open load the scale is the load's, and not that of the one connection that was as fast as it could before.
func TestCalmDoesNotHideTheOfferedRate(t *testing.T) {
	list := after([]course{{name: "good", points: []svg.Point{{Time: 1, Value: 9000}, {Time: 2, Value: 8000}, {Time: 3, Value: 100}}}, {name: "calm", points: []svg.Point{{Time: 2, Value: 1}}}}, 2)
	if len(list) != 1 || len(list[0].points) != 1 || list[0].peak() != 100 {
		t.Errorf("left are %+v", list)
	}
}

func TestLinesOfAFileStandTogether(t *testing.T) {
	got := byFile([]model.TuneLine{{File: "a", Line: "1"}, {File: "b", Line: "2"}, {File: "a", Line: "3"}})
	if len(got) != 2 || !slices.Equal(got[0].Lines, []string{"1", "3"}) {
		t.Errorf("%+v", got)
	}
}

// A clue's chart is in the unit of its sentence.
func TestUnitOfAClue(t *testing.T) {
	for say, want := range map[string][2]string{
		"{{percent .Value}} of it":               {"0.05 %", "ratio"},
		"that is {{ratio .Value}} as long":       {"0.05 %", "of what it is compared with"},
		"each 100: {{hundred .Value}} of them":   {"0.05 %", "of what it is compared with"},
		"{{.Labels.of}} took {{seconds .Value}}": {"500 µs", "seconds"},
		"it held {{bytes .Value}}":               {"0 bytes", "bytes"},
		"{{count .Value}} of {{.Labels.what}}":   {"0.0005", ""},
		"there is no number":                     {"0.0005", ""},
	} {
		text, err := ruleset.ParseText(say)
		check(t, err)
		u := unitOf(&ruleset.Clue{SayText: text})
		if got := [2]string{u.write(0.0005), u.base}; got != want {
			t.Errorf("%s: %q, want %q", say, got, want)
		}
	}
}
