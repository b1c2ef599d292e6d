package nginx

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/service/nginx"
)

// A line counts where the file it calls missing is there and was before we began to look.
func TestMissingButThere(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "www/folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "www/a b.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	access := logKind{access: &nginx.AccessLog{Format: nginx.CombinedFormat()}, files: &files{root, "/www"}}
	rest := `" 404 1 "-" "-"`
	for _, c := range []struct {
		kind logKind
		line string
		want uint64
	}{
		{access, `c - - [t] "GET /a%20b.txt?x HTTP/1.1` + rest, 1},
		{access, `c - - [t] "GET /folder/../a%20b.txt HTTP/1.1` + rest, 1},
		{access, `c - - [t] "GET /a%20b.txt HTTP/1.1" 200 1 "-" "-"`, 0},
		{access, `c - - [t] "POST /a%20b.txt HTTP/1.1` + rest, 0},
		{access, `c - - [t] "GET /none HTTP/1.1` + rest, 0},
		{access, `c - - [t] "GET /folder HTTP/1.1` + rest, 0},
		{access, `c - - [t] "GET /a%zz HTTP/1.1` + rest, 0},
		{access, `c - - [t] "GET http://h/a%20b.txt HTTP/1.1` + rest, 0},
		{access, `c - - [t] "` + rest, 0},
		{logKind{access: access.access}, `c - - [t] "GET /a%20b.txt HTTP/1.1` + rest, 0},
		{logKind{access: access.access, files: &files{root, ""}}, `c - - [t] "GET /a%20b.txt HTTP/1.1` + rest, 0},
		{logKind{files: &files{root, ""}}, `2024/01/31 12:00:00 [error] 1#1: *7 open() "/www/a b.txt" failed (2: No such file or directory), client: c`, 1},
		{logKind{files: &files{root, "/www"}}, `2024/01/31 12:00:00 [error] 1#1: *7 open() "/www/a b.txt" failed (2: No such file or directory), client: c`, 0},
		{logKind{files: &files{root, ""}}, `2024/01/31 12:00:00 [error] 1#1: *7 open() "/www/none" failed (2: No such file or directory), client: c`, 0},
		{logKind{}, `2024/01/31 12:00:00 [error] 1#1: *7 open() "/www/a b.txt" failed (2: No such file or directory), client: c`, 0},
	} {
		tally := newTally()
		tally.remembered.opened = time.Now().Add(2 * time.Second)
		tally.begin(time.Now())
		tally.take(&logFile{About: c.kind}, []byte(c.line))
		if got := tally.remembered.lines; got != c.want {
			t.Errorf("%s: %d lines, want %d", c.line, got, c.want)
		}
	}
}

// What came after we began to look was missing, until it has been there for a while.
func TestMissingUntilNow(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRemembered()
	r.opened = time.Now().Add(-time.Hour)
	r.begin(time.Now())
	r.take(&files{root: root}, "/a")
	if r.lines != 0 {
		t.Errorf("a file that has just come: %d lines, want none", r.lines)
	}
	r.begin(time.Now().Add(settled + time.Second))
	r.take(&files{root: root}, "/a")
	if r.lines != 1 {
		t.Errorf("a file that has been there for a minute: %d lines, want 1", r.lines)
	}
}
