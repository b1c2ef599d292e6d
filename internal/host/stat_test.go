package host

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// statThreads is of a process on Linux 6.1 whose name is "a) (b c".
const statThreads = "30444 (a) (b c) S 30319 30311 12552 0 -1 4194304 2146 0 0 0 3 0 0 0 20 0 3 0 303570 169611264 3567 18446744073709551615 93829026492416 93829026492757 140737280336272 0 0 0 0 16781312 2 0 0 0 17 0 0 0 0 0 0 93829026504112 93829026504728 93829547827200 140737280341216 140737280342080 140737280342080 140737280344015 0\n"

func TestParseStat(t *testing.T) {
	var got Stat
	if err := got.Parse([]byte(statThreads)); err != nil {
		t.Fatal(err)
	}
	want := Stat{Comm: []byte("a) (b c"), State: 'S', PPID: 30319, Group: 30311, MinFaults: 2146, User: 3, Threads: 3,
		Start: 303570, Virtual: 169611264, ResidentPages: 3567}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stat (-want +got):\n%s", diff)
	}
	if err := got.Parse([]byte(statKernel)); err != nil || !got.Kernel || string(got.Comm) != "kthreadd" {
		t.Errorf("a thread of the kernel: %+v, %v", got, err)
	}
}

func TestParseStatRefuses(t *testing.T) {
	const good = "1 (x) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 25 100 200 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5"
	var s Stat
	if err := s.Parse([]byte(good)); err != nil || s.Policy != 5 {
		t.Fatalf("%+v, %v", s, err)
	}
	for name, in := range map[string]string{
		"nothing":             "",
		"no name":             "1 x S 0 1",
		"brackets apart":      "1 )x( S 0 1",
		"name at end":         "1 (x)",
		"cut short":           good[:len(good)-2],
		"no number":           strings.Replace(good, " 25 ", " x ", 1),
		"a huge number":       strings.Replace(good, " 25 ", " 99999999999999999999999 ", 1),
		"a nice of no number": strings.Replace(good, " 20 0 ", " 20 -x ", 1),
		"a nice beyond all":   strings.Replace(good, " 20 0 ", " 20 -99999999999 ", 1),
	} {
		if err := s.Parse([]byte(in)); err == nil {
			t.Errorf("%s: %q was accepted", name, in)
		}
	}
}

func TestParseStatNice(t *testing.T) {
	for word, want := range map[string]int{"0": 0, "19": 19, "-20": -20} {
		var s Stat
		if err := s.Parse([]byte(strings.Replace(statThreads, " 20 0 3 ", " 20 "+word+" 3 ", 1))); err != nil || s.Nice != want || s.Threads != 3 {
			t.Errorf("nice %s: %+v, %v", word, s, err)
		}
	}
}

func TestStatOfAProcess(t *testing.T) {
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	if s, err := StatOf(pid); err != nil || s.PPID != os.Getpid() || s.Start == 0 || s.Kernel {
		t.Errorf("our child: %+v, %v", s, err)
	}
	c.Process.Kill()
	c.Wait()
	if s, err := StatOf(pid); StatusOf(err).State != "absent" {
		t.Errorf("one that has ended: %+v, %v", s, err)
	}
}

func FuzzParseStat(f *testing.F) {
	for _, text := range []string{statThreads, statNginx, statKernel, "1 (a) b) S"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Stat
		if err := s.Parse(b); err != nil && (s.Comm != nil || s.Start != 0) {
			t.Errorf("a process and an error: %+v, %v", s, err)
		}
		splitArgs(b)
	})
}
