package program

import (
	"testing"
	"time"
)

// Two that take turns, and a shell that waits for them, make one course of time; what threads do beyond that moment is
// scaled to it; who hardly ever runs hardly counts.
func TestShare(t *testing.T) {
	run, disk, shell, idle, pause := kind{doing: ready}, kind{doing: "disk"}, kind{doing: child}, kind{doing: "lock"}, kind{doing: "sleep"}
	const room = 20 * time.Millisecond
	for name, tc := range map[string]struct {
		list []amount
		want map[kind]time.Duration
	}{
		"one thread":  {[]amount{{run, active, 1, 5e6}, {disk, active, 1, 15e6}}, map[kind]time.Duration{run: 5e6, disk: 15e6}},
		"turns":       {[]amount{{run, active, 1, 8e6}, {run, active, 1, 12e6}, {shell, forOwn, 1, room}}, map[kind]time.Duration{run: room}},
		"two at once": {[]amount{{run, active, 1, room}, {disk, active, 1, room}}, map[kind]time.Duration{run: 10e6, disk: 10e6}},
		"a pool with nothing to do": {[]amount{{run, active, 1, 4e6}, {pause, maybeIdle, 3, 16e6}, {idle, maybeIdle, 1, room}, {idle, maybeIdle, 0, room}},
			map[kind]time.Duration{run: 4e6, pause: 11294117, idle: 4705882}},
		"nobody": {nil, nil},
	} {
		got, sum := map[kind]time.Duration{}, time.Duration(0)
		share(tc.list, room, func(k kind, d time.Duration) { got[k] += d; sum += d })
		for k, want := range tc.want {
			if d := got[k] - want; d > 1000 || d < -1000 {
				t.Errorf("%s: %s %v, want %v", name, k.doing, got[k], want)
			}
		}
		if len(tc.list) > 0 && (sum > room || sum < room-1000) {
			t.Errorf("%s: %v in all, want %v", name, sum, room)
		}
	}
}

// What ran is told from what waited for a CPU by the kernel's sums; a limit takes its part of the waits, and what nobody
// saw its part of the time in which it was waited for.
func TestLedger(t *testing.T) {
	l := newLedger()
	const room = 100 * time.Millisecond
	l.add([]amount{{kind{doing: ready, thread: "a"}, active, 1, 40e6}, {kind{doing: child, call: "wait4", thread: "a"}, forOwn, 1, 60e6}}, room)
	l.ran["a"] = 10 * time.Millisecond
	l.enter(50*time.Millisecond, 20*time.Millisecond)
	for k, want := range map[kind]time.Duration{
		{doing: running, thread: "a"}: 10e6, {doing: queued, thread: "a"}: 10e6, {doing: throttled, thread: "a"}: 20e6,
		{doing: running, thread: shortLived}: 40e6, {doing: child, call: "wait4", thread: "a"}: 20e6,
	} {
		if d := l.wall[k] - want; d > 1000 || d < -1000 {
			t.Errorf("%+v: %v, want %v", k, l.wall[k], want)
		}
	}
	if l.threads[running] != 10e6 || l.threads[queued] != 30e6 {
		t.Errorf("threads: %v", l.threads)
	}
}

// However many files there are, the kinds are bounded, and none of the time is lost.
func TestLedgerIsBounded(t *testing.T) {
	l := newLedger()
	for i := range 3000 {
		l.put(kind{doing: "disk", call: "read", towards: string(rune('a'+i%26)) + time.Duration(i).String()}, time.Millisecond)
		l.put(kind{doing: "disk", call: time.Duration(i).String(), towards: "x"}, time.Millisecond)
	}
	var sum time.Duration
	for _, d := range l.wall {
		sum += d
	}
	if len(l.wall) > maxKinds+1 || sum != 6*time.Second {
		t.Errorf("%d kinds, %v in all", len(l.wall), sum)
	}
}
