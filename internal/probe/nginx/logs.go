package nginx

import (
	"fmt"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe/logtail"
	"plimsoll/internal/service/nginx"
)

const (
	// roundLimit bounds what is read of one log in one round.
	roundLimit = 16 << 20
	// maxUpstreams bounds the label upstream; more are counted as "other".
	maxUpstreams = 200
	// eventsASecond bounds the events of one kind, eventsInAll those of all kinds.
	eventsASecond, eventsInAll = 2, 20
)

// logKind is what has to be known about a log to read it.
type logKind struct {
	access *nginx.AccessLog // nil for an error log
	level  int              // of an error log
	files  *files           // nil where nginx does not remember what was missing
}

type logFile = logtail.Log[logKind]

// tally is what the logs have said since Open.
type tally struct {
	statuses         [1000]uint64
	requestSum       float64
	requestCount     uint64
	upstreamSum      float64
	upstreamCount    uint64
	upstreams        map[string]bool
	upstreamErrors   map[upstreamError]uint64
	errors           map[string]uint64
	events           []logEvent
	second           int64
	eventsInSecond   map[string]int
	eventsAltogether int
	remembered       *remembered
	limited          limited
}

type upstreamError struct{ upstream, phase, errno string }

type logEvent struct {
	text   string
	labels map[string]string
}

func newTally() *tally {
	return &tally{upstreams: map[string]bool{}, upstreamErrors: map[upstreamError]uint64{}, errors: map[string]uint64{}, eventsInSecond: map[string]int{}, remembered: newRemembered()}
}

// accessLine counts one line of an access log; false when it is not of the format.
func (t *tally) accessLine(k logKind, line []byte) bool {
	a, ok := k.access.Format.Parse(line)
	if !ok {
		return false
	}
	t.statuses[a.Status]++
	if a.Status < 400 && t.limited.clients != nil {
		t.limited.served(k.access.Format.Client(line))
	}
	if a.Status == 404 && k.files != nil && k.files.plain != "" {
		t.remembered.take(k.files, askedFile(k.files.plain, k.access.Format.RequestLine(line)))
	}
	if a.HasRequest {
		t.requestSum += a.Request
		t.requestCount++
	}
	if a.HasUpstream {
		t.upstreamSum += a.Upstream
		t.upstreamCount++
	}
	return true
}

// errorLine counts one line of an error log; false when it is none. Lines that
// belong to a message before them (an application's text may have newlines) are none.
func (t *tally) errorLine(k logKind, line []byte) bool {
	e, ok := parseErrorLine(line)
	if !ok {
		return false
	}
	if e.upstream != "" {
		key := upstreamError{e.upstream, e.phase, e.errno}
		if !t.upstreams[key.upstream] {
			if len(t.upstreams) >= maxUpstreams {
				key.upstream = "other"
			}
			t.upstreams[key.upstream] = true
		}
		t.upstreamErrors[key]++
		t.event(key.phase+" "+key.errno, line, map[string]string{"upstream": key.upstream, "phase": key.phase, "errno": key.errno})
	}
	if k.files != nil && k.files.plain == "" { // else the access log tells, which always has a line
		t.remembered.take(k.files, e.missing)
	}
	if e.limited != "" {
		t.limited.note(e.limited)
	}
	if e.class != "" {
		t.errors[e.class]++
		if e.upstream == "" {
			t.event(e.class, line, map[string]string{"class": e.class})
		}
	}
	return true
}

// event keeps a line for the events, if few of its kind came in this second.
func (t *tally) event(kind string, line []byte, labels map[string]string) {
	if t.eventsInSecond[kind] >= eventsASecond || t.eventsAltogether >= eventsInAll {
		return
	}
	t.eventsInSecond[kind]++
	t.eventsAltogether++
	t.events = append(t.events, logEvent{string(line), labels})
}

// begin starts a round at now.
func (t *tally) begin(now time.Time) {
	if s := now.Unix(); s != t.second {
		t.second, t.eventsAltogether = s, 0
		clear(t.eventsInSecond)
	}
	t.events = t.events[:0]
	t.remembered.begin(now)
}

// take counts one line of a log.
func (t *tally) take(l *logFile, line []byte) {
	if l.About.access == nil {
		t.errorLine(l.About, line)
	} else if !t.accessLine(l.About, line) {
		l.Lost += int64(len(line)) + 1
	}
}

// follow follows what an instance logs to now.
func (r *reader) follow(in *instance, now time.Time) {
	if in.conf == nil {
		r.accessErrs = append(r.accessErrs, in.confErr)
		r.errorErrs = append(r.errorErrs, in.confErr)
		return
	}
	seen := filesOf(in)
	w := logtail.NewWriter("nginx", procPath(in.host, in.master.PID, "."), in.root)
	for i := range in.conf.AccessLogs {
		a := &in.conf.AccessLogs[i]
		err := unreadable(a.Path, a.Unread)
		if err == nil {
			err = r.logs.Follow(w, a.Path, logKind{access: a, files: seen}, now)
		}
		if err != nil && !(a.Implied && len(in.conf.AccessLogs) > 1) {
			r.accessErrs = append(r.accessErrs, err)
		}
	}
	if len(in.conf.AccessLogs) == 0 {
		r.accessErrs = append(r.accessErrs, host.Absent("nginx's access log is off"))
	}
	for _, e := range in.conf.ErrorLogs {
		err := unreadable(e.Path, e.Unread)
		if err == nil {
			err = r.logs.Follow(w, e.Path, logKind{level: e.Level, files: seen}, now)
		}
		if err != nil {
			r.errorErrs = append(r.errorErrs, err)
		}
	}
}

// unreadable is the sentence for a log that is no file.
func unreadable(name, why string) error {
	if why == "" {
		return nil
	}
	return host.Absent(fmt.Sprintf("nginx's log %s %s and cannot be followed; log to a file", name, why))
}
