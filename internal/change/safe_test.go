package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever their journals are, only one changes the machine.
func TestOnlyOneChangesTheMachine(t *testing.T) {
	run := t.TempDir()
	j, err := Open(run+"/one", run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(run+"/two", run); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d); wait until it has ended", os.Getpid())) {
		t.Errorf("another journal: %v", err)
	}
	if _, err := Open(run+"/one", t.TempDir()); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), run+"/one") {
		t.Errorf("the same journal, seen from another /run: %v", err)
	}
	if !AtWork(run) {
		t.Error("nobody is seen at work")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if AtWork(run) {
		t.Error("somebody is at work still")
	}
	if j, err = Open(run+"/two", run); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if list, skipped, err := ReadEntries(filepath.Join(run, "nosuch")); err != nil || len(list)+len(skipped) > 0 {
		t.Errorf("no journal: %v, %v, %v", list, skipped, err)
	}
}

// byNobody runs a part of the test binary as a user without privileges.
func byNobody(t *testing.T, what string, args ...string) (string, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	exe := "/proc/self/exe"
	copied := filepath.Join(t.TempDir(), "test")
	b, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(copied, b, 0o755)
	}
	for dir := filepath.Dir(copied); err == nil && dir != os.TempDir(); dir = filepath.Dir(dir) {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setpriv", append([]string{"--reuid", "65534", "--regid", "65534", "--clear-groups", copied}, args...)...)
	cmd.Env = append(os.Environ(), child+"="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// openedBy is a directory that a user may look into, and one of the user's own in it.
func openedBy(t *testing.T, uid int) (run, own string) {
	t.Helper()
	run, err := os.MkdirTemp("", "plcg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	own = run + "/own"
	if err := errors.Join(os.Chmod(run, 0o755), os.Mkdir(own, 0o755), os.Chown(own, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return run, own
}

// Root is never kept waiting by another user, who has to wait for root.
func TestUsersWaitForRootAndNotRootForThem(t *testing.T) {
	run, own := openedBy(t, 65534)
	j, err := Open(run+"/roots", run)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := byNobody(t, "take "+own+"/j "+run); err == nil || !strings.Contains(out, "root's, process") {
		t.Errorf("while root is at work: %v, %s", err, out)
	}
	for _, name := range []string{lockName, holderName} {
		if out, err := byNobody(t, "hold "+run+"/"+lockDir+"/"+name+" "+run); (err == nil) != (name == holderName) {
			t.Errorf("a user opens %s: %v, %s", name, err, out)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := byNobody(t, "take "+own+"/j "+run); err != nil {
		t.Errorf("when root is done: %v, %s", err, out)
	}
	// Whatever a user can open there is locked for good.
	for _, name := range []string{"", lockDir, lockDir + "/" + holderName} {
		f, err := os.Open(filepath.Join(run, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	if j, err = Open(run+"/roots", run); err != nil {
		t.Fatalf("root, while a user holds all that it can: %v", err)
	}
	j.Close()
	if out, err := byNobody(t, "take "+own+"/j "+run); err == nil || !strings.Contains(out, "another user's") {
		t.Errorf("a user, while another is at work: %v, %s", err, out)
	}
}

func TestJournalsThatOthersCouldWrite(t *testing.T) {
	run := t.TempDir()
	mk := func(name string, mode os.FileMode, uid int) string {
		t.Helper()
		dir := filepath.Join(run, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode), os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	theirs := mk("theirs", 0o755, 65534)
	open := mk("open", 0o777, 0)
	mk("theirs/ours", 0o700, 0)
	mk("open/ours", 0o700, 0)
	sticky := mk("sticky", 0o777|os.ModeSticky, 0)
	mended := mk("mended", 0o777, 0)
	busy := mk("busy", 0o755, 0)
	if err := errors.Join(os.WriteFile(busy+"/passwd", nil, 0o644), os.Symlink("open", run+"/link"), os.Symlink("mended", run+"/link3"), os.Symlink("theirs", run+"/link2"),
		os.Symlink("loop", run+"/loop"), os.Lchown(run+"/link2", 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		theirs:            "belongs to user 65534",
		theirs + "/ours":  "belongs to user 65534",
		open + "/ours":    "can be written by others",
		open + "/new":     "can be written by others",
		sticky:            "no journal of changes",
		busy:              `"passwd"`,
		run + "/link2/x":  "a link of user 65534's",
		run + "/link/new": "can be written by others",
		run + "/loop":     "too many levels",
		busy + "/passwd":  "not a directory",
	} {
		j, err := Open(dir, run)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
		if err == nil {
			j.Close()
		}
	}
	for _, dir := range []string{sticky + "/new", mended, mk("looked-into", 0o755, 0), run + "/link3", run + "/a/new/one"} {
		j, err := Open(dir, run)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		info, err := os.Stat(dir)
		lock, err2 := os.Stat(dir + "/lock")
		if errors.Join(err, err2) != nil || info.Mode().Perm() != 0o700 || lock.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", dir, info, errors.Join(err, err2))
		}
		j.Close()
	}
	if info, err := os.Stat(sticky); err != nil || info.Mode()&fs.ModeSticky == 0 || info.Mode().Perm() != 0o777 {
		t.Errorf("a directory for all is %v now, %v", info.Mode(), err)
	}
}

// What is no entry of ours is passed over, named, and never touched; its number is
// not given again.
func TestBrokenAndPlantedEntries(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	dir := j.dir.path
	must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	whole := read(t, dir+"/00000001.json")
	target := filepath.Join(t.TempDir(), "target")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("00000002.json", "")
	write("00000003.json", whole[:len(whole)/2])
	write("00000004.json", whole) // of another number
	write("00000005.json", strings.Replace(strings.Replace(whole, `"id": 1`, `"id": 5`, 1), "/proc/sys/net/core/somaxconn", "/etc/shadow", 1))
	write("00000009.json", strings.Replace(whole, `"id": 1`, `"id": 9`, 1))
	write("11.json", whole)
	write("00000012.json", strings.Repeat(" ", maxEntry+1))
	write("00000014.json", strings.Replace(whole, `"id": 1`, `"id": 14`, 1))
	if err := errors.Join(os.WriteFile(target, []byte("secret"), 0o600), os.Symlink(target, dir+"/00000006.json"), unix.Mkfifo(dir+"/00000007.json", 0o600),
		os.Mkdir(dir+"/00000008.json", 0o700), os.Chown(dir+"/00000009.json", 65534, 65534), os.Symlink("/dev/zero", dir+"/00000010.json"),
		unix.Mknod(dir+"/00000013.json", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))), os.Chmod(dir+"/00000014.json", 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir, filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var said []string
	for _, e := range j.Skipped() {
		said = append(said, e.Error())
	}
	text := strings.Join(said, "\n")
	for name, want := range map[string]string{"00000002": "it is empty", "00000003": "want an entry in JSON", "00000004": "it says that it is change 1",
		"00000005": "no change of ours looks like it", "00000006": "symbolic link", "00000007": "no plain file", "00000008": "no plain file",
		"00000009": "belongs to user 65534", "00000010": "symbolic link", "11": "eight digits", "00000012": "longer than", "00000013": "no plain file",
		"00000014": "can be written by others"} {
		if !strings.Contains(text, dir+"/"+name+".json is left out: ") || !strings.Contains(text, want) {
			t.Errorf("%s: want %q in\n%s", name, want, text)
		}
	}
	if len(said) != 13 || len(j.Entries()) != 1 {
		t.Errorf("%d left out, %d entries", len(said), len(j.Entries()))
	}
	if e := must(t, j, s.Host, Change{Kind: Nice, To: "3", PID: s.PID}); e.ID != 15 {
		t.Errorf("the next change has the number %d", e.ID)
	}
	if results := undoAll(t, j); len(results) != 2 {
		t.Errorf("%+v", results)
	}
	if read(t, target) != "secret" || read(t, dir+"/00000003.json") != whole[:len(whole)/2] {
		t.Error("what was left out was touched")
	}
	if _, err := j.Undo(t.Context(), 99, false); !errors.Is(err, ErrNoEntry) || !strings.Contains(err.Error(), "99") || !strings.Contains(err.Error(), dir) {
		t.Errorf("undo of no change: %v", err)
	}
}

func TestTooManyFilesAreNoJournal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	run := t.TempDir()
	dir := run + "/j"
	if err := errors.Join(os.Mkdir(dir, 0o700), unix.Mount("plcg", dir, "tmpfs", 0, "mode=700")); err != nil {
		t.Fatalf("mount a file system in memory: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	for n := range maxNames + 1 {
		if err := unix.Mknod(fmt.Sprintf("%s/%08d.json", dir, n+1), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, run); err == nil || !strings.Contains(err.Error(), "more than 50000 files") {
		t.Errorf("%.200v", err)
	}
	if err := errors.Join(os.Remove(dir+"/00000001.json"), os.Remove(dir+"/lock")); err != nil {
		t.Fatal(err)
	}
	_, skipped, err := ReadEntries(dir)
	if err != nil || len(skipped) != maxSkipped+1 {
		t.Errorf("%d left out, %v", len(skipped), err)
	}
}

func TestDefaultDir(t *testing.T) {
	for want, got := range map[string]string{
		"/var/lib/plimsoll/changes":           DefaultDir("/s", "/h", true),
		"/s/plimsoll/changes":                 DefaultDir("/s", "/h", false),
		"/h/.local/state/plimsoll/changes":    DefaultDir("", "/h", false),
		"/home/.local/state/plimsoll/changes": DefaultDir("relative", "/home", false),
		"":                                    DefaultDir("", "", false),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A file that a journal names is written only if it is the kernel's.
func TestSettingsAreNotWrittenToDisks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.max")
	if err := os.WriteFile(file, []byte("max 100000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := kernelFile{path: file, in: here}
	if err := k.set("1 2"); !errors.Is(err, ErrNotPossible) || !bytes.Equal([]byte("max 100000\n"), []byte(read(t, file))) {
		t.Errorf("%v; %s", err, read(t, file))
	}
}

// masked notes something in a journal under a umask that takes all rights, and reads it again.
func masked(dir, run string) error {
	unix.Umask(0o777)
	j, err := Open(dir, run)
	if err == nil {
		err = errors.Join(j.write(Entry{ID: 1, State: Undone}), j.Close())
	}
	if err != nil {
		return err
	}
	if j, err = Open(dir, run); err != nil {
		return err
	}
	defer j.Close()
	if len(j.Entries()) != 1 {
		err = fmt.Errorf("%d entries: %w", len(j.Entries()), errors.Join(j.Skipped()...))
	}
	return err
}

// A user's umask may take rights from the user: what is made for a journal is the user's own all the same.
func TestAUmaskTakesNoJournalFromItsUser(t *testing.T) {
	run, own := openedBy(t, nobody)
	dir := own + "/state/changes"
	if out, err := byNobody(t, "masked "+dir+" "+run); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(dir): 0o700, dir: 0o700, dir + "/" + lockName: 0o600, dir + "/00000001.json": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", name, info, err, want)
		}
	}
}
