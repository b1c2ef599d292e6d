package change

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// Step is a change that could be made now: it was looked at, and nothing done.
type Step struct {
	Change Change
	// Host is the name and Spec what host.Open was given.
	Host, Spec string
	// Old and New are the values, for people; Old is "" where the setting is
	// not written anywhere (a default is in effect).
	Old, New string
	Scope    Scope
	Restart  Restart
	// Files are the files that will be edited.
	Files []string
	// Undo says in a sentence how it is taken back.
	Undo string
	// Notes are sentences that a person should read before: a cap, a cost.
	Notes []string

	parts   []part
	service *service
	masters []service
	netns   netns
}

// add notes a value that is to be set, unless it is so.
func (s *Step) add(at target, to string) error {
	old, err := at.get()
	if err != nil {
		return err
	}
	if old != to {
		s.parts = append(s.parts, part{Target: at, Old: []byte(old), New: []byte(to)})
	}
	if s.Old == "" {
		s.Old = old
	}
	return nil
}

// addFiles notes the files that are to be edited.
func (s *Step) addFiles(edits map[string][]edit, at target) error {
	var real []string
	for _, file := range slices.Sorted(maps.Keys(edits)) {
		at := at
		at.Path = file
		if at.file().seenByUs() {
			at.Process = nil
		}
		path, err := at.file().real()
		if err != nil {
			return err
		}
		if slices.Contains(real, path) {
			return fmt.Errorf("%s is included under two names: %w", path, ErrNotPossible)
		}
		p, err := filePart(at, edits[file])
		if err != nil {
			return err
		}
		real = append(real, path)
		s.parts, s.Files = append(s.parts, p), append(s.Files, file)
		if !s.service.NoReload {
			s.Restart = Reload
		}
	}
	return nil
}

// filePart makes the part of a change that edits a file: it must be one that
// can be replaced.
func filePart(p target, edits []edit) (part, error) {
	at, err := p.file().find()
	if err != nil {
		return part{}, err
	}
	defer at.Close()
	old, info, err := at.Read(p.Path, maxFile)
	if err != nil {
		return part{}, err
	}
	if at.Stat.Nlink > 1 {
		return part{}, fmt.Errorf("%s has another name beside this one (a hard link), which replacing it would cut: %w", p.Path, ErrNotPossible)
	}
	if err := unix.Faccessat(int(at.Dir.Fd()), ".", unix.W_OK, 0); err != nil {
		return part{}, &fs.PathError{Op: "write into", Path: filepath.Dir(at.Path), Err: err}
	}
	edited, err := apply(old, edits)
	if err != nil {
		return part{}, fmt.Errorf("edit %s: %w", p.Path, err)
	}
	return part{Target: p, Old: old, New: edited, File: &meta{info.ModTime()}}, nil
}

// addBacklog notes an open listener's backlog.
func (s *Step) addBacklog(h *host.Host, addr string, backlog int) error {
	p, note, differs, err := socketPart(h, addr, backlog, s.netns)
	if err != nil {
		return err
	}
	if note != "" {
		s.Notes = append(s.Notes, note)
	}
	if s.Change.Kind != Nginx && strings.HasPrefix(addr, "unix:") { // nginx listens anew itself
		s.Notes = append(s.Notes, "clients that ask the kernel who listens there (SO_PEERCRED) are told the number of a plimsoll, until the service starts again")
	}
	if s.Change.Kind == Nginx {
		const nginxDefault = 511
		before := nginxDefault
		if s.Old != "" {
			before = atoi(s.Old)
		}
		asked := before
		before, _ = backlogIn(h, before)
		p.Between = []string{fmt.Sprint(asked), fmt.Sprint(before)} // what a reload asks for, and gets
	}
	if differs {
		s.parts = append(s.parts, p)
		if len(s.Files) == 0 {
			s.Old = string(p.Old)
		}
	}
	return nil
}

// socketPart makes the part of a change that sets an open listener's backlog;
// ok is false when the listener has it already.
func socketPart(h *host.Host, addr string, backlog int, net netns) (p part, note string, ok bool, err error) {
	effective, note := backlogIn(h, backlog)
	at := net
	p.Target = target{Kind: inSocket, Listen: addr, Net: &at}
	old, err := p.Target.get()
	if err == nil && !whole().MatchString(old) {
		err = fmt.Errorf("the sockets that listen at %s have backlogs of %s, which one value would not take back: %w", addr, old, ErrNotPossible)
	}
	if err == nil {
		err = listener{at, addr}.ownable()
	}
	if err != nil {
		return p, note, false, err
	}
	p.Old, p.New = []byte(old), []byte(strconv.Itoa(effective))
	return p, note, old != string(p.New), nil
}

func prepareBacklog(h *host.Host, c Change, s *Step) error {
	if !whole().MatchString(c.To) || c.Listen == "" {
		return fmt.Errorf("want a listener and a whole number, got %q and %q", c.Listen, c.To)
	}
	s.Scope = Service
	err := s.addBacklog(h, c.Listen, atoi(c.To))
	if errors.Is(err, errGone) {
		return fmt.Errorf("nobody listens at %s; ss -ltn (ss -lx) shows where somebody does, as ADDRESS:PORT: %w", c.Listen, err)
	}
	return err
}

// reach says how the files of a service are reached: the target that stands for
// them all, and the root directory before their names.
func reach(master host.Proc) (target, string, error) {
	p := process{master.PID, master.Start}
	link, err := os.Readlink(proc(p.PID, "root"))
	if err != nil {
		return target{}, "", fmt.Errorf("look at the root directory of process %d; that needs root: %w", p.PID, err)
	}
	if link != "/" {
		return target{}, "", fmt.Errorf("process %d runs in a chroot (%s): %w", p.PID, link, ErrNotPossible)
	}
	ours, err := host.SharesNamespace(p.PID, "mnt")
	if err != nil {
		return target{}, "", err
	}
	at := target{Kind: inFile}
	if ours {
		return at, "", nil
	}
	at.Process = &p
	return at, filepath.Clean(proc(p.PID, "root")), nil
}
