package requests

import (
	"fmt"
	"maps"
	"net"
	"os/exec"
	"testing"
)

// TestWhatHoldersDo: what the threads wait for that have a request in hand; not those that
// have answered theirs, and wait for the same.
func TestWhatHoldersDo(t *testing.T) { eachWay(t, whatHoldersDo) }

func whatHoldersDo(t *testing.T, w way) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	tr, ns := begin(t, w, everything)
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	addr := startProcess(t, python, "", "testdata/threads.py")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, what := range []string{"lock", "lock", "lock", "pipe", "pipe"} {
		fmt.Fprintln(dial(), what)
	}
	ask(t, dial(), "answer")
	want := map[string]uint64{"lock": 3, "pipe": 2}
	p := wait(t, tr, ns, addr, "three wait for the lock, and two for the pipe", func(p Place) bool {
		return len(p.Groups) == 1 && maps.Equal(p.Groups[0].Doing, want)
	})
	if *p.Groups[0].Now != 5 {
		t.Errorf("%d in hand, want 5", *p.Groups[0].Now)
	}
}

// TestHoldersThatAreNotLookedAt: 128 of 200 stand for all of them.
func TestHoldersThatAreNotLookedAt(t *testing.T) {
	d := doing{7: {"lock": 100, "running": 28}}
	d.scale(200.0 / maxHolders)
	if got := d[7]; got["lock"] != 156 || got["running"] != 44 {
		t.Errorf("%v, want 156 and 44 of 200", got)
	}
}
