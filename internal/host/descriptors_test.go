package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachDescriptor(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// Go keeps no other descriptor open in a child: it has 0, 1, 2 and those given.
	c := exec.CommandContext(t.Context(), "cat")
	c.Stderr = null
	for range 300 {
		c.ExtraFiles = append(c.ExtraFiles, file)
	}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = c.Process.Kill(), c.Wait() }()
	// It has loaded its libraries once it answers.
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	dir := "/proc/" + strconv.Itoa(c.Process.Pid)
	links := map[int]string{2: os.DevNull, 3: file.Name(), 302: file.Name()}
	for _, most := range []int{2, 303, 1000} {
		seen, last := map[int]string{}, -1
		looked, err := EachDescriptor(dir, most, func(fd int, link []byte, err error) {
			if err != nil || fd != last+1 {
				t.Errorf("descriptor %d after %d: %v", fd, last, err)
			}
			last = fd
			if _, ok := links[fd]; ok {
				seen[fd] = string(link)
			}
		})
		if err != nil || looked != min(most, 303) || looked != last+1 {
			t.Errorf("at most %d: looked at %d, the last is %d: %v", most, looked, last, err)
		}
		if most >= 303 {
			if d := cmp.Diff(links, seen); d != "" {
				t.Errorf("at most %d (-want +got):\n%s", most, d)
			}
		}
	}
	if _, err := EachDescriptor("/proc/0", 9, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a process that is not there: %v", err)
	}
}
