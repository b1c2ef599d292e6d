package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/layout"
	"plimsoll/internal/live"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/session"
)

// lasting is a run of a few seconds that is not over.
func lasting(t *testing.T) *live.Run {
	t.Helper()
	const start = 1_700_000_000_000
	w, err := writer.Create(filepath.Join(t.TempDir(), "run"), model.Run{Started: start, Plan: model.Plan{Interval: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	run, l := live.New(1000), w.Listen(100)
	ok(t, w.Update(func(r *model.Run) { r.Windows = []model.Window{{Name: model.Hold, Start: start}} }))
	outcomes := &model.Signal{Name: "plimsoll_load_outcomes_total", Kind: model.Counter, Labels: []string{"phase", "outcome"}, StartsAtZero: true}
	cpu := &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Labels: []string{"cpu", "mode"}}
	running := &model.Signal{Name: "node_procs_running", Kind: model.Gauge}
	for i := range int64(6) {
		at := start + i*1000
		w.Sample("a", at, outcomes, float64(100*i), model.Hold, "2xx")
		w.Sample("a", at, outcomes, float64(i*i), model.Hold, "read:timeout")
		for _, host := range []string{"a", "b"} {
			busy := map[string]float64{"a": 0.25, "b": 0.75}[host]
			w.Sample(host, at, cpu, float64(i)*busy, "0", "user")
			w.Sample(host, at, cpu, float64(i)*(1-busy), "0", "idle")
		}
		w.Sample("a", at, running, float64(i))
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run.Follow(t.Context(), l, nil)
	return run
}

func TestScreenShowsWhatIsKnownOfARun(t *testing.T) {
	p := session.Progress{Window: "hold", Elapsed: 12 * time.Second, Planned: 30 * time.Second}
	said := &soFar{Sentence: "A table is full \x1b[2J\nVERDICT: FORGED; " + strings.Repeat("and more ", 30)}
	part, full := 0.4, 1.0
	said.Way = []sheet.Stage{{Name: "Local ports", Where: "a", Full: &part}, {Name: "Memory, kernel tables", Where: "b"}, {Name: "Listen queue", Where: "b ng\x1b[2Jinx", Full: &full, State: "binds"}, {Name: "Workers", Where: "b php-fpm", State: "binds"}}
	got := screenLines(lasting(t).View(), p, verdictSoFar{said: said}, time.Time{}, 60)
	want := []string{
		`so far: A table is full \u001b[2J\nVERDICT: FORGED; and`,
		"more and more and more and more and more and more and more…",
		"hold, 12 of 30 s  ━━━━━━━━━━━━──────────────────  18 s left",
		`the line      ports ▄ › [queue ng\u001b[2Jinx █ binds] ›`,
		"              [php-fpm binds]",
		"good replies  ████  100/s",
		"failed        ▂▄▆█  7/s",
		"CPU in use    ▆▆▆▆▆  75 % on b",
		"threads ready ·▂▄▅▇█  5 on a",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := screenLines(live.New(1000).View(), session.Progress{Window: "baseline", Elapsed: time.Second}, verdictSoFar{}, time.Time{}, 60); len(got) != 3 || got[0] != "so far: not judged yet" || got[2] != "baseline, 1 s" {
		t.Errorf("of a run that just began: %q", got)
	}
}

// Each picture takes the place of the one before, in one write, and leaves nothing behind.
func TestScreenIsDrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	s := screen{out: layout.NewWriter(&out)}
	s.put([]string{"one", "two\x1b[31m", strings.Repeat("wide ", 30)}, 20)
	first := out.String()
	if strings.Contains(first, "\x1b[31m") || strings.Count(first, "\n") != 2 || !strings.HasSuffix(first, "\x1b[J") {
		t.Errorf("drew %q", first)
	}
	for _, l := range strings.Split(first, "\n") {
		l = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\r", "").Replace(l)
		if utf8.RuneCountInString(l) >= 20 {
			t.Errorf("%q would wrap", l)
		}
	}
	out.Reset()
	s.put([]string{"one"}, 20)
	if got, want := out.String(), "\r\x1b[2Aone\x1b[K\x1b[J"; got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
	out.Reset()
	s.clear()
	s.clear()
	if got, want := out.String(), "\r\x1b[J"; got != want {
		t.Errorf("cleared with %q, want %q", got, want)
	}
	var none *screen
	none.clear()
}

func TestAScreenNeedsATerminalWithRoom(t *testing.T) {
	w, _, _ := testWorld()
	room := [2]int{80, 24}
	w.terminal = func() (int, int) { return room[0], room[1] }
	if w.screen() != nil {
		t.Error("a pipe has a screen")
	}
	w.stderrTTY = true
	if w.screen() == nil {
		t.Error("a terminal has none")
	}
	for _, room = range [][2]int{{40, 24}, {80, 5}, {0, 0}} {
		if w.screen() != nil {
			t.Errorf("%v has one", room)
		}
	}
}

// Wide letters take two columns, marks none: by letters a line would be broken, and the screen be drawn over.
func TestLinesAreCutByColumns(t *testing.T) {
	for text, want := range map[string]string{"abcdef": "abcdef", "abcdefg": "abcde…", "漢字漢": "漢字漢", "漢字漢字": "漢字…", "a漢字漢字": "a漢字…", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"} {
		if got := cut(text, 6); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
