package writer

import (
	"errors"
	"fmt"

	"plimsoll/internal/record"
)

// Verdict leaves doc, the report as JSON, in the closed run's directory. It can
// be made from the rest of the directory at any time, so nothing reads it back.
func Verdict(dir string, doc []byte) (err error) {
	d, err := openRunDir(dir)
	if err == nil {
		err = errors.Join(replace(d.root, record.VerdictFile, doc, false), d.close())
	}
	if err != nil {
		return fmt.Errorf("leave the verdict in the run directory %s: %w", dir, err)
	}
	return nil
}
