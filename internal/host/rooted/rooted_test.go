package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes a root directory with links as a container has them.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc/nginx/sites-available", "etc/nginx/sites-enabled", "run/php", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"etc/nginx/sites-available/a", "etc/nginx/sites-available/b", "etc/nginx/.hidden", "run/php/x"} {
		if err := os.WriteFile(filepath.Join(root, f), []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"etc/nginx/sites-enabled/a":    "/etc/nginx/sites-available/a",
		"etc/nginx/sites-enabled/b":    "../sites-available/b",
		"etc/nginx/sites-enabled/gone": "/nowhere",
		"var/run":                      "/run",
		"up":                           "../../../../../etc",
		"loop":                         "loop",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestNamesStayInsideTheRoot(t *testing.T) {
	root := tree(t)
	for name, want := range map[string]string{
		"/etc/nginx/sites-enabled/a":     "/etc/nginx/sites-available/a",
		"/etc/nginx/sites-enabled/b":     "/etc/nginx/sites-available/b",
		"/var/run/php/x":                 "/run/php/x",
		"/up/nginx/sites-enabled/../":    "/etc/nginx",
		"/../../etc//nginx/./.hidden":    "/etc/nginx/.hidden",
		"/":                              "/",
		"/etc/nginx/sites-enabled/a/../": "/etc/nginx/sites-available",
	} {
		f, err := Open(root, name)
		if err != nil {
			// nginx/sites-enabled/a is a file, and nothing is above a file
			if name == "/etc/nginx/sites-enabled/a/../" && errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			t.Errorf("Open(%q): %v", name, err)
			continue
		}
		var st syscall.Stat_t
		if err := syscall.Stat(root+want, &st); err != nil || f.Path != want || f.Stat.Ino != st.Ino {
			t.Errorf("Open(%q) = %q, inode %d, %v; want %q, inode %d", name, f.Path, f.Stat.Ino, err, want, st.Ino)
		}
		f.Close()
	}
	if _, err := Open(root, "/loop/x"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v; want ELOOP", err)
	}
	if _, err := Open(root, "/etc/nginx/sites-enabled/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v; want fs.ErrNotExist", err)
	}
}

// What a walk holds is what it looked at, whatever the names lead to by then.
func TestADirectorySwappedForALinkLeadsNowhereElse(t *testing.T) {
	root, outside := tree(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	const dir = "/etc/nginx/sites-available"
	swap := func(s Step) error {
		if s.Path != dir {
			return nil
		}
		if err := os.Rename(root+dir, root+dir+".old"); err != nil {
			return err
		}
		return os.Symlink(outside, root+dir)
	}
	o, err := OpenTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	f, err := o.Find(dir+"/a", swap)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, _, err := f.Read("a", 100); err != nil || string(b) != "etc/nginx/sites-available/a" {
		t.Errorf("read %q, %v", b, err)
	}
	// And from now on the link leads to what is called so inside, which is nothing.
	if _, err := Open(root, dir+"/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link leads out: %v", err)
	}
}

func TestGlob(t *testing.T) {
	root := tree(t)
	for pattern, want := range map[string][]string{
		"/etc/nginx/sites-available/*": {"/etc/nginx/sites-available/a", "/etc/nginx/sites-available/b"},
		"/etc/*/sites-enabled/[ab]":    {"/etc/nginx/sites-enabled/a", "/etc/nginx/sites-enabled/b"},
		"/var/run/*/x":                 {"/var/run/php/x"},
		"/etc/nginx/*":                 {"/etc/nginx/sites-available", "/etc/nginx/sites-enabled"},
		"/nowhere/*.conf":              nil,
		"/etc/nginx/.hidden":           {"/etc/nginx/.hidden"},
		"/etc/*/sites-enabled/[!b]":    {"/etc/nginx/sites-enabled/a"}, // of a shell
		"/etc/*/sites-enabled/[^b]":    {"/etc/nginx/sites-enabled/a"},
	} {
		got, _, err := Glob(root, pattern)
		if err != nil {
			t.Errorf("Glob(%q): %v", pattern, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Glob(%q) (-want +got):\n%s", pattern, d)
		}
	}
}

func TestAGlobThatIsNotUnderstoodMatchesNothing(t *testing.T) {
	root := tree(t)
	for _, pattern := range []string{"/etc/n[[:alpha:]]inx/*", "/etc/n[[.g.]]inx/*", "/etc/n[[=g=]]inx/*"} {
		if got, _, err := Glob(root, pattern); !errors.Is(err, filepath.ErrBadPattern) {
			t.Errorf("Glob(%q): %v, %v", pattern, got, err)
		}
	}
}

func TestGlobSaysWhereAnotherNameWouldMatter(t *testing.T) {
	root := tree(t)
	for pattern, want := range map[string][]string{
		"/etc/nginx/sites-available/*": {"/etc/nginx/sites-available"},
		"/etc/*/sites-enabled/[ab]":    {"/etc", "/etc/nginx/sites-enabled"},
		"/run/none/*.conf":             {"/run"},
		"/etc/nginx/.hidden":           nil,
	} {
		if _, got, err := Glob(root, pattern); err != nil || !cmp.Equal(want, got) {
			t.Errorf("Glob(%q): %v, %v; want %v", pattern, got, err, want)
		}
	}
}

func TestReadFile(t *testing.T) {
	root := tree(t)
	b, _, err := ReadFile(root, "/etc/nginx/sites-enabled/a", 100)
	if err != nil || string(b) != "etc/nginx/sites-available/a" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, _, err := ReadFile(root, "/etc/nginx/sites-enabled/a", 5); err == nil {
		t.Error("a file above the limit was read")
	}
	if _, _, err := ReadFile(root, "/etc", 5); err == nil {
		t.Error("a directory was read")
	}
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadFile(root, "/fifo", 5); err == nil {
		t.Error("a FIFO was read")
	}
}

func TestTextAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exe")
	for _, at := range []int{0, 10, 256<<10 - 3, 256 << 10, 700_000} {
		b := append(make([]byte, at), "the mark and more"...)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := TextAfter(path, "the mark", 12, 1<<20); err != nil || string(got) != "the mark and" {
			t.Errorf("at %d: %q, %v", at, got, err)
		}
		if got, err := TextAfter(path, "another", 12, 1<<20); err != nil || got != nil {
			t.Errorf("a mark that is not there: %q, %v", got, err)
		}
	}
}
