// Package far has changes made by a process on the machine that they are about: Serve is
// that process, whose journal is that machine's own, Journal the other end. They speak
// lines of JSON, a question and its answer in turn.
package far

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"plimsoll/internal/change"
)

// protocol is the version of what both ends say.
const protocol = 1

const (
	// maxLine is the most bytes of a question or an answer.
	maxLine = 1 << 20
	// pingEvery is how often something is said, and silence after how long without a word
	// the other end is gone.
	pingEvery = 5 * time.Second
	silence   = time.Minute
	// patience is how long one change may take: a service's reload, or all that is taken back.
	patience = 5 * time.Minute
)

// patienceFor is how long an answer may take. Nothing is done for a ping; but the other end, which hears nothing
// either where the way is cut, is given the time to say that it ends.
func patienceFor(do string) time.Duration {
	if do == doPing {
		return silence + 3*pingEvery
	}
	return patience
}

// What a question asks for.
const (
	doHello    = "hello"     // the protocol; with Journal, the journal is opened
	doPrepare  = "prepare"   // what a change would be
	doApply    = "apply"     // make it, if it still is what was shown
	doLeaveOut = "leave_out" // take one back, from beneath others
	doUndo     = "undo"      // take these back
	doKeep     = "keep"      // what was made stays when this ends
	doPing     = "ping"
)

type question struct {
	Do       string        `json:"do"`
	Protocol int           `json:"protocol,omitempty"`
	Journal  bool          `json:"journal,omitempty"`
	Host     string        `json:"host,omitempty"`
	Spec     string        `json:"spec,omitempty"`
	Change   change.Change `json:"change,omitzero"`
	Old      string        `json:"old,omitempty"` // apply: as it was shown
	New      string        `json:"new,omitempty"`
	ID       int           `json:"id,omitempty"`
	IDs      []int         `json:"ids,omitempty"`
}

type answer struct {
	Failure  *failure             `json:"failure,omitempty"`
	Protocol int                  `json:"protocol,omitempty"`
	Standing int                  `json:"standing,omitempty"` // hello: changes of an earlier time
	Skipped  []string             `json:"skipped,omitempty"`  // hello: what in the journal is no entry
	Step     *change.Step         `json:"step,omitempty"`
	Entry    *change.Entry        `json:"entry,omitempty"`
	Again    map[int]change.Entry `json:"again,omitempty"`
}

// failure is an error that goes over the wire.
type failure struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"` // a name of kinds
}

// kinds are the errors by which somebody decides.
var kinds = map[string]error{
	"already": change.ErrAlready, "not_possible": change.ErrNotPossible, "changed": change.ErrChanged, "locked": change.ErrLocked,
	"refused": change.ErrRefused, "full": change.ErrFull, "value": change.ErrValue, "no_entry": change.ErrNoEntry, "denied": fs.ErrPermission, "absent": fs.ErrNotExist,
}

// maxText is the most bytes of an error.
const maxText = 4096

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	f.Text = f.Text[:min(len(f.Text), maxText)]
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kind = name
		}
	}
	return f
}

func (f *failure) Error() string { return f.Text }

// Is makes it what it was at the other end.
func (f *failure) Is(target error) bool { return f.Kind != "" && kinds[f.Kind] == target }

func (a answer) err() error {
	if a.Failure == nil {
		return nil
	}
	return a.Failure
}

func errVersion(theirs int) error {
	return fmt.Errorf("one end speaks version %d of the protocol of changes, the other %d; have the same Plimsoll at both ends", protocol, theirs)
}
