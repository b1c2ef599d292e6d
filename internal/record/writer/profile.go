package writer

import (
	"fmt"

	"plimsoll/internal/record"
)

// Profile writes stacks, in pprof's gzipped form, under their name ("cpu").
func (w *Writer) Profile(name string, data []byte) error {
	if err := replace(w.open.root, name+record.ProfileEnd, data, false); err != nil {
		return w.explain(fmt.Errorf("write the stacks of %s: %w", name, err))
	}
	return nil
}
