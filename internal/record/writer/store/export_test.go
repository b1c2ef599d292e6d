package store

import (
	"os"
	"testing"
)

// WhenSynced has a test see each file or directory before it is synced.
func WhenSynced(t *testing.T, see func(name string)) {
	before := syncFile
	t.Cleanup(func() { syncFile = before })
	syncFile = func(f *os.File) error {
		see(f.Name())
		return before(f)
	}
}
