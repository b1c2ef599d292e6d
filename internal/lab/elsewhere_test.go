package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Nobody's password of this machine is copied to the one that is made.
func TestElsewhereKnowsRootAlone(t *testing.T) {
	dir := t.TempDir()
	m := &elsewhere{bin: filepath.Join(dir, "bin")}
	if err := os.Mkdir(m.bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "host.pub"), []byte("ssh-ed25519 x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	if shadow, err := os.ReadFile(filepath.Join(dir, "shadow")); err != nil || string(shadow) != "root:*:19000:0:99999:7:::\n" {
		t.Errorf("%q, %v", shadow, err)
	}
}
