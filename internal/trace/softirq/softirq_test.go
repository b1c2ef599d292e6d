package softirq

import (
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, Tracer())) }

func begin(t *testing.T) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// procRuns is how often each CPU ran a kind of softirq since the machine started.
func procRuns(t *testing.T, vector string) []uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/softirqs")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != vector {
			continue
		}
		var runs []uint64
		for _, field := range strings.Fields(counts) {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, n)
		}
		return runs
	}
	t.Fatalf("/proc/softirqs has no %s", vector)
	return nil
}

func ours(t *testing.T, tr *Trace, vector string) map[int]Slot {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	of := map[int]Slot{}
	for _, slot := range s.Soft {
		if slot.Kind == vector {
			of[slot.CPU] = slot
		}
	}
	return of
}

// datagrams sends some to ourselves; each makes a softirq.
func datagrams(t *testing.T, n int) {
	t.Helper()
	receiver, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	c, err := net.Dial("udp", receiver.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := []byte("x")
	for range n {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, _, err := receiver.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
	}
}

// reading is /proc/softirqs, and what we counted just before and just after.
type reading struct {
	before, after map[int]Slot
	proc          []uint64
}

func read(t *testing.T, tr *Trace, vector string) reading {
	t.Helper()
	before := ours(t, tr, vector)
	proc := procRuns(t, vector)
	return reading{before, ours(t, tr, vector), proc}
}

// TestRunsAreThoseOfProc: as many on each CPU as /proc/softirqs counts meanwhile.
// Others make softirqs too, so our readings enclose those of /proc.
func TestRunsAreThoseOfProc(t *testing.T) {
	tr := begin(t)
	tracetest.AllAttached(t, Tracer(), tr)
	const sent = 10_007
	const underWay = 2 // /proc counts one when it begins, we when it ends
	first := read(t, tr, "NET_RX")
	datagrams(t, sent)
	last := read(t, tr, "NET_RX")
	var all uint64
	for cpu := range first.proc {
		proc := last.proc[cpu] - first.proc[cpu]
		least, most := last.before[cpu].Runs-first.after[cpu].Runs, last.after[cpu].Runs-first.before[cpu].Runs
		all += most
		t.Logf("CPU %d: %d to %d runs, /proc/softirqs says %d", cpu, least, most, proc)
		if proc+underWay < least || proc > most+underWay {
			t.Errorf("CPU %d: %d to %d runs, /proc/softirqs says %d", cpu, least, most, proc)
		}
	}
	if all < sent {
		t.Errorf("%d runs for %d packets", all, sent)
	}
	checkSamples(t, tr, slices.Collect(maps.Keys(last.after))[0])
}

// checkSamples looks at the same through Read.
func checkSamples(t *testing.T, tr *Trace, cpu int) {
	t.Helper()
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	labels := "{" + strconv.Itoa(cpu) + ",NET_RX}"
	for _, series := range []string{"plimsoll_softirq_seconds_total" + labels, "plimsoll_softirq_runs_total" + labels,
		"plimsoll_softirq_wait_seconds_sum{NET_RX}", "plimsoll_softirq_wait_seconds_count{NET_RX}", "plimsoll_softirq_wait_seconds_bucket{NET_RX,+Inf}"} {
		if samples[series] <= 0 {
			t.Errorf("%s = %v, want more than 0", series, samples[series])
		}
	}
	if n, ok := samples["plimsoll_softirq_lost_total{handlers}"]; !ok || n != 0 {
		t.Errorf("lost %v (%v), want 0", n, ok)
	}
}

// After a pause nothing of it is counted, and what was half seen neither.
func TestPause(t *testing.T) {
	tr := begin(t)
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	before := ours(t, tr, "NET_RX")
	datagrams(t, 101)
	if d := cmp.Diff(before, ours(t, tr, "NET_RX")); d != "" {
		t.Errorf("paused, and yet (-before +after)\n%s", d)
	}
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	datagrams(t, 1009)
	var runs uint64
	for cpu, slot := range ours(t, tr, "NET_RX") {
		runs += slot.Runs - before[cpu].Runs
	}
	if runs < 1009 {
		t.Errorf("%d runs for 1,009 packets after the pause", runs)
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestManyCPUsShareALabel(t *testing.T) {
	got := merge([]Slot{{CPU: 0, Kind: "RCU", Runs: 1, Took: 10}, {CPU: 63, Kind: "RCU", Runs: 2, Took: 20},
		{CPU: 64, Kind: "RCU", Runs: 3, Took: 30}, {CPU: 191, Kind: "RCU", Runs: 4, Took: 40}})
	want := map[[2]string]Slot{{"0", "RCU"}: {Runs: 1, Took: 10}, {"63", "RCU"}: {Runs: 2, Took: 20}, {"64+", "RCU"}: {Runs: 7, Took: 70}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestNamesComeInTheirOrder(t *testing.T) {
	got, err := parseNames(strings.NewReader("     CPU0  CPU1\n   HI:   0   1\n TIMER: 12  13\nNET_TX:  0   0\n"))
	if d := cmp.Diff([]string{"HI", "TIMER", "NET_TX"}, got); d != "" || err != nil {
		t.Errorf("%v; -want +got\n%s", err, d)
	}
	for _, bad := range []string{"", "CPU0\n", "CPU0\nno colon\n", "CPU0\n: 1\n"} {
		if names, err := parseNames(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %v, want an error", bad, names)
		}
	}
}

func FuzzParseNames(f *testing.F) {
	f.Add("CPU0\nHI: 0\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parseNames(strings.NewReader(text))
		if (len(names) == 0) == (err == nil) {
			t.Errorf("%q: want names or an error, got %v, %v", text, names, err)
		}
	})
}
