package input

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A FIFO is read from its first writer on, whichever comes first.
func TestOpenWaitsForWhoWrites(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	ok(t, unix.Mkfifo(pipe, 0o600))
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
		if err == nil {
			_, err = f.WriteString("written")
			err = errors.Join(err, f.Close())
		}
		done <- err
	}()
	f, err := Open(pipe)
	ok(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	if ok(t, errors.Join(err, <-done)); string(text) != "written" {
		t.Errorf("%q", text)
	}
}

func TestWhatIsReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	ok(t, errors.Join(os.WriteFile(file, []byte("12345"), 0o600), unix.Mkfifo(pipe, 0o600)))
	if text, err := Read(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for path, want := range map[string]string{file: "more than 4 bytes", "/dev/zero": "more than 4 bytes", dir: "is a directory"} {
		if _, err := Read(path, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if text, err := Read(pipe, 4); err != nil || len(text) > 0 {
		t.Errorf("a pipe that nobody writes to: %q, %v", text, err)
	}
	if text, err := ReadPlain(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for path, want := range map[string]string{file: "more than 4 bytes", "/dev/zero": "want a plain file", pipe: "want a plain file", dir: "want a plain file", dir + "/none": "no such file"} {
		if _, err := ReadPlain(path, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if text, err := ReadSecret(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q, %v", text, err)
	}
	for mode, refused := range map[os.FileMode]bool{0o400: false, 0o640: false, 0o604: true, 0o602: true} {
		ok(t, os.Chmod(file, mode))
		if _, err := ReadSecret(file, 5); (err != nil) != refused {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := KeyPair("/dev/zero", pipe); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}
