package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFileReadsFilesWhole(t *testing.T) {
	dir := t.TempDir()
	for _, size := range []int{0, 1, 1024, 1025, 100_000} {
		want := bytes.Repeat([]byte("x"), size)
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes: got %d bytes, %v", size, len(got), err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v, want one that is fs.ErrNotExist", err)
	}
}
