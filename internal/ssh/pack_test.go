package ssh

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A program is packed once for all machines, and what is sent is that program.
func TestAProgramIsPackedOnce(t *testing.T) {
	path, program := filepath.Join(t.TempDir(), "program"), bytes.Repeat([]byte("some program "), 10_000)
	check(t, os.WriteFile(path, program, 0o600))
	k, sum := packing{made: map[string]pack{}}, sha256.Sum256(program)
	for _, packed := range []bool{true, false} {
		p, err := k.of(path, packed)
		check(t, err)
		got := p.wire
		if packed {
			z, err := gzip.NewReader(bytes.NewReader(p.wire))
			check(t, err)
			got, err = io.ReadAll(z)
			check(t, err)
		}
		if !bytes.Equal(got, program) || p.size != int64(len(program)) || !bytes.Equal(p.sum, sum[:]) {
			t.Errorf("packed %v: %d bytes of %d, sum %x", packed, len(got), p.size, p.sum)
		}
		if again, err := k.of(path, packed); err != nil || &again.wire[0] != &p.wire[0] {
			t.Errorf("packed %v: it was packed anew, %v", packed, err)
		}
	}
	if _, err := k.of(path+".none", true); !os.IsNotExist(err) {
		t.Errorf("%v, want that there is none", err)
	}
}
