package breakdown

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// The synthetic run: a second of baseline, ten of hold, one of cool.
const (
	holdFrom = 1_000
	holdTo   = 11_000
	end      = 12_000
)

// synthetic is a run of two hosts in the making.
type synthetic struct {
	memory *record.Memory
	meta   model.Run
}

func newSynthetic() *synthetic {
	return &synthetic{memory: new(record.Memory), meta: model.Run{
		Plan:  model.Plan{Mode: "run", Generator: "client", Load: &model.LoadPlan{URL: "http://10.77.0.2/", KeepAlive: true}},
		Hosts: []model.Host{{Name: "client"}, {Name: "server"}},
		Windows: []model.Window{
			{Name: model.Baseline, Start: 0, End: holdFrom}, {Name: model.Hold, Start: holdFrom, End: holdTo}, {Name: model.Cool, Start: holdTo, End: end},
		},
		Status: map[string]map[string]model.Status{"client": {}, "server": {}},
	}}
}

func (s *synthetic) series(text string, points ...record.Point) {
	name, rest, _ := strings.Cut(text, "{")
	b := labels.NewScratchBuilder(8)
	b.Add(labels.MetricName, name)
	host := ""
	for _, pair := range strings.Split(strings.TrimSuffix(rest, "}"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		b.Add(name, value)
		if name == "host" {
			host = value
		}
	}
	b.Sort()
	s.memory.Add(b.Labels(), points)
	s.meta.Status[host][name] = model.Status{State: model.Read}
}

// counter grows by so much in the hold window, and not outside of it.
func (s *synthetic) counter(text string, grows float64) {
	s.series(text, record.Point{Time: 0, Value: 7}, record.Point{Time: holdFrom, Value: 7}, record.Point{Time: holdTo, Value: 7 + grows}, record.Point{Time: end, Value: 7 + grows})
}

// fromZero is counter for what the load counts by phase.
func (s *synthetic) fromZero(text string, grows float64) {
	s.series(text, record.Point{Time: holdFrom, Value: 0}, record.Point{Time: holdTo, Value: grows})
}

// level has one value all the time.
func (s *synthetic) level(text string, v float64) {
	s.series(text, record.Point{Time: 0, Value: v}, record.Point{Time: holdFrom, Value: v}, record.Point{Time: holdTo, Value: v}, record.Point{Time: end, Value: v})
}

// load puts n good requests whose mean time consists of parts in milliseconds.
func (s *synthetic) load(n float64, parts map[string]float64) {
	sum := 0.0
	for _, name := range []string{"queue", "late", "connect", "connect_lag", "first_byte", "body", "reply_lag"} {
		s.fromZero("plimsoll_load_request_seconds_total{host=client,phase=hold,part="+name+"}", n*parts[name]/1e3)
		sum += n * parts[name] / 1e3
	}
	s.fromZero("plimsoll_load_outcomes_total{host=client,phase=hold,outcome=2xx}", n)
	s.fromZero("plimsoll_load_wait_seconds_total{host=client,phase=hold,outcome=2xx}", sum)
	s.fromZero("plimsoll_load_connect_call_seconds_sum{host=client,phase=hold}", n*parts["connect_call"]/1e3)
	stamped := n / 10
	if parts["unread"] < 0 { // nobody looked
		stamped = 0
	}
	s.fromZero("plimsoll_load_reply_unread_seconds_sum{host=client,phase=hold}", stamped*parts["unread"]/1e3)
	s.fromZero("plimsoll_load_reply_unread_seconds_count{host=client,phase=hold}", stamped)
}

func (s *synthetic) reader() *reader {
	s.memory.Sort()
	return &reader{meta: s.meta, run: record.InMemory(s.meta, s.memory), first: 0, last: end, from: holdFrom, to: holdTo}
}

func (s *synthetic) breakdown(t *testing.T) *model.Breakdown {
	t.Helper()
	r := s.reader()
	b := r.breakdown()
	if r.failed != nil {
		t.Fatal(r.failed)
	}
	return b
}

// flat writes parts as "where/name detail ms how", those inside another indented.
func flat(parts []model.BreakdownPart, indent string) (list []string) {
	for _, p := range parts {
		took := "unknown"
		if p.Seconds != nil {
			took = fmt.Sprintf("%.4g %s", *p.Seconds*1e3, p.How)
		}
		name := strings.TrimSpace(p.Name + " " + p.Detail)
		list = append(list, fmt.Sprintf("%s%s %s/%s: %s", indent, p.Host, p.Process, name, took))
		list = append(list, flat(p.Parts, indent+"  ")...)
	}
	return list
}

func without(list []string, suffix string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return strings.HasSuffix(s, suffix) })
}

// phpBehindNginx is a thousand requests of 10 ms: 4 in the queue before PHP, 3
// asleep in it, 1 on a CPU.
func phpBehindNginx(traced bool) *synthetic {
	s := newSynthetic()
	s.load(1000, map[string]float64{"first_byte": 9.8, "body": 0.1, "reply_lag": 0.1, "unread": 0.2})
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=0.0.0.0:80,owner=nginx}", 0)
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=127.0.0.1:9000,owner=php-fpm}", 0.4)
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=0.0.0.0:22,owner=sshd}", 0)
	s.level("plimsoll_tcp_destination_sockets{host=server,dst=127.0.0.1:9000,state=established}", 10)
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname=nginx,mode=user}", 0.1)
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname=nginx,mode=system}", 0.3)
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname=php-fpm,mode=user}", 0.8)
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname=php-fpm,mode=system}", 0.2)
	s.counter("plimsoll_process_run_delay_seconds_total{host=server,groupname=nginx}", 0.05)
	s.counter("plimsoll_process_run_delay_seconds_total{host=server,groupname=php-fpm}", 0.5)
	s.counter("plimsoll_nginx_upstream_response_seconds_sum{host=server}", 9)
	s.counter("plimsoll_nginx_upstream_response_seconds_count{host=server}", 1000)
	if !traced {
		return s
	}
	blocked := func(labels string, before, during float64) {
		s.series("plimsoll_wait_blocked_seconds_total{host=server,"+labels+"}",
			record.Point{Time: 0, Value: 0}, record.Point{Time: holdFrom, Value: before}, record.Point{Time: holdTo, Value: before + during})
	}
	blocked("groupname=nginx,reason=poll", 2, 19)
	blocked("groupname=nginx,reason=disk", 0, 0.02)
	blocked("groupname=php-fpm,reason=accept,towards=clients@127.0.0.1:9000", 8, 40)
	blocked("groupname=php-fpm,reason=socket_read,towards=clients@127.0.0.1:9000", 0, 50)
	blocked("groupname=php-fpm,reason=sleep", 0, 3)
	blocked("groupname=php-fpm,reason=lock", 1, 9.9) // one thread that always waits, and now and then does something
	blocked("groupname=postgres,reason=socket_read,towards=10.0.0.9:5432", 0, 1)
	s.counter("plimsoll_unread_seconds_sum{host=server,role=server,port=80,groupname=nginx}", 0.4)
	s.counter("plimsoll_unread_seconds_sum{host=server,role=client,dst=127.0.0.1:9000,groupname=nginx}", 0.1)
	s.counter("plimsoll_tcp_connect_setup_seconds_sum{host=server,groupname=nginx,dst=127.0.0.1:9000}", 0.03)
	return s
}

func TestATracedRun(t *testing.T) {
	b := phpBehindNginx(true).breakdown(t)
	want := []string{
		"client plimsoll-load/connect: 0 exact",
		"client plimsoll-load/connect_lag: 0 exact",
		"server nginx/unread: 0.4 little",
		"  server nginx/accept_queue: 0 little",
		"  server nginx/busy: 0.3404 estimate",
		"  server nginx/busy_cpu_wait: 0.04255 estimate",
		"  server nginx/busy_blocked: 0.01702 estimate",
		"server nginx/cpu_user: 0.1 exact",
		"server nginx/cpu_system: 0.3 exact",
		"  server nginx/connect_setup: 0.03 exact",
		"  server nginx/cpu_system_rest: 0.27 exact",
		"server nginx/cpu_wait: 0 estimate",
		"server nginx/blocked disk: 0.02 exact",
		"server nginx/upstream 127.0.0.1:9000: 9 estimate",
		"  server php-fpm/accept_queue: 4 little",
		"  server php-fpm/cpu_user: 0.8 exact",
		"  server php-fpm/cpu_system: 0.2 exact",
		"  server php-fpm/cpu_wait: 0.5 exact",
		"  server php-fpm/blocked sleep: 3 estimate",
		"  server nginx/upstream_unread: 0.1 little",
		"client plimsoll-load/reply_unread: 0.2 estimate",
	}
	if diff := cmp.Diff(want, flat(b.Parts, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(b.Warnings) != 0 {
		t.Errorf("warnings %q", b.Warnings)
	}
	const attributed = 0.4 + 0.4 + 0.02 + 4 + 1 + 0.5 + 3 + 0.1 + 0.2
	if math.Abs(b.MeanSeconds-0.010) > 1e-9 || math.Abs(b.AttributedSeconds*1e3-attributed) > 1e-6 ||
		math.Abs(b.NotAttributedSeconds*1e3-(10-attributed)) > 1e-6 || math.Abs(b.AttributedShare-attributed/10) > 1e-9 {
		t.Errorf("mean %g s, attributed %g s (%g), not %g s", b.MeanSeconds, b.AttributedSeconds, b.AttributedShare, b.NotAttributedSeconds)
	}
	if b.Good == nil || b.Good.Requests != 1000 || b.Bad != nil {
		t.Errorf("good %+v, bad %+v", b.Good, b.Bad)
	}
}

// A wait for a CPU of which half follows an idle wait: that half is in the time
// until the request was read.
func TestAWaitForACPUIsCountedOnce(t *testing.T) {
	s := phpBehindNginx(true)
	s.counter("plimsoll_wait_blocks_total{host=server,groupname=nginx,reason=poll}", 500)
	s.counter("plimsoll_runqueue_wait_seconds_sum{host=server,groupname=nginx}", 0.06)
	s.counter("plimsoll_runqueue_wait_seconds_count{host=server,groupname=nginx}", 1000)
	s.counter("plimsoll_runqueue_wait_seconds_sum{host=server,groupname=php-fpm}", 0.5)
	s.counter("plimsoll_runqueue_wait_seconds_count{host=server,groupname=php-fpm}", 1000)
	got := flat(s.breakdown(t).Parts, "")
	for _, want := range []string{"server nginx/cpu_wait: 0.03 estimate", "  server php-fpm/cpu_wait: 0.5 exact"} {
		if !slices.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// What the tracer of requests timed tells how long they lay unread, where that of unread
// bytes did not run. It saw 200 of the 1,000 at the front, each of them 0.4 ms.
func TestWhatRequestsTimedStandsForUnreadBytes(t *testing.T) {
	s := phpBehindNginx(false)
	s.counter("plimsoll_requests_unread_seconds_sum{host=server,groupname=nginx,listen=0.0.0.0:80}", 0.08)
	s.counter("plimsoll_requests_unread_seconds_count{host=server,groupname=nginx,listen=0.0.0.0:80}", 200)
	s.counter("plimsoll_requests_upstream_unread_seconds_sum{host=server,groupname=nginx,dst=127.0.0.1:9000}", 0.1)
	for level, want := range map[string][]string{
		"throughout": {"server nginx/unread: 0.4 exact", "  server nginx/upstream_unread: 0.1 exact", "  server php-fpm/unread: unknown"},
		"in bursts":  {"server nginx/unread: 0.4 estimate", "  server nginx/upstream_unread: 0.1 estimate", "  server php-fpm/unread: unknown"},
	} {
		s.meta.Tracing = &model.Tracing{Level: "light"}
		if level == "in bursts" {
			s.meta.Tracing.Duty = map[string]float64{"requests": 0.05}
		}
		got := flat(s.breakdown(t).Parts, "")
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s: want %q in\n%s", level, line, strings.Join(got, "\n"))
			}
		}
	}
}

func TestWithoutTracersPartsAreUnknownAndNeverZero(t *testing.T) {
	b := phpBehindNginx(false).breakdown(t)
	want := []string{
		"client plimsoll-load/connect: 0 exact",
		"client plimsoll-load/connect_lag: 0 exact",
		"server nginx/accept_queue: 0 little",
		"server nginx/unread: unknown",
		"server nginx/cpu_user: 0.1 exact",
		"server nginx/cpu_system: 0.3 exact",
		"server nginx/cpu_wait: 0.05 exact",
		"server nginx/blocked: unknown",
		"server nginx/upstream 127.0.0.1:9000: 9 estimate",
		"  server php-fpm/accept_queue: 4 little",
		"  server php-fpm/unread: unknown",
		"  server php-fpm/cpu_user: 0.8 exact",
		"  server php-fpm/cpu_system: 0.2 exact",
		"  server php-fpm/cpu_wait: 0.5 exact",
		"  server php-fpm/blocked: unknown",
		"  server nginx/upstream_unread: unknown",
		"client plimsoll-load/reply_unread: 0.2 estimate",
	}
	if diff := cmp.Diff(want, flat(b.Parts, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range b.Parts {
		if p.Seconds == nil && !strings.Contains(p.Why, "was not looked for on server") {
			t.Errorf("%s: unknown because %q", p.Name, p.Why)
		}
	}
}

func TestWhatWasReadAndIsNotThereIsNothing(t *testing.T) {
	s := phpBehindNginx(false)
	s.meta.Status["server"]["plimsoll_wait_blocked_seconds_total"] = model.Status{State: model.Read}
	if got := flat(s.breakdown(t).Parts, ""); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "blocked") }) {
		t.Errorf("a tracer that saw no block gives\n%s", strings.Join(got, "\n"))
	}
	s.meta.Status["server"]["plimsoll_wait_blocked_seconds_total"] = model.Status{State: model.Denied, Why: "tracing takes CAP_BPF"}
	for _, p := range s.breakdown(t).Parts {
		if p.Name == "blocked" && p.Why != "plimsoll_wait_blocked_seconds_total: tracing takes CAP_BPF" {
			t.Errorf("unknown because %q", p.Why)
		}
	}
}

func TestTheGeneratorIsTheSlowOne(t *testing.T) {
	s := newSynthetic()
	s.meta.Plan.Load.Rate = 100
	s.load(1000, map[string]float64{"queue": 1, "late": 2, "connect": 0.5, "connect_call": 0.1, "connect_lag": 0.25, "first_byte": 5, "body": 1, "reply_lag": 3, "unread": 8})
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=client,groupname=plimsoll-load,mode=user}", 1)
	s.counter("namedprocess_namegroup_cpu_seconds_total{host=client,groupname=plimsoll-load,mode=system}", 1)
	s.counter("plimsoll_process_run_delay_seconds_total{host=client,groupname=plimsoll-load}", 6)
	b := s.breakdown(t)
	want := []string{
		"client plimsoll-load/queue: 1 exact",
		"client plimsoll-load/late: 2 exact",
		"client plimsoll-load/connect: 0.5 exact",
		"  client plimsoll-load/connect_call: 0.1 exact",
		"  client plimsoll-load/syn_wait: 0.4 exact",
		"client plimsoll-load/connect_lag: 0.25 exact",
		" /server: unknown",
		"client plimsoll-load/reply_unread: 8 estimate",
		"  client plimsoll-load/busy: 2 estimate",
		"  client plimsoll-load/busy_cpu_wait: 6 estimate",
	}
	if diff := cmp.Diff(want, flat(b.Parts, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if math.Abs(b.NotAttributedSeconds-0.001) > 1e-9 {
		t.Errorf("%g s not attributed, want the 1 ms that nobody saw", b.NotAttributedSeconds)
	}
}

func TestAFixedRatesReplyEndsWhenItCame(t *testing.T) {
	s := newSynthetic()
	s.meta.Plan.Load.Rate = 100
	s.load(1000, map[string]float64{"first_byte": 5, "body": 1, "unread": -1})
	why := func() string {
		parts := s.breakdown(t).Parts
		return parts[len(parts)-1].Why
	}
	if got := why(); !strings.Contains(got, "no reply's arrival was stamped") {
		t.Errorf("without stamps: %q", got)
	}
	s.counter("plimsoll_load_unread_seconds{host=client,phase=hold,quantile=0.5}", 0.001)
	if got := why(); !strings.Contains(got, "ends when it came") {
		t.Errorf("with stamps: %q", got)
	}
}

func TestGoodAndBadRequestsApart(t *testing.T) {
	s := newSynthetic()
	s.load(900, map[string]float64{"first_byte": 10})
	s.fromZero("plimsoll_load_outcomes_total{host=client,phase=hold,outcome=connect:timeout}", 100)
	s.fromZero("plimsoll_load_wait_seconds_total{host=client,phase=hold,outcome=connect:timeout}", 200)
	b := s.breakdown(t)
	want := []*model.MeanTime{{Requests: 900, Seconds: 0.010}, {Requests: 100, Seconds: 2}}
	if diff := cmp.Diff(want, []*model.MeanTime{b.Good, b.Bad}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if math.Abs(b.MeanSeconds-0.209) > 1e-9 {
		t.Errorf("mean %g s, want 0.209", b.MeanSeconds)
	}
}

func TestOverlapIsAWarningAndNotScaled(t *testing.T) {
	s := phpBehindNginx(false)
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=0.0.0.0:9000,owner=php-fpm}", 0.9)
	b := s.breakdown(t)
	if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0], "the parts of the upstream server") {
		t.Errorf("warnings %q", b.Warnings)
	}
	got := flat(b.Parts, "")
	if !slices.Contains(got, "  server php-fpm/accept_queue: 13 estimate") {
		t.Errorf("want the queue as it was measured in\n%s", strings.Join(got, "\n"))
	}
	if b.AttributedSeconds > b.MeanSeconds {
		t.Errorf("attributed %g s of %g s", b.AttributedSeconds, b.MeanSeconds)
	}
}

func TestAnOlderRunTellsItsMeanAlone(t *testing.T) {
	s := newSynthetic()
	s.fromZero("plimsoll_load_outcomes_total{host=client,phase=hold,outcome=2xx}", 10)
	s.fromZero("plimsoll_load_wait_seconds_total{host=client,phase=hold,outcome=2xx}", 1)
	b := s.breakdown(t)
	if b.MeanSeconds != 0.1 || b.AttributedSeconds != 0 || b.NotAttributedSeconds != 0.1 {
		t.Errorf("%+v", b)
	}
	if known := without(flat(b.Parts, ""), ": unknown"); len(known) > 0 {
		t.Errorf("known: %q", known)
	}
}

// Threads that wait on a lock before the load wait there when idle; a sleep
// longer than its request cannot be a request's.
func TestIdleThreadsAreNoRequestsTime(t *testing.T) {
	s := phpBehindNginx(true)
	s.series("plimsoll_wait_blocked_seconds_total{host=server,groupname=php-fpm,reason=child}", record.Point{Time: holdFrom, Value: 0}, record.Point{Time: holdTo, Value: 100})
	got := flat(s.breakdown(t).Parts, "")
	if !slices.Contains(got, "  server php-fpm/blocked child: unknown") {
		t.Errorf("100 ms of waiting for children in a request of 10 ms:\n%s", strings.Join(got, "\n"))
	}
	if slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "lock:") || strings.Contains(s, "blocked lock") }) {
		t.Errorf("an idle thread's lock is a part:\n%s", strings.Join(got, "\n"))
	}
}

// A thread that waits for most of the window and wakes a few times is idle,
// though the waits seem to fit into the requests.
func TestALongWaitIsAnIdleThreads(t *testing.T) {
	s := phpBehindNginx(true)
	s.series("plimsoll_wait_blocked_seconds_total{host=server,groupname=php-fpm,reason=child}", record.Point{Time: holdFrom, Value: 0}, record.Point{Time: holdTo, Value: 4})
	s.counter("plimsoll_wait_blocks_total{host=server,groupname=php-fpm,reason=child}", 8)
	s.counter("plimsoll_wait_blocks_total{host=server,groupname=php-fpm,reason=sleep}", 1000)
	got := flat(s.breakdown(t).Parts, "")
	if slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "blocked child") }) || !slices.Contains(got, "  server php-fpm/blocked sleep: 3 estimate") {
		t.Errorf("eight waits of half a second, and a thousand of 3 ms:\n%s", strings.Join(got, "\n"))
	}
}

func TestRequestsThatWereNeverSentWaitForNoUpstream(t *testing.T) {
	s := phpBehindNginx(true)
	s.fromZero("plimsoll_load_outcomes_total{host=client,phase=hold,outcome=connect:ECONNREFUSED}", 3000)
	if got := flat(s.breakdown(t).Parts, ""); !slices.Contains(got, "server nginx/upstream 127.0.0.1:9000: 2.25 estimate") {
		t.Errorf("a quarter of the requests waited 9 ms:\n%s", strings.Join(got, "\n"))
	}
}

func TestABusyServerIsSaidToBe(t *testing.T) {
	s := phpBehindNginx(false)
	s.counter("plimsoll_wait_blocked_seconds_total{host=server,groupname=nginx,reason=poll}", 0.0045)
	for _, p := range s.breakdown(t).Parts {
		if p.Name == "unread" && !strings.Contains(p.Why, "nginx was idle for 0.99 % of the time") {
			t.Errorf("unknown because %q", p.Why)
		}
	}
}

// An application that asks a database itself: its wait for it holds what the database did.
func TestAnUpstreamThatIsWaitedForIsATree(t *testing.T) {
	s := newSynthetic()
	s.load(1000, map[string]float64{"first_byte": 10})
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=[::]:80,owner=app}", 0)
	s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=127.0.0.1:5432,owner=postgres}", 0)
	s.counter("plimsoll_wait_blocked_seconds_total{host=server,groupname=app,reason=socket_read,towards=127.0.0.1:5432}", 6)
	s.counter("plimsoll_wait_blocked_seconds_total{host=server,groupname=app,reason=socket_read,towards=10.0.0.9:6379}", 1)
	s.counter("plimsoll_wait_blocked_seconds_total{host=server,groupname=postgres,reason=disk}", 5)
	got := without(flat(s.breakdown(t).Parts, ""), ": unknown")
	want := []string{
		"client plimsoll-load/connect: 0 exact", "client plimsoll-load/connect_lag: 0 exact",
		"server app/accept_queue: 0 little",
		"server app/upstream 10.0.0.9:6379: 1 exact",
		"server app/upstream 127.0.0.1:5432: 6 exact",
		"  server postgres/accept_queue: 0 little",
		"  server postgres/blocked disk: 5 exact",
		"client plimsoll-load/reply_unread: 0 estimate",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoLoadNoBreakdown(t *testing.T) {
	if b := newSynthetic().breakdown(t); b != nil {
		t.Errorf("%+v of no request", b)
	}
}

// Where nobody knows whose the destinations of a host are, each process stands in
// the tree once all the same; and nowhere, when they are known to be another's.
func TestEachProcessStandsInTheTreeOnce(t *testing.T) {
	for _, owned := range []bool{false, true} {
		s := phpBehindNginx(false)
		for i := range 40 {
			service, address := fmt.Sprintf("service-%d", i), fmt.Sprintf("127.0.0.1:%d", 7000+i)
			s.level("plimsoll_tcp_listen_queue_mean{host=server,listen="+address+",owner="+service+"}", 0)
			s.level("plimsoll_tcp_destination_sockets{host=server,dst="+address+",state=established}", 2)
			s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname="+service+",mode=user}", 0.001)
			s.counter("namedprocess_namegroup_cpu_seconds_total{host=server,groupname="+service+",mode=system}", 0.001)
			if owned {
				s.level("plimsoll_tcp_destination_owner_info{host=server,dst="+address+",owner="+service+"}", 1)
			}
		}
		s.level("plimsoll_tcp_destination_owner_info{host=server,dst=127.0.0.1:9000,owner=nginx}", 1)
		times := map[string]int{}
		for _, l := range flat(s.breakdown(t).Parts, "") {
			if name, ok := strings.CutSuffix(strings.Fields(l)[1], "/cpu_user:"); ok {
				times[name]++
			}
		}
		want := map[string]int{"nginx": 1, "php-fpm": 1}
		for i := range 40 {
			if !owned {
				want[fmt.Sprintf("service-%d", i)] = 1
			}
		}
		if diff := cmp.Diff(want, times); diff != "" {
			t.Errorf("owners known: %v (-want +got):\n%s", owned, diff)
		}
	}
}

func TestWhoListens(t *testing.T) {
	s := newSynthetic()
	for _, l := range []string{
		"host=server,listen=0.0.0.0:80,owner=nginx", "host=client,listen=0.0.0.0:80,owner=other", "host=client,listen=127.0.0.1:9000,owner=wrong",
		"host=server,listen=127.0.0.1:9000,owner=php", "host=server,listen=[::]:9000,owner=any", "host=server,listen=unix:/run/x.sock,owner=pool",
	} {
		s.level("plimsoll_tcp_listen_queue_mean{"+l+"}", 0)
	}
	r := s.reader()
	for _, c := range []struct{ address, from, want string }{
		{"10.77.0.2:80", "client", "server nginx"},
		{"10.77.0.2:80", "server", "client other"},
		{"127.0.0.1:80", "server", "server nginx"},
		{"shop.example:80", "client", "server nginx"},
		{"127.0.0.1:9000", "server", "server php"},
		{"[::1]:9000", "server", "server any"},
		{"10.77.0.2:9000", "client", "server any"},
		{"unix:/run/x.sock", "server", "server pool"},
		{"unix:/run/x.sock", "client", " "},
		{"10.77.0.2:81", "client", " "},
		{"nonsense", "client", " "},
	} {
		p, _ := r.listensAt(c.address, c.from)
		if got := p.host + " " + p.group; got != c.want {
			t.Errorf("%s from %s: %q, want %q", c.address, c.from, got, c.want)
		}
	}
}

// Whatever was measured, no more is attributed than there is, and parts keep their numbers.
func TestNeverMoreThanTheMean(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := phpBehindNginx(rapid.Bool().Draw(rt, "traced"))
		r := s.reader()
		r.from = rapid.Int64Range(0, end).Draw(rt, "from")
		r.to = rapid.Int64Range(r.from, end).Draw(rt, "to")
		s.level("plimsoll_tcp_listen_queue_mean{host=server,listen=[::]:80,owner=nginx}", rapid.Float64Range(0, 1e4).Draw(rt, "queue"))
		s.memory.Sort()
		b := r.breakdown()
		if b.AttributedSeconds < 0 || b.AttributedSeconds > b.MeanSeconds || b.NotAttributedSeconds < 0 ||
			math.Abs(b.AttributedSeconds+b.NotAttributedSeconds-b.MeanSeconds) > 1e-9 {
			rt.Errorf("attributed %g s, not attributed %g s, mean %g s", b.AttributedSeconds, b.NotAttributedSeconds, b.MeanSeconds)
		}
	})
}

// recorded writes a run to a directory and opens it.
func recorded(t *testing.T, plan model.Plan) *record.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Plan: plan})
	check(t, err)
	outcomes := &model.Signal{Name: "plimsoll_load_outcomes_total", Kind: model.Counter, Labels: []string{"phase", "outcome"}, StartsAtZero: true}
	waits := &model.Signal{Name: "plimsoll_load_wait_seconds_total", Kind: model.Counter, Labels: []string{"phase", "outcome"}, StartsAtZero: true}
	for i := range int64(3) {
		w.Sample("client", holdFrom+1000*i, outcomes, float64(10*i), model.Hold, "2xx")
		w.Sample("client", holdFrom+1000*i, waits, float64(i), model.Hold, "2xx")
		check(t, w.Commit())
	}
	check(t, w.Update(func(r *model.Run) {
		r.Windows = []model.Window{{Name: model.Hold, Start: holdFrom, End: holdFrom + 2000}}
	}))
	check(t, w.Close())
	run, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { run.Close() })
	return run
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOfARecordedRun(t *testing.T) {
	b, err := Of(recorded(t, model.Plan{Generator: "client", Load: &model.LoadPlan{URL: "http://h/"}}))
	check(t, err)
	if b.Requests != 20 || math.Abs(b.MeanSeconds-0.1) > 1e-9 {
		t.Errorf("%+v, want 20 requests of 0.1 s", b)
	}
	b, err = Of(recorded(t, model.Plan{Mode: "watch"}))
	if b != nil || err != nil {
		t.Errorf("%+v, %v of a run without our load", b, err)
	}
}
