package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// hostileText is what somebody may put wherever a text is his: it sets a window's
// title, hides what follows, forges a line and turns the direction.
const hostileText = "evil\x1b]0;owned\x07\x1b[8m\r\u009b2J\u202e\nVERDICT: FORGED\n$(touch owned)"

// harmless (harmless) wants nothing in the last command's output that steers a
// terminal, and no line that a text from outside begins.
func harmless(ts *testscript.TestScript, _ bool, _ []string) {
	for _, name := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(name)
		if !utf8.ValidString(text) {
			ts.Fatalf("%s is no UTF-8: %q", name, text)
		}
		for _, r := range text {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				ts.Fatalf("%s has %q in it: %q", name, r, text)
			}
		}
		if strings.Contains("\n"+text, "\nVERDICT: FORGED") {
			ts.Fatalf("%s: a text from outside made a line of its own: %q", name, text)
		}
	}
}

// hostileRun (hostile-run DIR) makes a run directory whose every text is hostile.
func hostileRun(ts *testscript.TestScript, _ bool, args []string) {
	begin := time.Now().Add(-time.Minute).UnixMilli()
	run := model.Run{
		Version: hostileText, Started: begin, Notes: []string{hostileText},
		Hosts: []model.Host{{Name: hostileText, Spec: "netns:" + hostileText, Kernel: hostileText, Machine: "b", CPUs: 1}, {Name: "other", Machine: hostileText}},
		Plan: model.Plan{Mode: "run", Interval: 1000, Generator: hostileText, Command: []string{hostileText},
			Load: &model.LoadPlan{URL: "http://10.0.0.2/" + hostileText, Method: hostileText, Connections: 1, DurationMS: 1000}},
		Windows: []model.Window{{Name: model.Baseline, Start: begin, End: begin + 2000}, {Name: model.Hold, Start: begin + 2000, End: begin + 10_000}},
		Site:    &model.Site{Added: []string{hostileText}},
		Tracing: &model.Tracing{Level: hostileText, Duty: map[string]float64{hostileText: 0.5}, Profiles: []string{hostileText}},
	}
	dir := ts.MkAbs(args[0])
	w, err := writer.Create(dir, run)
	ts.Check(err)
	sig := &model.Signal{Name: "plimsoll_tasks_zombies", Kind: model.Gauge, Labels: []string{"groupname", "pid"}}
	for i := range int64(10) {
		w.Sample(hostileText, begin+i*1000, sig, 5, hostileText, "$(touch owned)")
	}
	w.Event(model.Event{Time: begin, Host: hostileText, Kind: hostileText, Text: hostileText})
	w.Note(hostileText + "2")
	w.Status(hostileText, sig.Name, model.Status{State: model.Read})
	w.Status("other", sig.Name, model.Status{State: model.Failed, Why: hostileText})
	ts.Check(w.Commit())
	ts.Check(w.Close())
}

// hostileServer (hostile-server) starts what says that it is a Prometheus; $EVIL leads to it.
func hostileServer(ts *testscript.TestScript, _ bool, _ []string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"status": "error", "error": hostileText + strings.Repeat("x", 1<<20)})
	}))
	ts.Defer(srv.Close)
	ts.Setenv("EVIL", srv.URL)
}

// noSecret (nosecret WORD [DIR...]) wants that the word is neither in the last
// command's output nor in any file of the folders.
func noSecret(ts *testscript.TestScript, _ bool, args []string) {
	word := []byte(args[0])
	for _, name := range []string{"stdout", "stderr"} {
		if text := ts.ReadFile(name); strings.Contains(text, args[0]) {
			ts.Fatalf("%s has %s in it: %s", name, word, text)
		}
	}
	files := 0
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if bytes.Contains(text, word) {
				err = fmt.Errorf("%s has %s in it", path, word)
			}
			return err
		}))
	}
	if files == 0 && len(args) > 1 {
		ts.Fatalf("there is no file in %v", args[1:])
	}
}

// secretURL (secret-url) makes $SECRETURL of $URL: a request with a token in it.
func secretURL(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("SECRETURL", ts.Getenv("URL")+"?a=1&token=hunter2&sig=hunter2")
}

// copyEvil (copy-evil) makes $EVIL, a program with an escape in its name.
func copyEvil(ts *testscript.TestScript, _ bool, _ []string) {
	path := ts.MkAbs("ev\x1b[8mil")
	ts.Check(os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	ts.Setenv("EVIL", path)
}
