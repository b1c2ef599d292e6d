package bill

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/flame"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/trace/cpu"
	"plimsoll/rules"
)

// recorded reads stacks that a run kept of a case of the lab, of that name.
func recorded(t testing.TB, name string) *profile.Profile {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := flame.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// terms are those of the rules; reading these takes a while.
var terms = sync.OnceValues(func() (query.Records, error) {
	set, err := ruleset.Load(rules.FS)
	return set.Known(), err
})

func known(t testing.TB) query.Records {
	t.Helper()
	list, err := terms()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// runOf makes a run of ten seconds in which these groups served.
func runOf(t testing.TB, groups []string, series ...string) *query.Run {
	t.Helper()
	var v notation.Run
	for _, g := range groups {
		series = append(series,
			`namedprocess_namegroup_cpu_seconds_total{host="server",groupname="`+g+`",mode="user"} 0+0.5x10`,
			`plimsoll_tcp_listen_accepted{host="server",listen="0.0.0.0:80",owner="`+g+`"} 1x10`)
	}
	doc, err := yaml.Marshal(map[string]any{"series": series})
	if err == nil {
		err = yaml.Unmarshal(doc, &v)
	}
	if err == nil {
		err = v.Compile()
	}
	if err != nil {
		t.Fatal(err)
	}
	first, last := int64(notation.Start), int64(notation.Start)+10_000
	return query.Over(v.Meta, v.Store, first, last)
}

func entry(t *testing.T, b *model.Bill, mechanism string) model.BillEntry {
	t.Helper()
	i := slices.IndexFunc(b.Entries, func(e model.BillEntry) bool { return e.Mechanism == mechanism })
	if i < 0 {
		t.Fatalf("there is no %s on the bill: %+v", mechanism, b.Entries)
	}
	return b.Entries[i]
}

// What a hundred requests a second cost, and what of it the first mechanism is.
// The shares were read by hand from these profiles, with go tool pprof.
func TestRecordedCases(t *testing.T) {
	const replies = `plimsoll_load_outcomes_total{host="client",phase="hold",outcome="2xx"} 0+100x10`
	for name, c := range map[string]struct {
		groups []string
		series []string
		first  string
		share  float64
		saving string
	}{
		"php-compiles": {groups: []string{"php-fpm8.2", "nginx"}, first: "compiling_php", share: 0.53, saving: "opcache_asked"},
		"gzip-nine":    {groups: []string{"nginx"}, first: "compression", share: 0.935, saving: "level"},
		"upstream-connects": {groups: []string{"nginx"}, first: "connections", share: 0.479, saving: "upstream_keepalive", series: []string{
			`plimsoll_tcp_connect_seconds_count{host="server",groupname="nginx",dst="127.0.0.1:8080"} 0+100x10`,
			`plimsoll_tcp_accept_queue_arrivals_total{host="server",port="8080"} 0+100x10`,
		}},
		"fault-storm": {groups: []string{"python3"}, first: "page_faults", share: 0.924, saving: "keep_memory", series: []string{
			`namedprocess_namegroup_minor_page_faults_total{host="server",groupname="python3"} 0+1000000x10`,
		}},
		"php-xdebug":          {groups: []string{"php-fpm8.2", "nginx"}, first: "instrumentation", share: 0.269, saving: "off"},
		"apache-modsecurity":  {groups: []string{"apache2"}, first: "application_firewall", share: 0.392, saving: "fewer_rules"},
		"php-open-basedir":    {groups: []string{"php-fpm8.2", "nginx"}, first: "path_resolving", share: 0.877, saving: "realpath_cache"},
		"postgres-indexes":    {groups: []string{"postgres"}, first: "index_upkeep", share: 0.839, saving: "fewer_indexes"},
		"postgres-partitions": {groups: []string{"postgres"}, first: "planning_postgres", share: 0.70, saving: "plan_less"},
		"healthy-saturated":   {groups: []string{"php-fpm8.2", "nginx"}, first: "own", share: 0.81},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Of(runOf(t, c.groups, append(c.series, replies)...), known(t), []*profile.Profile{recorded(t, name)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			whole(t, b)
			e := b.Entries[0]
			if e.Mechanism != c.first || math.Abs(e.Share-c.share) > 0.01 {
				t.Errorf("the first is %s with %.3f, want %s with %.3f", e.Mechanism, e.Share, c.first, c.share)
			}
			switch {
			case c.saving == "" && len(e.Avoidable) > 0, c.saving != "" && (len(e.Avoidable) != 1 || e.Avoidable[0].ID != c.saving):
				t.Errorf("it saves %+v, want %q", e.Avoidable, c.saving)
			}
			cores := 0.5 * float64(len(c.groups))
			if want := cores / 100; b.SecondsPerRequest == nil || math.Abs(*b.SecondsPerRequest-want) > 1e-9 {
				t.Errorf("a request takes %v s, want %v", b.SecondsPerRequest, want)
			}
		})
	}
}

// Why scripts are compiled is told by what OPcache's own memory says, and asked where nobody saw that.
func TestWhyOPcacheDoesNotKeepScripts(t *testing.T) {
	opcache := func(name, values string) string {
		return "plimsoll_phpfpm_opcache_" + name + `{host="server",pool="www"} ` + values
	}
	on, most, misses := opcache("on", "1x10"), opcache("max_files", "223x10"), opcache("misses_total", "0+100x10")
	size := opcache("bytes", "1000x10")
	for name, c := range map[string]struct {
		series []string
		saving string
	}{
		"it is off":                         {[]string{opcache("on", "0x10")}, "opcache"},
		"the table is full":                 {[]string{on, most, misses, size, opcache("files", "223x10"), opcache("used_bytes", "999x10")}, "opcache_files"},
		"and what a pool says was not read": {[]string{most, misses, size, opcache("files", "223x10")}, "opcache_files"},
		"the memory is used up":             {[]string{on, most, misses, size, opcache("files", "222x10"), opcache("used_bytes", "950x10")}, "opcache_memory"},
		"both have room":                    {[]string{on, most, misses, size, opcache("files", "222x10"), opcache("used_bytes", "949x10")}, "opcache_passed"},
		"nothing is missed in a full table": {[]string{on, most, size, opcache("misses_total", "7x10"), opcache("files", "223x10")}, ""},
		"nobody saw it":                     {nil, "opcache_asked"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Of(runOf(t, []string{"php-fpm8.2", "nginx"}, c.series...), known(t), []*profile.Profile{recorded(t, "php-compiles")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range entry(t, b, "compiling_php").Avoidable {
				got = append(got, s.ID)
			}
			if strings.Join(got, " ") != c.saving {
				t.Errorf("it saves %q, want %q", got, c.saving)
			}
		})
	}
}

// A table with a primary key alone has it kept up to date, too: a part of the work, of which nothing is to spare.
func TestAPrimaryKeyIsNotToSpare(t *testing.T) {
	b, err := Of(runOf(t, []string{"postgres"}), known(t), []*profile.Profile{recorded(t, "postgres-key")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	if e := entry(t, b, "index_upkeep"); e.Share < leastSaving || len(e.Avoidable) > 0 {
		t.Errorf("of %.3f it spares %+v, want a tenth or more, and nothing", e.Share, e.Avoidable)
	}
}

// PHP that asks a SOAP service once more for each page than the page does fetches its description, and parses that.
func TestSOAPDescriptionsAreKept(t *testing.T) {
	asks := func(each string) []string {
		const of = `{host="server",groupname="php-fpm8.2",`
		return []string{
			`plimsoll_requests_in_hand` + of + `listen="0.0.0.0:80"} 10x10`,
			`plimsoll_requests_in_hand_seconds_count` + of + `listen="0.0.0.0:80"} 0+100x10`,
			`plimsoll_requests_in_hand_seconds_sum` + of + `listen="0.0.0.0:80"} 0+10x10`,
			`plimsoll_requests_reply_seconds_sum` + of + `listen="0.0.0.0:80"} 0x10`,
			`plimsoll_requests_upstream_waiting` + of + `dst="10.0.0.9:8080"} 1x10`,
			`plimsoll_requests_upstream_wait_seconds_count` + of + `dst="10.0.0.9:8080"} 0+` + each + `x10`,
			`plimsoll_requests_upstream_wait_seconds_sum` + of + `dst="10.0.0.9:8080"} 0+1x10`,
		}
	}
	for each, want := range map[string]string{"200": "descriptions smaller", "160": "descriptions smaller", "140": "smaller", "100": "smaller"} {
		b, err := Of(runOf(t, []string{"php-fpm8.2", "nginx"}, asks(each)...), known(t), []*profile.Profile{recorded(t, "php-soap-wsdl")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, b)
		var got []string
		for _, s := range entry(t, b, "serialising").Avoidable {
			if got = append(got, s.ID); s.ID == "descriptions" && !strings.Contains(s.Evidence, "asked 10.0.0.9:8080") {
				t.Errorf("want who is asked, got %q", s.Evidence)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s questions for 100 requests: it saves %q, want %q", each, got, want)
		}
	}
}

// whole looks whether a bill adds up to what it is of.
func whole(t testing.TB, b *model.Bill) {
	t.Helper()
	shares, seconds := 0.0, 0.0
	for _, e := range b.Entries {
		shares += e.Share
		if e.SecondsPerRequest != nil {
			seconds += *e.SecondsPerRequest
		}
		if e.Share < 0 || e.Share > 1 || e.Why == "" || e.ByHand == "" {
			t.Errorf("%+v", e)
		}
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("the shares add up to %v", shares)
	}
	if b.SecondsPerRequest != nil && math.Abs(seconds-*b.SecondsPerRequest) > 1e-9 {
		t.Errorf("the parts add up to %v s of %v", seconds, *b.SecondsPerRequest)
	}
}

// Connections are no saving where they are kept, nor where nobody counted requests.
func TestWhatIsNotShownIsNotAvoidable(t *testing.T) {
	const replies = `plimsoll_load_outcomes_total{host="client",phase="hold",outcome="2xx"} 0+100x10`
	few := []string{
		`plimsoll_tcp_connect_seconds_count{host="server",groupname="nginx",dst="127.0.0.1:8080"} 0+1x10`,
		`plimsoll_tcp_accept_queue_arrivals_total{host="server",port="8080"} 0+1x10`,
	}
	for name, series := range map[string][]string{
		"nothing was counted": nil,
		"they are kept":       append(few, replies),
	} {
		b, err := Of(runOf(t, []string{"nginx"}, series...), known(t), []*profile.Profile{recorded(t, "upstream-connects")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if e := entry(t, b, "connections"); len(e.Avoidable) > 0 {
			t.Errorf("%s: %+v", name, e.Avoidable)
		}
	}
}

// Where clients open their connections anew, too, half of the ends are theirs.
func TestConnectionsAreSharedOutByTheirEnds(t *testing.T) {
	b, err := Of(runOf(t, []string{"nginx"},
		`plimsoll_load_outcomes_total{host="client",phase="hold",outcome="2xx"} 0+100x10`,
		`plimsoll_tcp_connect_seconds_count{host="server",groupname="nginx",dst="127.0.0.1:8080"} 0+100x10`,
		`plimsoll_tcp_accept_queue_arrivals_total{host="server",port="8080"} 0+100x10`,
		`plimsoll_tcp_accept_queue_arrivals_total{host="server",port="80"} 0+100x10`,
	), known(t), []*profile.Profile{recorded(t, "upstream-connects")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := entry(t, b, "connections")
	want := map[string]float64{"upstream_keepalive": e.Share * 2 / 3, "client_keepalive": e.Share / 3}
	for _, s := range e.Avoidable {
		if math.Abs(s.Share-want[s.ID]) > 1e-9 {
			t.Errorf("%s saves %v, want %v", s.ID, s.Share, want[s.ID])
		}
		if s.Evidence == "" || s.Remedy == "" {
			t.Errorf("%+v", s)
		}
	}
	if len(e.Avoidable) != 2 {
		t.Errorf("%+v", e.Avoidable)
	}
}

func TestTooFewSamplesSaySo(t *testing.T) {
	p := recorded(t, "gzip-nine")
	p.Sample = p.Sample[:3]
	for _, s := range p.Sample {
		s.Value[0] = 1
	}
	b, err := Of(runOf(t, []string{"nginx"}), known(t), []*profile.Profile{p}, nil)
	if err != nil || b.Missing == "" || len(b.Entries) > 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// Each mechanism of the table: its example belongs to it, and to none before it.
func TestTheTableKeepsItsOrder(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	q := runOf(t, []string{"nginx"})
	seen := map[string]bool{}
	for i := range tab.Mechanisms {
		m := &tab.Mechanisms[i]
		if seen[m.ID] || m.Text == "" || m.Why == "" || m.ByHand == "" {
			t.Errorf("%s: want an id of its own, text, why and by_hand", m.ID)
		}
		seen[m.ID] = true
		for _, s := range m.Savings {
			if s.Title == "" || s.Remedy == "" || s.Costs == "" || s.Back == "" || (s.Measure != "" && s.Why == "") {
				t.Errorf("%s: %s: want title, remedy, costs, and why with a measure", m.ID, s.ID)
			}
			for _, text := range []string{s.Measure, s.Saves} {
				if text == "" {
					continue
				}
				if _, _, err := asked(q, text, known(t)); err != nil {
					t.Errorf("%s: %s: %v", m.ID, s.ID, err)
				}
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ want, thread, frames string }{
		{"connections", "", "_raw_spin_unlock_irqrestore[k] tcp_v4_rcv[k] net_rx_action[k] tcp_connect[k] tcp_v4_connect[k] __sys_connect[k] connect"},
		{"scheduling", "", "try_to_wake_up[k] sock_def_readable[k] tcp_v4_rcv[k] net_rx_action[k] tcp_sendmsg[k]"},
		{"engine_starts", "", "v8::internal::Scavenger::Process v8::internal::Heap::PerformGarbageCollection node::CreateEnvironment node::worker::Worker::Run"},
		{"engine_starts", "", "clear_page[k] do_user_addr_fault[k] v8::internal::Heap::TearDown v8::internal::Isolate::Delete node::worker::Worker::Run"},
		{"own", "", "Builtins_InterpreterEntryTrampoline node::LoadEnvironment node::worker::Worker::Run"},
		{"packed_collections", "", "lpCompare lpFind"},
		{"packed_collections", "", "ziplistFind hashTypeGetFromZiplist"},
		{"comparing", "", "__memcmp_avx2_movbe"},
		{"own", "", "ours __memcmp_avx2_movbe"},
		{"packets_in", "", "tcp_ack[k] tcp_v4_rcv[k] net_rx_action[k] tcp_sendmsg[k]"},
		{"packets_in", "", "tcp_ack[k] net_rx_action[k] handle_softirqs[k] asm_sysvec_apic_timer_interrupt[k] path_openat[k] do_sys_openat2[k]"},
		{"sending", "", "tcp_rate_check_app_limited[k] tcp_sendmsg_locked[k] tcp_sendmsg[k]"},
		{"copying", "", "_copy_from_iter[k] tcp_sendmsg_locked[k] tcp_sendmsg[k]"},
		{"packet_filter", "", "nft_do_chain[k] nf_hook_slow[k] ip_rcv[k] net_rx_action[k]"},
		{"file_lookups", "", "link_path_walk.part.0[k] path_openat.constprop.0[k] do_sys_openat2[k] open64"},
		{"page_faults", "", "clear_page_erms[k] handle_mm_fault[k] exc_page_fault[k] memset"},
		{"system_calls", "", "do_syscall_64[k]"},
		{"kernel", "", "do_syscall_64_not_this[k]"},
		{"compiling_php", "", "_emalloc php:{include} php:{main}"},
		{"file_lookups", "", "do_sys_openat2[k] open64 php:{include} php:{main}"},
		{"garbage_collection", "GC Thread#1", "whatever"},
		{"compiling", "C2 CompilerThre", "clear_page_erms[k] exc_page_fault[k]"},
		{"compiling_llvm", "", "clear_page_erms[k] exc_page_fault[k] llvm_compile_expr ExecReadyExpr"},
		{"compiling_llvm", "", "_int_malloc llvm_optimize_module llvm_get_function ExecRunCompiledExpr ExecProcNode"},
		{"own", "", "ExecInterpExpr ExecRunCompiledExpr ExecProcNode"},
		{"garbage_collection", "", "futex[k] runtime.gcDrain runtime.gcBgMarkWorker"},
		{"sending", "", "tcp_sendmsg[k] syscall.write crypto/tls.(*Conn).Write main.main"},
		{"cryptography", "", "crypto/internal/fips140/aes.encrypt crypto/tls.(*Conn).Write main.main"},
		{"own", "", "main.work main.main"},
		{"own", "", ""},
	} {
		s := &profile.Sample{Label: map[string][]string{"thread": {c.thread}}}
		for _, name := range strings.Fields(c.frames) {
			name, kernel := strings.CutSuffix(name, "[k]")
			m := &profile.Mapping{File: "/usr/bin/x"}
			if kernel {
				m.File = "[kernel]"
			}
			s.Location = append(s.Location, &profile.Location{Mapping: m, Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		st, err := tab.reader().stack(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.place(&st).ID; got != c.want {
			t.Errorf("%s %s: %s, want %s", c.thread, c.frames, got, c.want)
		}
	}
}

func FuzzStacks(f *testing.F) {
	for _, name := range []string{"gzip-nine", "upstream-connects"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".pb.gz"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	q, list := runOf(f, []string{"nginx"}), known(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := flame.Parse(raw)
		if err != nil {
			return
		}
		b, err := Of(q, list, []*profile.Profile{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b.Missing == "" {
			whole(t, b)
		}
	})
}

func BenchmarkBill(b *testing.B) {
	q, list, p := runOf(b, []string{"nginx"}), known(b), recorded(b, "upstream-connects")
	for b.Loop() {
		if _, err := Of(q, list, []*profile.Profile{p}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheKernelsOwnThreadsAreNoted(t *testing.T) {
	p := recorded(t, "gzip-nine")
	other := *p.Sample[0]
	other.Value, other.Label = []int64{30, 30}, map[string][]string{"groupname": {packetThreads}, "thread": {"ksoftirqd/0"}}
	p.Sample = append(p.Sample, &other)
	b, err := Of(runOf(t, []string{"nginx"}), known(t), []*profile.Profile{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "(ksoftirqd) took 14 % as much") {
		t.Errorf("%q", b.Notes)
	}
	whole(t, b)
}

// Where nobody counted requests, page faults are evidence by themselves; wakeups are not.
func TestWithoutRequests(t *testing.T) {
	b, err := Of(runOf(t, []string{"python3"}, `namedprocess_namegroup_minor_page_faults_total{host="server",groupname="python3"} 0+1000000x10`),
		known(t), []*profile.Profile{recorded(t, "fault-storm")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	if e := b.Entries[0]; b.SecondsPerRequest != nil || len(e.Avoidable) != 1 || e.Avoidable[0].ID != "keep_memory" || e.Avoidable[0].Evidence != "" {
		t.Errorf("%+v", b)
	}
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	herd := &tab.Mechanisms[slices.IndexFunc(tab.Mechanisms, func(m mechanism) bool { return m.ID == "scheduling" })].Savings[0]
	ask := func(processes, connections, questions int) (model.Saving, bool) {
		t.Helper()
		q := runOf(t, []string{"nginx"}, `plimsoll_runqueue_wakeups_total{host="server",groupname="nginx"} 0+100x10`,
			`plimsoll_load_outcomes_total{host="client",phase="hold",outcome="2xx"} 0+5x10`,
			fmt.Sprintf(`plimsoll_tcp_accept_queue_arrivals_total{host="server",port="80"} 0+%dx10`, connections),
			fmt.Sprintf(`namedprocess_namegroup_num_procs{host="server",groupname="nginx"} %dx10`, processes),
			fmt.Sprintf(`plimsoll_requests_upstream_wait_seconds_count{host="server",groupname="nginx",dst="127.0.0.1:5432"} 0+%dx10`, questions))
		s, found, err := herd.of(q, known(t), nil, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		return s, found
	}
	if s, found := ask(10, 5, 0); !found || s.Evidence != "processes that wait for the same connections were woken 20 times for each that came, and for each question that was asked for it" {
		t.Errorf("%+v", s)
	}
	for what, of := range map[string][3]int{
		"one process with many threads":            {1, 5, 0},
		"fewer processes than could be woken":      {9, 5, 0},
		"connections that are kept":                {10, 2, 0},
		"a wakeup for each of nineteen questions":  {10, 5, 95},
		"less than ten wakeups for each that came": {10, 11, 0},
	} {
		if s, found := ask(of[0], of[1], of[2]); found {
			t.Errorf("%s: told as a herd: %+v", what, s)
		}
	}
}

// What slapd takes for a question tells a search by an index from one through all entries.
func TestEntriesWithoutAnIndex(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	index := &tab.Mechanisms[slices.IndexFunc(tab.Mechanisms, func(m mechanism) bool { return m.ID == "directory_entries" })].Savings[0]
	for questions, evidence := range map[int]string{
		50:  "slapd took 10 ms of CPU time for each question",
		500: "slapd took 1 ms of CPU time for each question",
		550: "",
		0:   "", // nobody counted them
	} {
		var series []string
		if questions > 0 {
			series = []string{fmt.Sprintf(`plimsoll_requests_in_hand_seconds_count{host="server",groupname="slapd",listen="127.0.0.1:389"} 0+%dx10`, questions)}
		}
		s, found, err := index.of(runOf(t, []string{"slapd"}, series...), known(t), nil, 0.5)
		if err != nil || found != (evidence != "") || s.Evidence != evidence {
			t.Errorf("%d questions a second: %v, %+v, %v; want %q", questions, found, s, err, evidence)
		}
	}
}

// What the bill calls a collector's is what the cpu tracer counts as one's.
func TestCollectorsAreTheTracers(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tab.Mechanisms, func(m mechanism) bool { return m.ID == "garbage_collection" })
	for _, name := range tab.Mechanisms[i].User {
		if !cpu.Collects(strings.Replace(name, "*", "X", 1)) {
			t.Errorf("%s is a collector's to the bill and not to the tracer", name)
		}
	}
}

// What the bill calls page faults, and memory taken and given back, is what the cpu tracer counts as such.
func TestMemoryIsTheTracers(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(tab.Mechanisms, func(m mechanism) bool { return m.ID == "page_faults" })
	for _, name := range tab.Mechanisms[i].Kernel {
		if !cpu.MapsMemory(name) {
			t.Errorf("%s is about memory to the bill and not to the tracer", name)
		}
	}
}

// stackOf is a sample of user mode, its functions from the innermost out, each "name@file".
func stackOf(count int64, frames ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{count}, Label: map[string][]string{"groupname": {"nginx"}}}
	for _, f := range frames {
		name, file, _ := strings.Cut(f, "@")
		s.Location = append(s.Location, &profile.Location{
			Mapping: &profile.Mapping{File: "/usr/lib/" + file}, Line: []profile.Line{{Function: &profile.Function{Name: name}}},
		})
	}
	return s
}

// Nameless code of libcrypto goes to certificates and to the rest as functions with names tell; what OpenMP
// shares out is work, and its own code alone is spinning.
func TestNamelessCodeAndInnermostFunctions(t *testing.T) {
	p := &profile.Profile{Sample: []*profile.Sample{
		stackOf(30, "OSSL_DECODER_is_a@libcrypto.so.3"), stackOf(10, "BN_mod_exp@libcrypto.so.3"), stackOf(40, "libcrypto.so.3+0x10@libcrypto.so.3"),
		stackOf(50, "score._omp_fn.0@score.so", "gomp_thread_start@libgomp.so.1"), stackOf(20, "libgomp.so.1+0x10@libgomp.so.1"),
		stackOf(7, "libaprutil-1.so.0+0x10@libaprutil-1.so.0"), stackOf(5, "malloc@libc.so.6"), stackOf(3, "__pthread_rwlock_rdlock@libc.so.6"),
	}}
	b, err := Of(runOf(t, []string{"nginx"}), known(t), []*profile.Profile{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, b)
	for id, samples := range map[string]float64{"certificates": 60, "cryptography": 20, "own": 50, "busy_waiting": 20, "passwords": 7, "allocating": 5, "locks_taken": 3} {
		if e := entry(t, b, id); math.Abs(e.Share*165-samples) > 1e-6 {
			t.Errorf("%s has %.2f samples, want %.0f", id, e.Share*165, samples)
		}
	}
	if e := entry(t, b, "certificates"); len(e.Files) != 1 || e.Files[0].Name != "libcrypto.so.3" || e.Avoidable[0].ID != "context" || !e.Avoidable[0].InCode {
		t.Errorf("%+v", e)
	}
}

// Engines that start now and then do not start for requests.
func TestEnginesForRequests(t *testing.T) {
	tab, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	s := &tab.byID("engine_starts").Savings[0]
	q := runOf(t, []string{"node"}, `node_forks_total{host="server"} 0+10x10`)
	seldom, each := 201.0, 200.0
	if _, found, err := s.of(q, known(t), &seldom, 0.5); found || err != nil {
		t.Errorf("threads that start seldom are told as started for requests (%v)", err)
	}
	if got, found, _ := s.of(q, known(t), &each, 0.5); !found || got.Evidence != "0.5 threads or processes were started on the machine for each request" {
		t.Errorf("%+v", got)
	}
}
