package capture_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/cause"
)

// truth is what was caused in a recorded capture. Of lossy ones nobody knows how
// many resets there were, only which.
type truth struct {
	resets, findings []string
	some, any        bool
}

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
		switch by, some := strings.CutPrefix(f[1], "some "); {
		case f[1] == "finding":
			one.findings = append(one.findings, f[2])
		case f[1] == "any":
			one.any = true
		case f[1] != "nothing":
			one.resets, one.some = append(one.resets, by+" "+f[2]), some
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
		seen[hasItsCauses(t, made, name)] = true
	}
	for base := range made {
		if !seen[base] && !slices.Contains(tooLong, base) {
			t.Errorf("truth.tsv names %s, and there is no such capture", base)
		}
	}
}

// tooLong are cases whose captures are too long to be kept.
var tooLong = []string{"small", "article"}

// hasItsCauses holds a capture against its truth, and returns the name under which that stands.
func hasItsCauses(t *testing.T, made map[string]truth, name string) string {
	t.Helper()
	base := strings.TrimSuffix(filepath.Base(name), ".pcap")
	want, ok := made[base]
	if !ok {
		base, _, _ = strings.Cut(base, ".")
		if want, ok = made[base]; !ok {
			t.Errorf("%s: nobody wrote down what was caused in it", name)
			return base
		}
	}
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
	if want.some {
		got = slices.Compact(got)
	}
	if d := cmp.Diff(want.resets, got); d != "" && !want.any {
		t.Errorf("%s (-caused +found):\n%s", name, d)
	}
	if len(want.findings) == 0 && len(want.resets) == 0 && len(r.Findings) > 0 {
		t.Errorf("%s: nothing was caused there, found %v", name, r.Findings)
	}
	for _, id := range want.findings {
		if len(r.Findings) == 0 || r.Findings[0].ID != id {
			t.Errorf("%s: found %v, want %s first", name, r.Findings, id)
		}
	}
	return base
}

// specific are causes that say more than the form of a RST does.
var specific = []string{"queue_overflow", "syn_cookie", "time_wait_reuse", "half_open", "idle_timeout", "client_gave_up", "middlebox",
	"keepalive_failed", "no_answer", "unread_data", "time_wait_gone"}

// A capture that begins later shows less. Whatever it still shows, it makes nothing up: a reset has the cause
// that it has in the whole capture, or one that says less.
func TestCausesInTheMiddle(t *testing.T) {
	captures, err := filepath.Glob("testdata/causes/*.pcap")
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, name := range captures {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole := causesOf(t, text)
		at := 24 // after the file's head
		for n := uint32(1); n <= 16 && at+16 <= len(text); n++ {
			at += 16 + int(binary.LittleEndian.Uint32(text[at+8:]))
			for frame, cause := range causesOf(t, slices.Concat(text[:24], text[at:])) {
				switch was := whole[frame+n]; {
				case cause == was:
					kept++
				case slices.Contains(specific, cause):
					t.Errorf("%s without its first %d packets: frame %d has the cause %s; it is %s", name, n, frame, cause, was)
				}
			}
		}
	}
	if kept < 1000 {
		t.Errorf("of what was cut only %d resets kept their cause", kept)
	}
}

// A mirror port shows each packet twice, and who captures headers alone cuts them: the causes stay the same.
func TestCausesOfCopies(t *testing.T) {
	captures, err := filepath.Glob("testdata/causes/*.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range captures {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		twice, cut := text[:24:24], text[:24:24]
		for at := 24; at+16 <= len(text); {
			size := int(binary.LittleEndian.Uint32(text[at+8:]))
			one := text[at : at+16+size]
			again := slices.Clone(one)
			binary.LittleEndian.PutUint32(again[4:], min(binary.LittleEndian.Uint32(one[4:])+3, 999_999)) // µs
			twice = append(append(twice, one...), again...)
			headers := slices.Clone(one[:16+min(size, 74)])
			binary.LittleEndian.PutUint32(headers[8:], uint32(min(size, 74)))
			cut = append(cut, headers...)
			at += len(one)
		}
		whole := firstCauses(t, text)
		if d := cmp.Diff(whole, firstCauses(t, twice)); d != "" {
			t.Errorf("%s, each packet twice (-once +twice):\n%s", name, d)
		}
		if d := cmp.Diff(whole, firstCauses(t, cut)); d != "" {
			t.Errorf("%s, cut to headers (-whole +cut):\n%s", name, d)
		}
	}
}

// firstCauses are the causes of the resets that follow from no other.
func firstCauses(t *testing.T, text []byte) (causes []string) {
	t.Helper()
	for _, one := range resetsOf(t, text) {
		if !one.Again && !one.Twice {
			causes = append(causes, one.By+" "+one.Cause)
		}
	}
	return causes
}

// causesOf is each RST's cause.
func causesOf(t *testing.T, text []byte) map[uint32]string {
	t.Helper()
	causes := map[uint32]string{}
	for _, one := range resetsOf(t, text) {
		causes[one.Frame] = one.Cause
	}
	return causes
}

func resetsOf(t *testing.T, text []byte) []cause.Reset {
	t.Helper()
	r, err := capture.Read(t.Context(), []capture.Source{{Name: "copy", In: bytes.NewReader(text)}}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Judge.Resets
}

// The causes are made anew, with this kernel, and found again: a few of them once, or all
// as often as PLIMSOLL_CAUSES says (3 takes some fifteen minutes).
func TestCausesMadeAnew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	for _, program := range []string{"python3", "tcpdump", "ip", "nft", "ethtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v; scripts/install-deps tests installs it", err)
		}
	}
	made := truths(t)
	cases, runs := []string{"refused", "after_close", "unread", "overflow", "middlebox"}, 1
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_CAUSES")); err == nil {
		runs, cases = n, nil
		for base := range made {
			if name, _, _ := strings.Cut(base, "."); !slices.Contains(cases, name) {
				cases = append(cases, name)
			}
		}
		slices.Sort(cases)
	}
	for _, name := range cases {
		for range runs {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				if out, err := exec.Command("python3", "testdata/record.py", dir, name).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				for _, end := range []string{"client", "server"} {
					hasItsCauses(t, made, filepath.Join(dir, name+"."+end+".pcap"))
				}
			})
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
