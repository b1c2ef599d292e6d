package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
)

// A title ("nginx: master process") is only where to look: anybody can give it to
// a process of his. What follows decides whether a process is acted on.

// held is a service whose process was looked at and is held by descriptors: what
// is executed is the very program that was looked at.
type held struct {
	*service
	rights rights
	exe    *os.File
	root   *rooted.Tree
	// contained: it is in a container, see confinement.
	contained bool
}

func (h *held) Close() error { return errors.Join(h.exe.Close(), h.root.Close()) }

// programText stands in the program of a service of a kind.
var programText = map[Kind]string{Nginx: "nginx version: ", PHPFPM: "X-Powered-By: PHP/"}

// maxProgram bounds how much of a program is searched for it.
const maxProgram = 128 << 20

// hold looks at the service's process, whether it is what it says and nobody but
// its user, which has to be ours, and root can have a say in it. The error is
// ErrNotPossible, or fs.ErrPermission where root could.
func (s *service) hold() (*held, error) {
	h := &held{service: s}
	var err error
	if h.exe, err = os.Open(proc(s.PID, "exe")); err != nil {
		return nil, s.refuseUser(fmt.Errorf("look at its program: %w", gone(err)))
	}
	if h.root, err = rooted.OpenTree(proc(s.PID, "root")); err != nil {
		return nil, errors.Join(fmt.Errorf("look at its root directory: %w", gone(err)), h.exe.Close())
	}
	if h.rights, err = rightsOf(s.PID); err == nil {
		err = s.check() // all the above was that process's, and no later one's of its number
	}
	for _, look := range []func() error{h.user, h.program} {
		if err == nil {
			err = look()
		}
	}
	if err == nil {
		h.contained, err = h.confinement(h.rights)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// trust is hold for who only wants to know.
func (s *service) trust() error {
	h, err := s.hold()
	if err != nil {
		return err
	}
	return h.Close()
}

// refuseUser explains an error by whose process it is, if that is another user's.
func (s *service) refuseUser(err error) error {
	if r, e := rightsOf(s.PID); e == nil {
		if e := ourUser(r); e != nil {
			return e
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (that needs root)", err)
	}
	return err
}

// ourUser says why a process is not ours to act for.
func ourUser(r rights) error {
	us := os.Geteuid()
	switch uid := r.UIDs[0]; {
	case !one(r.UIDs) || !one(r.GIDs):
		return fmt.Errorf("it runs with the rights of more than one user (%v) or group (%v), as a program does that somebody else started: %w", r.UIDs, r.GIDs, ErrNotPossible)
	case uid != us && us == 0:
		return fmt.Errorf("it is user %d's, who could have root do anything through it; run plimsoll as that user (sudo -u '#%d' plimsoll tune …): %w", uid, uid, ErrNotPossible)
	case uid != us:
		return fmt.Errorf("it is user %d's, and we are user %d: %w", uid, us, fs.ErrPermission)
	}
	return nil
}

// user looks whose the process is.
func (h *held) user() error {
	if err := ourUser(h.rights); err != nil {
		return err
	}
	ours, err := host.SharesNamespace(h.PID, "user")
	if err != nil {
		return gone(err)
	}
	if !ours {
		return fmt.Errorf("it is in a user namespace of its own, where root is another than ours; run plimsoll in there: %w", ErrNotPossible)
	}
	return nil
}

// program looks at what the process executes.
func (h *held) program() error {
	name, err := os.Readlink(proc(h.PID, "exe"))
	if err != nil {
		return gone(err)
	}
	info, err := h.exe.Stat()
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(h.exe.Fd()), &st); err != nil {
		return err
	}
	if !info.Mode().IsRegular() || st.Nlink == 0 {
		return fmt.Errorf("its program %s was deleted or replaced since it started; restart it: %w", name, ErrNotPossible)
	}
	found, err := h.root.Find(name, exposed)
	if err != nil {
		return fmt.Errorf("its program: %w", notPossible(err))
	}
	defer found.Close()
	if found.Stat.Dev != st.Dev || found.Stat.Ino != st.Ino {
		return fmt.Errorf("its program %s was replaced since it started; restart it: %w", name, ErrNotPossible)
	}
	text, err := rooted.TextAfter(fmt.Sprintf("/proc/self/fd/%d", h.exe.Fd()), programText[h.Kind], 1, maxProgram)
	if err != nil {
		return err
	}
	if text == nil {
		return fmt.Errorf("its program %s is not %s's: %w", name, h.Kind, ErrNotPossible)
	}
	return nil
}

// notPossible makes a file that is not where it should be a reason to leave a
// service alone, and passes other errors on.
func notPossible(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%w: %w", err, ErrNotPossible)
	}
	return err
}

// trustWith is trust, and looks at the configuration as well: who could change it,
// and whether the process listens where it says.
func (s *service) trustWith(c configuration) error {
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer h.Close()
	if c.doubt != nil {
		return fmt.Errorf("its configuration: %w: %w", c.doubt, ErrNotPossible)
	}
	for _, name := range slices.Concat(c.files, c.dirs) {
		f, err := h.root.Find(name, exposed)
		if err != nil {
			return fmt.Errorf("its configuration: %w", notPossible(err))
		}
		f.Close()
	}
	return s.listensAt(c.listens)
}

// listensAt looks whether the process has a listening socket of one of the addresses.
func (s *service) listensAt(addresses []string) error {
	var wanted []string
	for _, a := range addresses {
		inodes, err := listener{s.Net, a}.inodes()
		if err != nil {
			return fmt.Errorf("look where it listens: %w", err)
		}
		wanted = append(wanted, inodes...)
	}
	names, _ := filepath.Glob(proc(s.PID, "fd/*"))
	for _, name := range names {
		link, err := os.Readlink(name)
		ino, ok := strings.CutPrefix(link, "socket:[")
		if err == nil && ok && slices.Contains(wanted, strings.TrimSuffix(ino, "]")) {
			return nil
		}
	}
	return fmt.Errorf("it does not listen at any address that its configuration names (%s): %w", strings.Join(addresses, ", "), ErrNotPossible)
}
