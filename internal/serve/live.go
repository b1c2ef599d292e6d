package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Part is a piece of a page that changes. Whoever makes it has escaped all that is from outside.
type Part struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

// Safe is the part's HTML for a template.
func (p Part) Safe() template.HTML { return template.HTML(p.HTML) }

const (
	// viewerPatience is how long a viewer may take for what is sent at once.
	viewerPatience = 10 * time.Second
	// sign is how often something is sent to a viewer, if there is nothing to say.
	sign = 15 * time.Second
	// glance is for how long somebody is taken to look at a page who asked for it: where
	// there are no scripts it is asked for every other second.
	glance = 10 * time.Second
)

// Live is a page that changes while people look on. Who is slow misses what was in
// between, and sees what is; nobody who changes it waits for a viewer. Its methods may
// be called by several goroutines.
type Live struct {
	mu      sync.Mutex
	parts   []shownPart
	version int
	news    map[int]*news // what who has seen a version is sent, of the present one
	changed chan struct{} // closed at the next change
	over    bool
	viewers int
	asked   time.Time     // when the page itself was last asked for
	gone    chan struct{} // closed when it is over and nobody looks on
	empty   sync.Once     // closes gone
}

// news are parts, encoded once for all who look on.
type news struct {
	parts  []Part
	encode sync.Once
	text   []byte
	err    error
}

type shownPart struct {
	Part
	version int // in which it became what it is
}

// NewLive is a page with parts of these IDs, which are empty.
func NewLive(ids ...string) *Live {
	l := &Live{news: map[int]*news{}, changed: make(chan struct{}), gone: make(chan struct{})}
	for _, id := range ids {
		l.parts = append(l.parts, shownPart{Part: Part{ID: id}})
	}
	return l
}

// Show replaces parts; those that are as before are not sent again.
func (l *Live) Show(parts ...Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for _, p := range parts {
		i := slices.IndexFunc(l.parts, func(s shownPart) bool { return s.ID == p.ID })
		if i >= 0 && l.parts[i].HTML != p.HTML {
			l.parts[i] = shownPart{p, l.version + 1}
			changed = true
		}
	}
	if changed {
		l.version++
		l.tell()
	}
}

// End says that nothing changes any more. The channel is closed when all who
// looked on have been sent the last state, or were dropped.
func (l *Live) End() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		l.tell()
		if l.viewers == 0 {
			l.empty.Do(func() { close(l.gone) })
		}
	}
	return l.gone
}

func (l *Live) tell() {
	l.news = map[int]*news{}
	close(l.changed)
	l.changed = make(chan struct{})
}

// all are the parts as they are.
func (l *Live) all() (list []Part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parts {
		list = append(list, p.Part)
	}
	return list
}

// since returns what is to be sent to who has seen a version, nil for nothing, and what to wait for next.
func (l *Live) since(version int) (text []byte, now int, changed <-chan struct{}, over bool, err error) {
	n, now, changed, over := l.newsSince(version)
	n.encode.Do(func() { n.text, n.err = event(n.parts) }) // nobody who shows anything waits for that
	return n.text, now, changed, over, n.err
}

func (l *Live) newsSince(version int) (n *news, now int, changed <-chan struct{}, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = l.news[version]
	if n == nil {
		n = &news{}
		for _, p := range l.parts {
			if p.version > version {
				n.parts = append(n.parts, p.Part)
			}
		}
		l.news[version] = n
	}
	return n, l.version, l.changed, l.over
}

// event is parts as they are sent, nil for none.
func event(parts []Part) ([]byte, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var doc bytes.Buffer
	encode := json.NewEncoder(&doc)
	encode.SetEscapeHTML(false) // it is no part of a page before it is read
	err := encode.Encode(parts)
	return fmt.Appendf(nil, "event: parts\ndata: %s\n", doc.Bytes()), err // Encode ends its line
}

// enter counts a viewer in, unless there are too many.
func (l *Live) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.viewers == maxViewers {
		return false
	}
	l.viewers++
	return true
}

func (l *Live) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.viewers--
	if l.over && l.viewers == 0 {
		l.empty.Do(func() { close(l.gone) })
	}
}

// Watched says whether anybody looks on: for nobody nothing needs to be drawn.
func (l *Live) Watched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.viewers > 0 || time.Since(l.asked) < glance
}

func (l *Live) glanced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = time.Now()
}

//go:embed live.js
var liveJS []byte

// Handler shows the page.
func (l *Live) Handler() http.Handler {
	mux := http.NewServeMux()
	assets(mux)
	mux.HandleFunc("GET /live.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(liveJS)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		l.glanced()
		page(w, http.StatusOK, "live", l.all())
	})
	mux.HandleFunc("GET /events", l.events)
	mux.HandleFunc("/", nothingHere)
	return mux
}

// events sends the parts as they change, until the run is over (server-sent events).
func (l *Live) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		return
	}
	if !l.enter() {
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d look on already, which is as many as may.", maxViewers))
		return
	}
	defer l.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for version := -1; ; {
		news, now, changed, over, err := l.since(version)
		if err != nil {
			return
		}
		version = now
		if err := send(w, out, news, over); err != nil || over {
			return
		}
		select {
		case <-changed:
		case <-time.After(sign):
		case <-r.Context().Done():
			return
		}
	}
}

// send sends news, a sign of life where there are none, and the end.
func send(w http.ResponseWriter, out *http.ResponseController, news []byte, over bool) error {
	if err := out.SetWriteDeadline(time.Now().Add(viewerPatience)); err != nil {
		return err
	}
	if news == nil {
		news = []byte(":\n\n")
	}
	if over {
		news = append(slices.Clip(news), "event: over\ndata: {}\n\n"...) // others are sent the same
	}
	if _, err := w.Write(news); err != nil {
		return err
	}
	return out.Flush()
}
