package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
)

// Up brings a case up and leaves it standing after the program ends, until
// Down. What an earlier lab left behind is taken down first. When it fails,
// nothing stays.
func (l *Lab) Up(ctx context.Context, id string, mends ...string) (err error) {
	c, err := l.Case(id)
	if err != nil {
		return err
	}
	unlock, err := l.begin()
	if err != nil {
		return err
	}
	defer unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, l.undo())
		}
	}()
	v, err := l.up(ctx, c, mends)
	if err != nil {
		return err
	}
	return l.arm(ctx, c, v)
}

// Down takes the case down, and whatever else an earlier lab left behind. It
// returns the id of the case that was up, "" when none was. With an id it
// refuses when another case is up.
func (l *Lab) Down(id string) (string, error) {
	unlock, err := l.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	standing, err := l.Standing()
	if err != nil {
		return "", err
	}
	if id != "" && standing != "" && standing != id {
		return standing, fmt.Errorf("case %s is up, not %s; take it down with `plimsoll lab down %s`", standing, id, standing)
	}
	return standing, l.undo()
}

// Standing returns the id of the case that is up, "" when none is.
func (l *Lab) Standing() (string, error) {
	entries, err := l.readJournal()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.Do == "case" })
	if i < 0 {
		return "", nil
	}
	return entries[i].Name, nil
}

// Command is the load tool of a case that is up with these mends; none where
// Plimsoll itself drives the load.
func (l *Lab) Command(c *Case, mends []string) ([]string, error) {
	v, err := c.values(filepath.Join(l.stateDir(), workName), mends)
	if err != nil {
		return nil, err
	}
	return v.renderAll("load", c.Load.Command)
}

// begin takes the lock, checks what the lab needs and clears what an earlier one left.
func (l *Lab) begin() (unlock func(), err error) {
	unlock, err = l.lock()
	if err != nil {
		return nil, err
	}
	if why := lacks(always); why != "" {
		err = errors.New("the lab: " + why)
	} else {
		err = l.undo()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// lock makes this the only lab with its prefix. The state directory itself is
// what is locked, and it goes away with the lock when it is empty.
func (l *Lab) lock() (unlock func(), err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("the lab makes network namespaces and needs root; try sudo: %w", fs.ErrPermission)
	}
	for range 10 {
		if err := os.MkdirAll(l.stateDir(), 0o755); err != nil {
			return nil, fmt.Errorf("lab state: %w", err)
		}
		dir, err := os.Open(l.stateDir())
		if err != nil {
			continue // another lab removed it just now
		}
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			dir.Close()
			return nil, fmt.Errorf("another lab command is at work (it holds %s); wait for it or interrupt it: %w", l.stateDir(), err)
		}
		held, err1 := dir.Stat()
		now, err2 := os.Stat(l.stateDir())
		if err1 == nil && err2 == nil && os.SameFile(held, now) {
			return func() {
				_ = os.Remove(l.stateDir()) // stays while a case is up
				dir.Close()
			}, nil
		}
		dir.Close()
	}
	return nil, fmt.Errorf("lab state: %s does not stay; is something else removing it?", l.stateDir())
}

// List returns all cases, by id.
func (l *Lab) List() ([]*Case, error) {
	dirs, err := fs.ReadDir(l.Cases, ".")
	if err != nil {
		return nil, fmt.Errorf("list cases: %w", err)
	}
	var cases []*Case
	for _, d := range dirs {
		if _, err := fs.Stat(l.Cases, d.Name()+"/case.yaml"); err != nil {
			continue // a folder of templates
		}
		c, err := l.Case(d.Name())
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// ids are the names of all cases, none where they cannot be listed.
func (l *Lab) ids() []string {
	list, err := fs.Glob(l.Cases, "*/case.yaml")
	if err != nil {
		return nil
	}
	for i, path := range list {
		list[i], _, _ = strings.Cut(path, "/")
	}
	return list
}

// Case reads one case. An unknown id is an error that lists the known ones.
func (l *Lab) Case(id string) (*Case, error) {
	if !plainName(id) {
		return nil, fmt.Errorf("no case %q; `plimsoll lab list` shows them", id)
	}
	data, err := fs.ReadFile(l.Cases, id+"/case.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no case %q%s; `plimsoll lab list` shows them: %w", id, layout.Maybe(id, l.ids()), err)
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	c, err := parseCase(data, l.Cases)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	if c.ID != id {
		return nil, fmt.Errorf("case %s: its id is %q; expected the folder's name", id, c.ID)
	}
	return c, nil
}
