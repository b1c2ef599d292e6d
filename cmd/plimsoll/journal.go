package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"plimsoll/internal/change"
	"plimsoll/internal/session"
)

func addJournal(fs *pflag.FlagSet, w *world, dir *string) {
	fs.StringVar(dir, "journal", change.DefaultDir(w.env("XDG_STATE_HOME"), w.env("HOME"), os.Geteuid() == 0), "the `DIR` of the journal of changes")
	fs.Lookup("journal").DefValue = ""
}

// takeJournal takes the journal and the machine's lock; see mayChange.
func takeJournal(w *world, dir string) (*change.Journal, error) {
	if dir == "" {
		return nil, errNoJournal
	}
	w.mayChange()
	journal, err := change.Open(dir, w.locks)
	return journal, fail(exitMissing, err)
}

// errNoJournal: a journal in whatever directory we are would not be found again.
var errNoJournal = fail(exitMissing, errors.New("no place for the journal of changes: neither HOME nor XDG_STATE_HOME is set; set one of them, or name a directory with --journal"))

// openJournal is takeJournal, and says what stands in it.
func openJournal(w *world, dir string) (*change.Journal, error) {
	journal, err := takeJournal(w, dir)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, e := range journal.Entries() {
		if e.Open() {
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(w.stderr, "%d changes of an earlier time stand; plimsoll tune --status lists them\n", n)
	}
	for _, err := range journal.Skipped() {
		fmt.Fprintln(w.stderr, "journal:", err)
	}
	return journal, nil
}

// hostNamed finds a host of a run by its name, the one included that is observed
// without being named since the load comes from it. A name that is none is no
// reason to change the machine that we are on.
func hostNamed(name string, hosts []session.HostSpec) (session.HostSpec, error) {
	var names []string
	here := session.HostSpec{Name: session.HereName(hosts), Spec: "local"}
	if here.Name != "" {
		hosts = append(slices.Clone(hosts), here)
	}
	for _, h := range hosts {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	return session.HostSpec{}, fmt.Errorf("no host %q in this run (there are %s), so it is not known where to change it: %w", name, strings.Join(names, ", "), change.ErrNotPossible)
}
