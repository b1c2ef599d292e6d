package wait

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"plimsoll/internal/trace/tracetest"
)

// served shows a folder through a program that keeps nothing (bindfs, FUSE), in a mount namespace of its own, and
// there runs a command again and again until the test ends.
func served(t *testing.T, folder string, command ...string) {
	t.Helper()
	bindfs, err := exec.LookPath("bindfs")
	if err != nil {
		t.Skip("no file system that a program serves without bindfs")
	}
	view := t.TempDir()
	const script = `
		view=$3
		"$1" -f -o ro,attr_timeout=0,entry_timeout=0,direct_io "$2" "$view" &
		trap 'cd /; umount -l "$view"; wait' EXIT
		while ! mountpoint -q "$view"; do sleep 0.02; kill -0 $! || exit 1; done
		cd "$view"; shift 3
		while "$@" >/dev/null; do read -t 0.01 line; [ $? -gt 128 ] || exit 0; done`
	c := exec.Command("unshare", append([]string{"--mount", "bash", "-c", script, "bash", bindfs, folder, view}, command...)...)
	until, err := c.StdinPipe() // its end is the end of all this
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = until.Close()
		_ = c.Wait() // what it says at its end is not asked for
	})
}

// Who asks a file system that a program serves waits for that program, whichever call it asks with.
func TestFileSystemThatAProgramServes(t *testing.T) {
	tracetest.Need(t, tracer())
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	folder := t.TempDir()
	for n := range 50 {
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(n)), []byte("a letter"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr := beginOn(t, newer(t))
	for kind, command := range map[string][]string{"stat": {"find", ".", "-type", "f", "-size", "+1k"}, "read": {"grep", "-r", "e", "."}} {
		name := kind + strconv.Itoa(os.Getpid())
		program, err := exec.LookPath(command[0])
		if err != nil {
			t.Fatal(err)
		}
		served(t, folder, append([]string{tracetest.Copy(t, program, name)}, command[1:]...)...)
		tracetest.Eventually(t, kind+" waits for the file system", func() bool {
			groups, _ := of(t, tr, name)
			asked := map[string]uint64{}
			for _, to := range groups["file_system"].Targets {
				asked[to.Towards] = to.Blocks
			}
			t.Log(kind, asked, "other:", groups["other"].Lengths.Count())
			return asked["fuse"] >= 100
		})
	}
}
