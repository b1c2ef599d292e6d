package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// keeper is a watch that keeps the last minutes, and whose worlds know its runs.
type keeper struct {
	*world
	shelf   string
	worldOf func(args ...string) *world
	end     func() int
}

// aKeeper starts one, and waits until it shows something.
func aKeeper(t *testing.T, more ...string) keeper {
	t.Helper()
	shelf := filepath.Join(t.TempDir(), "runs")
	self, err := os.Executable()
	ok(t, err)
	plimsoll := filepath.Join(t.TempDir(), "plimsoll") // by this name the tests' binary is it
	ok(t, os.Symlink(self, plimsoll))
	worldOf := func(args ...string) *world {
		w, _, _ := testWorld(args...)
		w.env = func(name string) string { return map[string]string{"PLIMSOLL_RUNS": shelf}[name] }
		w.executable = plimsoll
		return w
	}
	watch := worldOf(append([]string{"watch", "--listen", "127.0.0.1:0", "--keep", "1m", "--trace", "off", "--interval", "100ms"}, more...)...)
	ready, out := io.Pipe()
	watch.stdout = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, watch) }()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return keeper{watch, shelf, worldOf, func() int { stop(); return <-ended }}
}

// snapshot asks for a run.
func (k keeper) snapshot(t *testing.T) (dir string) {
	t.Helper()
	w := k.worldOf("snapshot")
	var said strings.Builder
	w.stdout = &said
	if code := run(t.Context(), w); code != exitOK {
		t.Fatalf("snapshot: exit code %d: %s", code, w.stderr)
	}
	return strings.TrimSpace(said.String())
}

// snapshotJSON asks for a run, and for the document that names it.
func (k keeper) snapshotJSON(t *testing.T) (dir string) {
	t.Helper()
	w := k.worldOf("snapshot", "--json")
	var said bytes.Buffer
	w.stdout = &said
	if code := run(t.Context(), w); code != exitOK {
		t.Fatalf("snapshot: exit code %d: %s", code, w.stderr)
	}
	fitsSchema(t, "Snapshot", said.Bytes())
	var doc snapshotDocument
	ok(t, json.Unmarshal(said.Bytes(), &doc))
	return doc.Dir
}

// A watch that stays makes a run when it is asked to, which others open; its last minute is judged apart.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	k := aKeeper(t)
	dir := k.snapshot(t)
	if _, err := os.Stat(filepath.Join(dir, "verdict.json")); err != nil || filepath.Dir(dir) != k.shelf {
		t.Errorf("%s: %v", dir, err)
	}
	var r model.Report
	plimsollJSON(t, &r, "diagnose", dir, "--json")
	if !r.Closed || r.Plan.Snapshot == "" || r.Verdict.Answer == "" {
		t.Errorf("the run: closed %v, plan %+v", r.Closed, r.Plan)
	}
	j, err := judgeApart(t.Context(), k.world, filepath.Join(filepath.Dir(k.shelf), "last-minutes"), time.Minute)
	if err != nil || j.Answer == "" || j.CPU == 0 {
		t.Errorf("the last minute: %+v, %v", j, err)
	}
	if code := k.end(); code != exitOK {
		t.Errorf("the watch ended with %d: %s", code, k.stderr)
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(k.shelf), "last-minutes")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left", left, err)
	}
}

// Who judges gives way with all its threads, from the first on; who closes does not, and nor do we.
func TestJudgingGivesWay(t *testing.T) {
	script := filepath.Join(t.TempDir(), "plimsoll")
	ok(t, os.WriteFile(script, []byte("#!/bin/sh\nexec nice\n"), 0o700))
	w := &world{executable: script}
	for range 20 {
		for patient, want := range map[bool]string{true: "19\n", false: "0\n"} {
			var said bytes.Buffer
			if _, err := apart(t.Context(), w, patient, &said); err != nil || said.String() != want {
				t.Fatalf("patient %v: nice %q, %v; want %q", patient, said.String(), err, want)
			}
		}
	}
}

// Killed while it closes a run, our child leaves one that was cut off; where it says that the disk is full there is none.
func TestSnapshotWhoseCloserIsKilled(t *testing.T) {
	t.Parallel()
	k := aKeeper(t)
	real := filepath.Join(t.TempDir(), "plimsoll")
	ok(t, os.Rename(k.executable, real))
	closes := func(how string) {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = %s ] || exec %s \"$@\"\nmkdir \"$2/series/cut.tmp\"\n%s\n", finisherName, real, how)
		ok(t, os.WriteFile(k.executable, []byte(script), 0o700))
	}
	closes("kill -9 $$")
	dir := k.snapshot(t)
	kept, err := record.Open(dir)
	ok(t, err)
	ok(t, kept.Close())
	killed := func(note string) bool {
		return strings.HasSuffix(note, "close-run in a process of its own: signal: killed")
	}
	if notes := kept.Meta().Notes; kept.Meta().Closed || !slices.ContainsFunc(notes, killed) {
		t.Errorf("closed %v, its notes are %q", kept.Meta().Closed, notes)
	}
	if _, err := os.Stat(filepath.Join(dir, record.SeriesDir, "cut.tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("is cut.tmp gone? %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "verdict.json")); err != nil {
		t.Error(err)
	}
	closes(fmt.Sprint("echo it has no room >&2; exit ", exitRunDir))
	w := k.worldOf("snapshot")
	var said strings.Builder
	w.stderr = &said
	if code := run(t.Context(), w); code != exitMissing || !strings.Contains(said.String(), "no room") || !strings.Contains(said.String(), "the disk is full") {
		t.Errorf("exit %d, %s", code, &said)
	}
	if made, err := k.snapshots(); err != nil || len(made) != 1 {
		t.Errorf("%v, %v are there; want the first alone", made, err)
	}
	if code := k.end(); code != exitOK {
		t.Errorf("the watch ended with %d: %s", code, k.stderr)
	}
}

// Each run goes into a bucket as well, also one that was made while its server was full, and is reported there as it is here.
func TestSnapshotInABucket(t *testing.T) {
	t.Parallel()
	kept := s3mem.New()
	ok(t, kept.CreateBucket("runs"))
	real, manifests, refused := gofakes3.New(kept).Server(), make(chan string, 10), make(chan bool, 10)
	var full atomic.Bool
	full.Store(true)
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && full.Swap(false) {
			w.WriteHeader(http.StatusInsufficientStorage)
			refused <- true
			return
		}
		real.ServeHTTP(w, r)
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/run.json") {
			manifests <- r.URL.Path
		}
	}))
	defer s3.Close()
	file := filepath.Join(t.TempDir(), "s3.yml")
	text := "type: S3\nconfig: {bucket: runs, endpoint: '" + strings.TrimPrefix(s3.URL, "http://") + "', access_key: who, secret_key: word, insecure: true}\n"
	ok(t, os.WriteFile(file, []byte(text), 0o600))
	k := aKeeper(t, "--bucket", file)
	first := k.snapshot(t)
	<-refused
	second := k.snapshotJSON(t) // what is made looks at all that is there
	uploaded := []string{path.Base(path.Dir(<-manifests)), path.Base(path.Dir(<-manifests))}
	made := []string{filepath.Base(first), filepath.Base(second)}
	slices.Sort(uploaded) // runs of one second go in any order
	slices.Sort(made)
	if !slices.Equal(uploaded, made) {
		t.Errorf("%v are uploaded, want %v", uploaded, made)
	}
	pages := make([]string, 2)
	for n, name := range []string{second, "s3://runs/" + machineName() + "/" + filepath.Base(second)} {
		page := filepath.Join(t.TempDir(), "page.html")
		w := k.worldOf("report", name, "--bucket", file, "-o", page)
		code := run(t.Context(), w)
		for code == exitUnreachable { // a machine that stands still for a minute: the server is in this process
			w = k.worldOf("report", name, "--bucket", file, "-o", page)
			code = run(t.Context(), w)
		}
		if code != exitOK {
			t.Fatalf("report %s: exit code %d: %s", name, code, w.stderr)
		}
		raw, err := os.ReadFile(page)
		ok(t, err)
		if !strings.Contains(string(raw), name) {
			t.Errorf("the page does not name the run %s", name)
		}
		pages[n] = regexp.MustCompile(`[^\s"'&<>]*`+filepath.Base(second)).ReplaceAllString(string(raw), "RUN") // wherever it lies
	}
	if pages[0] != pages[1] {
		t.Errorf("the pages differ: %d bytes, and %d", len(pages[0]), len(pages[1]))
	}
	if code := k.end(); code != exitOK {
		t.Errorf("the watch ended with %d: %s", code, k.stderr)
	}
	for name, want := range map[string]int{"s3://runs/nobody/none": exitUnreachable, "s3://runs": exitUsage} {
		w := k.worldOf("report", name, "--bucket", file, "-o", "x")
		if code := run(t.Context(), w); code != want {
			t.Errorf("%s, which is no run: exit code %d, want %d: %s", name, code, want, w.stderr)
		}
	}
}

// A name of a file that is empty, as of a variable that is not set, is a mistake, and not a watch that uploads nothing.
func TestBucketWithoutAName(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // one that begins ends at once
	for _, args := range [][]string{{"watch", "--listen", "127.0.0.1:0", "--keep", "1m", "--bucket", ""}, {"report", "x", "-o", "x", "--bucket", ""}} {
		w, _, talk := testWorld(args...)
		if code := run(ended, w); code != exitUsage || !strings.Contains(talk.String(), "--bucket is empty") {
			t.Errorf("%v: exit code %d: %s", args, code, talk)
		}
	}
}

// The webhook's address may stand in a file, where the list of processes does not show it; no message does either.
func TestWebhookOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hook")
	for text, want := range map[string]int{"": exitUsage, "chat.example/secret\n": exitUsage, "ftp://chat.example/secret": exitUsage, "https://chat.example/secret\n": exitOK, "https://" + strings.Repeat("secret", maxWebhook): exitMissing} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := checkedWebhook("--webhook-file", file)
		code := exitOK
		if err != nil {
			code = codeOf(err)
		}
		if code != want {
			t.Errorf("%.40q: exit code %d, want %d: %v", text, code, want, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("it is said: %v", err)
		}
		if err == nil && f.webhook != "https://chat.example/secret" {
			t.Errorf("the webhook is %q", f.webhook)
		}
	}
	if err := os.WriteFile(file, []byte("https://chat.example/secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]int{0o600: exitOK, 0o440: exitOK, 0o644: exitMissing, 0o602: exitMissing} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := checkedWebhook("--webhook-file", file); want == exitOK && err != nil || want != exitOK && (codeOf(err) != want || !strings.Contains(err.Error(), "chmod o=")) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := checkedWebhook("--webhook", "https://chat.example/", "--webhook-file", file); codeOf(err) != exitUsage {
		t.Errorf("two addresses: %v", err)
	}
}

// checkedWebhook are the flags of a watch that keeps, given these, once the webhook's are checked.
func checkedWebhook(args ...string) (*keepFlags, error) {
	c := &cobra.Command{Use: "watch"}
	f := &keepFlags{}
	f.add(c, &world{})
	if err := c.ParseFlags(args); err != nil {
		return f, err
	}
	return f, f.checkWebhook(c)
}

// A name of a file that is empty, as of a variable that is not set, is a mistake, and not a watch that tells nobody.
func TestWebhookFileWithoutAName(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // one that begins ends at once
	for _, args := range [][]string{{"--webhook-file="}, {"--webhook="}, {"--webhook=", "--webhook-file=x"}} {
		w, _, stderr := testWorld()
		w.args = append([]string{"watch", "--listen", "127.0.0.1:0", "--keep", "1m", "--keep-dir", t.TempDir()}, args...)
		if code := run(ended, w); code != exitUsage || !strings.Contains(stderr.String(), "--webhook") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

// A run that is being made, or was cut off, counts as one that is there, and is none to be uploaded.
func TestWholeSnapshots(t *testing.T) {
	shelf := t.TempDir()
	for name, closed := range map[string]bool{"cut": false, "whole": true} {
		ok(t, os.Mkdir(filepath.Join(shelf, name), 0o700))
		text := fmt.Sprintf(`{"format": %d, "closed": %t, "plan": {"snapshot": "asked"}}`, record.Format, closed)
		ok(t, os.WriteFile(filepath.Join(shelf, name, record.ManifestFile), []byte(text), 0o600))
	}
	w, _, _ := testWorld()
	w.env = func(name string) string { return map[string]string{"PLIMSOLL_RUNS": shelf}[name] }
	all, err := w.snapshots()
	ok(t, err)
	whole, err := w.wholeSnapshots()
	ok(t, err)
	if len(all) != 2 || len(whole) != 1 || filepath.Base(whole[0]) != "whole" {
		t.Errorf("all are %v, and whole %v", all, whole)
	}
}
