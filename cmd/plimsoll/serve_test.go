package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// aRunOf makes a run of a host in a directory.
func aRunOf(t *testing.T, dir, host string) {
	t.Helper()
	const start = 1_700_000_000_000
	run := model.Run{Started: start, Plan: model.Plan{Interval: 1000, Mode: "watch"}, Hosts: []model.Host{{Name: host}},
		Windows: []model.Window{{Name: model.Hold, Start: start, End: start + 5000}}}
	w, err := writer.Create(dir, run)
	ok(t, err)
	for at := int64(start); at <= start+5000; at += 1000 {
		w.Sample(host, at, &model.Signal{Name: "g"}, 1)
		ok(t, w.Commit())
	}
	ok(t, w.Close())
}

// Between the list and a page, who owns a folder of runs can put anything in the place of anything in it, and of the folder.
func TestWhatIsServedIsInTheFolder(t *testing.T) {
	for why, swap := range map[string]func(shelf string) (what, to string){
		"a run":                  func(shelf string) (string, string) { return filepath.Join(shelf, "x"), "secret/x" },
		"a folder of runs in it": func(shelf string) (string, string) { return filepath.Join(shelf, "of"), "secret/of" },
		"the folder itself":      func(shelf string) (string, string) { return shelf, "secret" },
	} {
		t.Run(why, func(t *testing.T) {
			top := t.TempDir()
			shelf := filepath.Join(top, "shelf")
			for _, id := range []string{"x", "of/1"} {
				aRunOf(t, filepath.Join(shelf, id), "served")
				aRunOf(t, filepath.Join(top, "secret", id), "treasure")
			}
			s := newRunShelf(shelf, &siteFlags{})
			defer s.close()
			_, err := s.list()
			ok(t, err)
			what, to := swap(shelf)
			ok(t, os.Rename(what, what+".away"))
			ok(t, os.Symlink(filepath.Join(top, to), what))
			for _, id := range []string{"x", "of/1"} {
				var page bytes.Buffer
				if err := s.report(&page, id); strings.Contains(page.String(), "treasure") {
					t.Errorf("the page of %s is that of a run elsewhere (%v)", id, err)
				}
				gone := what == filepath.Join(shelf, id) || what == filepath.Dir(filepath.Join(shelf, id)) && what != shelf
				if err := s.compare(&page, id, id); err == nil || gone != strings.Contains(err.Error(), "no link is followed") {
					t.Errorf("%s compared with itself, a link in its place %v: %v", id, gone, err)
				}
			}
			list, err := s.list()
			ok(t, err)
			for _, e := range list {
				var page bytes.Buffer
				if err := s.report(&page, e.ID); err != nil || strings.Contains(page.String(), "treasure") {
					t.Errorf("listed again, the page of %s: %v", e.ID, err)
				}
			}
		})
	}
}

// The folder of runs may come to be after the server; a folder that is itself a run is one.
func TestAFolderOfRunsMayComeLater(t *testing.T) {
	shelf := filepath.Join(t.TempDir(), "shelf")
	s := newRunShelf(shelf, &siteFlags{})
	defer s.close()
	if list, err := s.list(); err != nil || len(list) > 0 {
		t.Errorf("%v, %v of a folder that is not there", list, err)
	}
	aRunOf(t, filepath.Join(shelf, "x"), "served")
	if list, err := s.list(); err != nil || len(list) != 1 || list[0].ID != "x" {
		t.Errorf("%v, %v, want the run", list, err)
	}
	one := newRunShelf(filepath.Join(shelf, "x"), &siteFlags{})
	defer one.close()
	list, err := one.list()
	ok(t, err)
	if len(list) != 1 || list[0].ID != "x" {
		t.Fatalf("%v, want the run by its folder's name", list)
	}
	run, err := one.open("x")
	ok(t, err)
	ok(t, run.Close())
}

// A run that was exchanged for another since it was listed is not shown as the one that was listed.
func TestAnotherRunThanWasListed(t *testing.T) {
	shelf := t.TempDir()
	aRunOf(t, filepath.Join(shelf, "x"), "served")
	s := newRunShelf(shelf, &siteFlags{})
	defer s.close()
	_, err := s.list()
	ok(t, err)
	ok(t, os.RemoveAll(filepath.Join(shelf, "x")))
	w, err := writer.Create(filepath.Join(shelf, "x"), model.Run{Started: 1, Hosts: []model.Host{{Name: "other"}}})
	ok(t, err)
	ok(t, w.Close())
	if _, err := s.open("x"); err == nil || !strings.Contains(err.Error(), "another run lies there") {
		t.Errorf("%v, want that it is another", err)
	}
}

// served is a server of a folder of runs, as a process.
type served struct {
	cmd *exec.Cmd
	url string
}

func serves(t *testing.T, dir, listen string) *served {
	t.Helper()
	s := &served{cmd: exec.CommandContext(t.Context(), "plimsoll", "serve", dir, "--listen", listen)}
	out, err := s.cmd.StdoutPipe()
	ok(t, err)
	ok(t, s.cmd.Start())
	s.url, err = bufio.NewReader(out).ReadString('\n')
	ok(t, err)
	s.url = strings.TrimSpace(s.url)
	return s
}

// list is the page of the runs, for who comes by this address.
func (s *served) list(t *testing.T, by string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	ok(t, err)
	client := http.Client{Jar: jar}
	at, _, _ := strings.Cut(s.url, "?")
	var page []byte
	for _, url := range []string{by, at} {
		got, err := client.Get(url)
		ok(t, err)
		page, err = io.ReadAll(got.Body)
		ok(t, errors.Join(err, got.Body.Close()))
	}
	return string(page)
}

// A server that was killed leaves nothing behind that its next start would have to know: that one finds the runs that are
// there, also one of which the recording was cut off meanwhile, and knows no token of the other's.
func TestAServerThatWasKilledIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	aRunOf(t, filepath.Join(dir, "first"), "a")
	before := serves(t, dir, "127.0.0.1:0")
	if page := before.list(t, before.url); !strings.Contains(page, "first") {
		t.Fatalf("the first server lists\n%s", page)
	}
	ok(t, before.cmd.Process.Kill())
	_ = before.cmd.Wait() // it was killed
	w, err := writer.Create(filepath.Join(dir, "second"), model.Run{Started: 1_700_000_100_000, Plan: model.Plan{Interval: 1000, Mode: "watch"}, Hosts: []model.Host{{Name: "b"}}})
	ok(t, err)
	w.Sample("b", 1_700_000_100_000, &model.Signal{Name: "g"}, 1)
	ok(t, w.Commit()) // and there it ended
	address, err := url.Parse(before.url)
	ok(t, err)
	after := serves(t, dir, address.Host)
	page := after.list(t, after.url)
	if !strings.Contains(page, "first") || !strings.Contains(page, "second") || !strings.Contains(page, "cut off") {
		t.Errorf("the second server lists\n%s", page)
	}
	if page := after.list(t, before.url); strings.Contains(page, "first") {
		t.Errorf("the token of the first start is good for the second\n%s", page)
	}
	ok(t, after.cmd.Process.Signal(syscall.SIGINT))
	ok(t, after.cmd.Wait())
	ok(t, w.Close())
}
