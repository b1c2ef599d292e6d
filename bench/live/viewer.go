package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// stopAfter is how long a viewer looks that takes nothing more then.
const stopAfter = 2 * time.Second

// viewer looks at a run as a browser does, as fast as its line lets it.
type viewer struct {
	kbit    float64         // 0 for as fast as it comes
	stops   <-chan struct{} // until it is closed nothing is taken, after a while; nil for who takes all
	toldEnd bool            // it was sent the end
	client  *http.Client    // that entered
	events  string          // where news are sent from

	mu    sync.Mutex
	bytes int
	seen  map[string]time.Time // figures, and when they came
}

// watch passes the address of the page to look, and returns when what is printed ends.
func watch(r io.Reader, look func(url string)) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if at, ok := strings.CutPrefix(lines.Text(), "plimsoll: live: "); ok {
				look(at)
			}
		}
	}()
	return ended
}

var value = regexp.MustCompile(`<b>([^<]*)</b>`)

// look takes all that is sent until the run is over.
func (v *viewer) look(ctx context.Context, at string) {
	if v.enter(ctx, at) == nil {
		v.follow(ctx)
	}
}

// enter asks for the page as who opens its address does.
func (v *viewer) enter(ctx context.Context, at string) error {
	jar, _ := cookiejar.New(nil) // it fails for no options
	v.client = &http.Client{Jar: jar}
	first, err := v.get(ctx, at)
	if err != nil {
		return err
	}
	if err := first.Body.Close(); err != nil {
		return err
	}
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	u.RawQuery = ""
	v.events = u.JoinPath("events").String()
	return nil
}

func (v *viewer) get(ctx context.Context, at string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	return v.client.Do(r)
}

// follow takes all that is sent until the run is over, or ctx is.
func (v *viewer) follow(ctx context.Context) {
	events, err := v.get(ctx, v.events)
	if err != nil {
		return
	}
	defer events.Body.Close()
	lines := bufio.NewScanner(&slowly{events.Body, v.kbit})
	lines.Buffer(nil, 4<<20)
	for begun := time.Now(); lines.Scan(); {
		if v.stops != nil && time.Since(begun) > stopAfter {
			<-v.stops
		}
		v.toldEnd = v.toldEnd || lines.Text() == "event: over"
		v.count(len(lines.Bytes()))
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			v.take(data)
		}
	}
}

func (v *viewer) count(bytes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bytes += bytes
}

func (v *viewer) take(data string) {
	var parts []struct{ ID, HTML string }
	if json.Unmarshal([]byte(data), &parts) != nil {
		return // the end has none
	}
	for _, p := range parts {
		if p.ID != "figures" {
			continue
		}
		var words []string
		for _, m := range value.FindAllStringSubmatch(p.HTML, -1) {
			words = append(words, m[1])
		}
		v.mu.Lock()
		if text := strings.Join(words, " "); text != "" && v.seen[text].IsZero() {
			v.seen[text] = time.Now()
		}
		v.mu.Unlock()
	}
}

// took is how many bytes it was sent.
func (v *viewer) took() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bytes
}

// taken are the figures that it saw.
func (v *viewer) taken() map[string]time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.seen)
}

// behind is by how much it saw later what another saw, at most.
func (v *viewer) behind(other *viewer) (most time.Duration) {
	theirs := other.taken()
	for text, at := range v.taken() {
		if before, ok := theirs[text]; ok {
			most = max(most, at.Sub(before))
		}
	}
	return most
}

// slowly reads no more than so many kbit/s.
type slowly struct {
	io.Reader
	kbit float64
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.kbit == 0 {
		return s.Reader.Read(p)
	}
	n, err := s.Reader.Read(p[:min(len(p), 1<<10)])
	time.Sleep(time.Duration(float64(n) * 8 / s.kbit * float64(time.Millisecond)))
	return n, err
}
