package ruleset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// The bounds of a rule set, which may be anybody's. The built-in one has 91 rules
// in 400 kB.
const (
	maxRules     = 1000
	maxEntries   = 20_000 // files and folders
	maxRuleFile  = 64 << 10
	maxRuleFiles = 2 << 20 // of all rules together
	maxRecords   = 1 << 20
	maxText      = 64 << 10 // of a sentence
)

// ReadFile reads a plain file of at most so many bytes. A FIFO would hold us up, and
// a device need have no end.
func ReadFile(fsys fs.FS, name string, most int64) (_ []byte, err error) {
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

// DecodeStrict decodes exactly one YAML document and refuses unknown fields.
func DecodeStrict(raw []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		}
		return err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("want one YAML document, found more")
	}
	return nil
}
