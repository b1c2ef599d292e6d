package writer

import (
	"fmt"
	"os"
	"path/filepath"

	"plimsoll/internal/record"
)

// Profile writes stacks, in pprof's gzipped form, under their name ("cpu").
func (w *Writer) Profile(name string, data []byte) error {
	path := filepath.Join(w.dir, name+record.ProfileEnd)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return w.explain(fmt.Errorf("write the stacks of %s: %w", name, err))
	}
	return nil
}
