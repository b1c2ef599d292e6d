package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/session"
)

func TestParseSeconds(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		bad  bool
	}{
		{text: "10", want: 10 * time.Second},
		{text: "0.5", want: 500 * time.Millisecond},
		{text: "1m30s", want: 90 * time.Second},
		{text: "0", want: 0},
		{text: "-1", bad: true},
		{text: "1x", bad: true},
		{text: "", bad: true},
		{text: "NaN", bad: true},
		{text: "Inf", bad: true},
		{text: "1e300", bad: true},
		{text: "100000h", bad: true},
	} {
		got, err := parseSeconds(c.text)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%q: got %v, %v; want %v, refused: %v", c.text, got, err, c.want, c.bad)
		}
	}
}

// Every error finds the exit code that its sentence in the table describes.
func TestCodeOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("outer: %w", err) }
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("whatever"), exitInternal},
		{usage("plimsoll run", "x"), exitUsage},
		{fail(exitRules, errors.New("x")), exitRules},
		{context.Canceled, exitInterrupted},
		{syscall.ENOSPC, exitRunDir},
		{session.DirError{Err: fs.ErrPermission}, exitRunDir},
		{load.EngineError{Code: exitUnreachable, Said: "x"}, exitUnreachable},
		{&net.DNSError{Err: "no such host"}, exitUnreachable},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, exitUnreachable},
		{fs.ErrPermission, exitMissing},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, exitMissing},
	} {
		if got := codeOf(wrap(c.err)); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
		if !strings.Contains(exitTable(c.want), fmt.Sprintf("%3d  ", c.want)) {
			t.Errorf("exit code %d has no sentence", c.want)
		}
	}
	if code, quiet := passedOn(wrap(codePassed(7))); code != 7 || !quiet {
		t.Errorf("a command's code: got %d, %v", code, quiet)
	}
}

func TestProgressText(t *testing.T) {
	got := progressText(session.Progress{Window: "hold", Elapsed: 3 * time.Second, Planned: 10 * time.Second, RPS: 5000, GoodRPS: 4827, Failed: 12})
	if want := "hold       3 of 10 s   5,000 replies/s, 4,827 good   12 failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := progressText(session.Progress{Window: "baseline", Elapsed: time.Second}), "baseline   1 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseArrivals(t *testing.T) {
	for text, want := range map[string]uint64{"poisson:42": 42, "poisson:0": 0} {
		if kind, seed, err := parseArrivals(text); kind != model.Poisson || seed != want || err != nil {
			t.Errorf("%s: %q, seed %d, %v", text, kind, seed, err)
		}
	}
	if kind, seed, err := parseArrivals("poisson"); kind != model.Poisson || seed == 0 || err != nil {
		t.Errorf("poisson: %q, seed %d, %v; want a seed of our choice", kind, seed, err)
	}
	if kind, seed, err := parseArrivals("constant"); kind != "" || seed != 0 || err != nil {
		t.Errorf("constant: %q, seed %d, %v", kind, seed, err)
	}
	for _, bad := range []string{"", "Poisson", "constant:1", "poisson:", "poisson:-1", "poisson:x", "poisson:99999999999999999999", "uniform"} {
		if _, _, err := parseArrivals(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestLoadOfHoldAlone(t *testing.T) {
	plan := model.LoadPlan{Connections: 4}
	got := loadOf(plan, load.Record{Connections: load.Connections{Failed: 1}, Phases: []load.PhaseRecord{
		{Phase: model.Calm, Requests: 5, Outcomes: map[string]int64{"2xx": 5}, Response: model.Quantiles{Count: 5, P50: 100}},
		{Phase: model.Hold, Start: 1000, End: 3000, Requests: 15, Attempts: 9, Outcomes: map[string]int64{"2xx": 6, "5xx": 2, "read:eof": 2, "connect:EMFILE": 5}},
	}})
	want := model.Load{
		Requests: 10, Attempts: 9, FailedAttempts: 5, Missing: &model.MissingConnections{Failed: 1},
		RPS: 4, GoodRPS: 3, GoodShare: 0.4, Seconds: 2, Outcomes: map[string]int64{"2xx": 6, "5xx": 2, "read:eof": 2, "connect:EMFILE": 5},
		Calm: model.Quantiles{Count: 5, P50: 100}, OtherPhases: map[string]int64{model.Calm: 5},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The colours of a terminal stay on a terminal.
func TestColor(t *testing.T) {
	w, _, _ := testWorld()
	w.stdoutTTY = true
	if !w.color() {
		t.Error("no colour on a terminal")
	}
	w.env = func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	if w.color() {
		t.Error("NO_COLOR was not heeded")
	}
	w.env, w.stdoutTTY = func(string) string { return "" }, false
	if w.color() {
		t.Error("colour in a pipe")
	}
}
