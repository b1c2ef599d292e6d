package change

import (
	"os"
	"strings"
	"time"
)

// State is how far a change has come.
type State string

// The states. Of a pending one nobody knows whether it was made: plimsoll ended
// while it made it, or could not take it back.
const (
	Pending State = "pending"
	Done    State = "done"
	Undone  State = "undone"
	Failed  State = "failed" // it did not work out and was taken back at once
)

// Entry is a change in the journal.
type Entry struct {
	ID     int    `json:"id"` // 1, 2, … in the order in which they were made
	State  State  `json:"state"`
	Change Change `json:"change"`
	// Host is the host's name and Spec what host.Open was given.
	Host string `json:"host"`
	Spec string `json:"spec"`
	// Old and New are the values, for people.
	Old     string    `json:"old"`
	New     string    `json:"new"`
	Scope   Scope     `json:"scope"`
	Restart Restart   `json:"restart"`
	Time    time.Time `json:"time"`
	// Why is a sentence on why it failed, or what was found when it was taken back.
	Why string `json:"why,omitempty"`

	// What follows is what Undo needs; of an entry that is not Open it is gone.

	Boot string `json:"boot"` // the kernel's boot id
	// Since is when it began to be made, in clock ticks after boot: what processes
	// that started later have of it they were born with.
	Since   uint64   `json:"since,omitempty"`
	Parts   []part   `json:"parts,omitempty"`
	Service *service `json:"service,omitempty"`
	// Masters are those among the processes that may go on as another process.
	Masters []service `json:"masters,omitempty"`
}

// Open says whether there is something to take back.
func (e Entry) Open() bool { return e.State == Pending || e.State == Done }

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// close ends an entry. What was needed to take it back goes: configuration files
// may hold secrets.
func (e *Entry) close(state State, why string) {
	e.State, e.Why, e.Parts, e.Service, e.Masters = state, why, nil, nil, nil
}

// files are the parts that are files; others are the rest.
func (e Entry) files() (list []*part) {
	for i := range e.Parts {
		if e.Parts[i].Target.Kind == inFile {
			list = append(list, &e.Parts[i])
		}
	}
	return list
}

func (e Entry) others() (list []*part) {
	for i := range e.Parts {
		if e.Parts[i].Target.Kind != inFile {
			list = append(list, &e.Parts[i])
		}
	}
	return list
}
