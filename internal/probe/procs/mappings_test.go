package procs

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

func TestCountMappings(t *testing.T) {
	path := t.TempDir() + "/maps"
	if err := os.WriteFile(path, []byte(strings.Repeat("7f00-7f01 r--p 00000000 00:00 0\n", 65530)), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, code, err := countMappings(path); n != 65530 || code != 0 || err != nil {
		t.Errorf("%d, %d, %v", n, code, err)
	}
	if _, _, err := countMappings(path + "x"); err == nil {
		t.Error("no error where there is no such file")
	}
}

// Memory that may be written and executed is code that a program makes, unless it is a file's.
func TestCodeBytes(t *testing.T) {
	for line, want := range map[string]uint64{
		"7f1742300000-7f17425c0000 rwxp 00000000 00:00 0 \n":              0x2c0000,
		"7f1742300000-7f17425c0000 rwxp 00000000 00:00 0      [stack]\n":  0,
		"7f17425c0000-7f1742600000 ---p 00000000 00:00 0 \n":              0,
		"7f1742300000-7f17425c0000 rwxp 00000000 08:01 17 /tmp/some.so\n": 0,
		"7f17425c0000-7f1742300000 rwxp 00000000 00:00 0 \n":              0,
		"x-7f1742300000 rwxp 00000000 00:00 0 \n":                         0,
		"\n": 0,
	} {
		if got := codeBytes([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestPutCodeCache(t *testing.T) {
	m := mappings{limit: 100, of: map[int]mapped{1: {pid: 1, code: 3 << 20}, 2: {pid: 2, code: 4 << 20}, 3: {pid: 3, code: 1 << 20}, 4: {pid: 4}, 5: {pid: 5, code: 9 << 20}}}
	procs := map[int]*process{}
	for pid, cache := range map[int]uint64{1: 8 << 20, 2: 4 << 20, 3: 0, 4: 4 << 20, 5: 8 << 20} {
		procs[pid] = &process{pid: pid, told: told{codeCache: cache}, group: &group{name: "java"}}
	}
	if got := codeCacheOf(t, m, procs); !slices.Equal(got, []float64{0}) {
		t.Errorf("left of the code caches: %v, want 0, since one has all that it was told; who has more has something else, too", got)
	}
	delete(procs, 2)
	if got := codeCacheOf(t, m, procs); !slices.Equal(got, []float64{5 << 20}) {
		t.Errorf("left of the code caches: %v, want 5 MiB", got)
	}
	delete(procs, 1)
	if got := codeCacheOf(t, m, procs); len(got) > 0 {
		t.Errorf("left of the code caches: %v, want nothing of who was told nothing, or has compiled nothing", got)
	}
}

func codeCacheOf(t *testing.T, m mappings, procs map[int]*process) (left []float64) {
	t.Helper()
	rec := livetest.NewRecord()
	m.put(probe.NewOut(rec, "here", time.Now(), time.Second), procs)
	if v, ok := rec.Values[codeCacheLeft.Name+"{java}"]; ok {
		left = append(left, v)
	}
	return left
}

// Only who may be near the limit is counted, and who was counted longest ago comes first.
func TestWhoIsDue(t *testing.T) {
	now, page := time.Unix(1000, 0), uint64(os.Getpagesize())
	m := mappings{limit: 1000, of: map[int]mapped{2: {at: now.Add(-20 * time.Second)}, 3: {at: now.Add(-30 * time.Second)}, 4: {at: now.Add(-5 * time.Second)}}}
	procs := map[int]*process{}
	for pid, pages := range map[int]uint64{1: 899, 2: 900, 3: 900, 4: 5000} {
		procs[pid] = &process{pid: pid, virtual: pages * page}
	}
	if p := m.due(procs, now); p == nil || p.pid != 3 {
		t.Errorf("due is %+v, want process 3", p)
	}
	delete(procs, 3)
	if p := m.due(procs, now); p == nil || p.pid != 2 {
		t.Errorf("due is %+v, want process 2", p)
	}
	delete(procs, 2)
	if p := m.due(procs, now); p != nil {
		t.Errorf("due is %+v, want nobody", p)
	}
}

// This process, which has address space enough, is counted as the kernel counts it.
func TestLiveMappings(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r := &reader{host: h, now: time.Now, procs: map[int]*process{}, mappings: mappings{of: map[int]mapped{}}}
	me := &process{pid: os.Getpid(), name: "self", virtual: 1 << 50, group: &group{name: "me"}}
	r.procs[me.pid] = me
	r.mappings.look(r)
	if r.mappings.pending == nil {
		t.Fatal("nobody is counted")
	}
	done := <-r.mappings.pending
	r.mappings.pending <- done
	r.mappings.look(r)
	rec := livetest.NewRecord()
	r.mappings.put(probe.NewOut(rec, "here", time.Now(), time.Second), r.procs)
	got := rec.Values["plimsoll_process_worst_mappings_ratio{me}"]
	if want := float64(done.count) / float64(r.mappings.limit); done.count < 5 || got != want {
		t.Errorf("%v of %d mappings, want %v", got, done.count, want)
	}
	if !r.mappings.rest.After(time.Now()) {
		t.Error("it does not rest")
	}
}
