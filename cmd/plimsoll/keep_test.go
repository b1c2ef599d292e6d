package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
)

// A watch that stays makes a run when it is asked to, which others open; its last minute is judged apart.
func TestSnapshot(t *testing.T) {
	shelf := filepath.Join(t.TempDir(), "runs")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plimsoll := filepath.Join(t.TempDir(), "plimsoll") // by this name the tests' binary is it
	if err := os.Symlink(self, plimsoll); err != nil {
		t.Fatal(err)
	}
	worldOf := func(args ...string) *world {
		w, _, _ := testWorld(args...)
		w.env = func(name string) string { return map[string]string{"PLIMSOLL_RUNS": shelf}[name] }
		w.executable = plimsoll
		return w
	}
	watch := worldOf("watch", "--listen", "127.0.0.1:0", "--keep", "1m", "--trace", "off", "--interval", "100ms")
	ready, out := io.Pipe()
	watch.stdout = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, watch) }()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	snapshot := worldOf("snapshot")
	var said strings.Builder
	snapshot.stdout = &said
	if code := run(t.Context(), snapshot); code != exitOK {
		t.Fatalf("snapshot: exit code %d: %s", code, snapshot.stderr)
	}
	dir := strings.TrimSpace(said.String())
	if _, err := os.Stat(filepath.Join(dir, "verdict.json")); err != nil || filepath.Dir(dir) != shelf {
		t.Errorf("%s: %v", dir, err)
	}
	var r model.Report
	plimsollJSON(t, &r, "diagnose", dir, "--json")
	if !r.Closed || r.Plan.Snapshot == "" || r.Verdict.Answer == "" {
		t.Errorf("the run: closed %v, plan %+v", r.Closed, r.Plan)
	}
	j, err := judgeApart(t.Context(), watch, filepath.Join(filepath.Dir(shelf), "last-minutes"), time.Minute)
	if err != nil || j.Answer == "" || j.CPU == 0 {
		t.Errorf("the last minute: %+v, %v", j, err)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("the watch ended with %d: %s", code, watch.stderr)
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(shelf), "last-minutes")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left", left, err)
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
