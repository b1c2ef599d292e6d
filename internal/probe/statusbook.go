package probe

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/model"
)

// Blink is for how long a signal may be unreadable, beside the time between
// its reads, and still count as read: a gauge then has its neighbours, and a
// counter loses nothing.
const Blink = 3 * time.Second

// StatusBook is a Recorder for sources that tell of a signal's status again and
// again: it passes on those that changed. The last one is what the run
// is judged by, so it must hold for all of it: what could not be read for longer
// than a few seconds stays failed, though it was read again. It is safe for
// concurrent use.
type StatusBook struct {
	Recorder
	mu    sync.Mutex
	known map[statusKey]*standing
}

// NewStatusBook makes an empty one; rec must be safe for concurrent use.
func NewStatusBook(rec Recorder) *StatusBook {
	return &StatusBook{Recorder: rec, known: map[statusKey]*standing{}}
}

type statusKey struct{ host, signal string }

// standing is how a signal stands on a host.
type standing struct {
	model.Status
	read bool      // it was, once
	dark time.Time // since when it could not be read although it is there; zero while it can
	gap  string    // says when it could not be read for long
}

// Set records st for the signal, read at t, on each host unless it stands
// already. every is the time between its reads.
func (b *StatusBook) Set(hosts []string, s *model.Signal, st model.Status, t time.Time, every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range hosts {
		key := statusKey{h, s.Name}
		is, known := b.known[key]
		if !known {
			is = &standing{}
			b.known[key] = is
		}
		now := is.become(st, t, Blink+every)
		if known && now == is.Status {
			continue
		}
		is.Status = now
		b.Recorder.Status(h, s.Name, now)
	}
}

// Anew begins another time for which statuses are to hold: what could not be read in the one
// before counts no more, once it is read.
func (b *StatusBook) Anew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, is := range b.known {
		is.read = is.State == model.Read || is.gap != "" && is.dark.IsZero()
		is.gap = ""
		if is.read && is.State != model.Read {
			is.Status = model.Status{State: model.Read}
			b.Recorder.Status(key.host, key.signal, is.Status)
		}
	}
}

// become is what st makes of a signal's status. One that was read and then is
// not there any more has failed: absent would say that there never was one. One
// that is read again has failed, too, when it was unreadable for longer than a
// blink: having seen nothing means nothing when nobody looked.
func (is *standing) become(st model.Status, t time.Time, blink time.Duration) model.Status {
	if st.State == model.Read {
		if !is.dark.IsZero() && is.gap == "" && t.Sub(is.dark) > blink {
			is.gap = fmt.Sprintf("it could not be read for %v until %s: %s",
				t.Sub(is.dark).Round(time.Second), t.UTC().Format("15:04:05"), strings.TrimPrefix(is.Why, gone))
		}
		is.read, is.dark = true, time.Time{}
		if is.gap != "" {
			return model.Status{State: model.Failed, Why: is.gap}
		}
		return st
	}
	if is.read {
		st = model.Status{State: model.Failed, Why: gone + st.Why}
	}
	if is.dark.IsZero() && st.State != model.Absent {
		is.dark = t
	}
	return st
}

// gone begins the sentence of a signal that was read before.
const gone = "it was read before, but not to the end: "
