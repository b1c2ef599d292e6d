package sched

import (
	"os/exec"
	"testing"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tracetest"
)

func use(t *testing.T, p *Programs, part Part) *View {
	t.Helper()
	v, err := p.Use(part, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// counted returns how many waits for a CPU, and how many others, are in the maps.
func counted(t *testing.T, v *View) (queued, blocked uint64) {
	t.Helper()
	for n := range v.Maps.Maps[Queues].MaxEntries() {
		var cpus []Queued
		if err := v.Maps.Maps[Queues].Lookup(n, &cpus); err != nil {
			t.Fatal(err)
		}
		for _, c := range cpus {
			queued += c.Waits
		}
	}
	for n := range v.Maps.Maps[Sums].MaxEntries() {
		var cpus []Sum
		if err := v.Maps.Maps[Sums].Lookup(n, &cpus); err != nil {
			t.Fatal(err)
		}
		for _, c := range cpus {
			blocked += c.Blocks
		}
	}
	return queued, blocked
}

// grow says which of the two counts grow while others wait.
func grow(t *testing.T, v *View) (queued, blocked bool) {
	t.Helper()
	queuedBefore, blockedBefore := counted(t, v)
	if err := exec.Command("/bin/sh", "-c", "sleep 0.01; sleep 0.01").Run(); err != nil {
		t.Fatal(err)
	}
	queuedAfter, blockedAfter := counted(t, v)
	return queuedAfter > queuedBefore, blockedAfter > blockedBefore
}

func TestViewsShareTheProgramsAndSwitchTheirOwnPart(t *testing.T) {
	tracetest.Need(t, trace.Tracer{Name: "sched", Tracepoints: []string{"sched_switch", "task_rename"}, FirstKernel: FirstKernel})
	var shared Programs
	queue, blocked := use(t, &shared, Queue), use(t, &shared, Blocked)
	if queue.Maps != blocked.Maps {
		t.Error("each has programs of its own")
	}
	other := use(t, new(Programs), Queue)
	if other.Maps == queue.Maps {
		t.Error("one that was to have programs of its own shares them")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name                    string
		do                      func() error
		wantQueued, wantBlocked bool
	}{
		{"both on", func() error { return nil }, true, true},
		{"the queue off", queue.Pause, false, true},
		{"both off", blocked.Pause, false, false},
		{"the queue on", queue.Resume, true, false},
		{"both on again", blocked.Resume, true, true},
		{"the queue closed", queue.Close, false, true},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if queued, waits := grow(t, blocked); queued != step.wantQueued || waits != step.wantBlocked {
			t.Errorf("%s: waits for a CPU count: %v, others: %v", step.name, queued, waits)
		}
	}
	if err := blocked.Close(); err != nil {
		t.Fatal(err)
	}
	again := use(t, &shared, Queue)
	if queued, _ := grow(t, again); !queued {
		t.Error("what was closed does not count when it is used again")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
