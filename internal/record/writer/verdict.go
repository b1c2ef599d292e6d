package writer

import (
	"fmt"
	"os"
	"path/filepath"

	"plimsoll/internal/record"
)

// Verdict leaves doc, the report as JSON, in the closed run's directory. It can
// be made from the rest of the directory at any time, so nothing reads it back.
func Verdict(dir string, doc []byte) error {
	path := filepath.Join(dir, record.VerdictFile)
	if err := os.WriteFile(path+".new", doc, 0o600); err != nil {
		return fmt.Errorf("leave the verdict in the run directory: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("leave the verdict in the run directory: %w", err)
	}
	return nil
}
