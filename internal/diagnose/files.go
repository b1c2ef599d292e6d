package diagnose

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The bounds of a rule set, which may be anybody's. The built-in one has 91 rules
// in 400 kB, and 1.7 MB of vectors.
const (
	maxRules     = 1000
	maxEntries   = 20_000 // files and folders
	maxRuleFile  = 64 << 10
	maxRuleFiles = 2 << 20 // of all rules together
	maxRecords   = 1 << 20
	maxTestFiles = 32 << 20 // of all vectors together
	maxSliceFile = 2 << 20
	maxSlices    = 64 << 20 // of all slices together, unpacked
	maxText      = 64 << 10 // of an expression with its records, and of a sentence
)

// room is what is left of a bound that several share.
type room struct {
	left int64
	of   string
}

func (r *room) take(n int64) error {
	if r.left -= n; r.left < 0 {
		return fmt.Errorf("more than the set may have of %s", r.of)
	}
	return nil
}

// readFile reads a plain file of at most so many bytes. A FIFO would hold us up, and
// a device need have no end.
func readFile(fsys fs.FS, name string, most int64) (_ []byte, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a plain file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: more than %d bytes; no rule needs so many", name, most)
	}
	return raw, err
}
