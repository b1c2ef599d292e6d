package capture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/capture"
)

// truth is what was caused in a recorded capture.
type truth struct{ resets, findings []string }

func truths(t *testing.T) map[string]truth {
	t.Helper()
	text, err := os.ReadFile("testdata/causes/truth.tsv")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]truth{}
	for _, line := range lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "capture\t") {
			continue
		}
		f := strings.Split(line, "\t")
		one := out[f[0]]
		if f[1] == "finding" {
			one.findings = append(one.findings, f[2])
		} else {
			one.resets = append(one.resets, f[1]+" "+f[2])
		}
		out[f[0]] = one
	}
	return out
}

// Each reset has the cause that it was given when it was recorded, seen from
// either end, and shows frames for it.
func TestCausesAreThoseThatWereMade(t *testing.T) {
	made := truths(t)
	captures, err := filepath.Glob("testdata/causes/*.pcap")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures, %v", err)
	}
	seen := map[string]bool{}
	for _, name := range captures {
		base := strings.TrimSuffix(filepath.Base(name), ".pcap")
		want, ok := made[base]
		if !ok {
			base, _, _ = strings.Cut(base, ".")
			if want, ok = made[base]; !ok {
				t.Errorf("%s: nobody wrote down what was caused in it", name)
				continue
			}
		}
		seen[base] = true
		r := read(t, capture.Options{}, name)
		var got []string
		for _, one := range r.Judge.Resets {
			if one.Again {
				continue
			}
			got = append(got, one.By+" "+one.Cause)
			if len(one.Evidence) < 2 || !slices.Contains(one.Evidence, one.Frame) {
				t.Errorf("%s: frame %d, %s: %v is no evidence", name, one.Frame, one.Cause, one.Evidence)
			}
		}
		if d := cmp.Diff(want.resets, got); d != "" {
			t.Errorf("%s (-caused +found):\n%s", name, d)
		}
		for _, id := range want.findings {
			if len(r.Findings) == 0 || r.Findings[0].ID != id {
				t.Errorf("%s: found %v, want %s first", name, r.Findings, id)
			}
		}
	}
	for base := range made {
		if !seen[base] {
			t.Errorf("truth.tsv names %s, and there is no such capture", base)
		}
	}
}

// The server's idle timeout is read off the wire.
func TestIdleTimeoutIsInferred(t *testing.T) {
	for _, end := range []string{"client", "server"} {
		r := read(t, capture.Options{}, "testdata/causes/idle."+end+".pcap")
		if s := r.Judge.Servers()[0]; s.IdleTimeout < 1e9 || s.IdleTimeout > 1.1e9 || s.ClosedFirst.Server != 3 {
			t.Errorf("%s: %+v", end, s)
		}
		for _, one := range r.Judge.Resets {
			if s := float64(one.Timeout) / 1e9; s < 0.95 || s > 1.15 {
				t.Errorf("%s: frame %d: a timeout of %.3f s was inferred, it is 1 s and what the processes took", end, one.Frame, s)
			}
		}
	}
}
