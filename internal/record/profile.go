package record

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// maxProfile is the most of a run's stacks that is read, in bytes; those of a
// minute have some hundred kB.
const maxProfile = 64 << 20

// Stacks reads the stacks of that name ("cpu") of the run in dir, in pprof's form.
// Where there are none the error says which there are.
func Stacks(dir, name string) ([]byte, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("read stacks: %w", err)
	}
	raw, err := f.stacks(name)
	return raw, errors.Join(err, f.close())
}

// Stacks reads the stacks of that name as the function Stacks does.
func (r *Run) Stacks(name string) ([]byte, error) {
	if r.folder == nil {
		return nil, errors.New("the run lies in no directory, and has no stacks")
	}
	return r.folder.stacks(name)
}

func (f *folder) stacks(name string) ([]byte, error) {
	raw, err := f.read(name+ProfileEnd, maxProfile)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.noStacks(name)
	}
	return raw, err
}

// noStacks says which stacks a run has instead.
func (f *folder) noStacks(name string) error {
	entries, err := f.list(".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if other, ok := strings.CutSuffix(e.Name(), ProfileEnd); ok {
			names = append(names, other)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: the run has no stacks named %s, but %s; --name chooses", f.path, name, strings.Join(names, " and "))
	}
	return fmt.Errorf("%s: the run has no stacks; plimsoll run --trace light keeps those of the processors, --trace full also what was waited for", f.path)
}
