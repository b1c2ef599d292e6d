package symbol

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What a process mapped is opened if it is a regular file, also one that was deleted, and no device.
func TestOpenLinkOpensNoDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	opened, err := openLink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if text, err := io.ReadAll(opened); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if opened, err := openLink(fmt.Sprintf("/proc/self/fd/%d", null.Fd())); err == nil {
		opened.Close()
		t.Error("a device was opened")
	}
}
