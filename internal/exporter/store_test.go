package exporter

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

var (
	gauge = &model.Signal{Name: "test_queue", Kind: model.Gauge, Unit: "connections", Help: "A line.", Labels: []string{"to"}}
	ours  = &model.Signal{Name: "test_seen_total", Kind: model.Counter, Unit: "lines", Help: "Lines.", Labels: []string{"to"}, StartsAtZero: true}
	began = time.UnixMilli(1_800_000_000_000)
)

// rounds is a store and what it is told of.
type rounds struct {
	*store
	n int
}

func newRounds() *rounds {
	return &rounds{store: newStore(time.Second, []collect.Host{{Host: model.Host{Name: "web"}}}, func(string) {})}
}

func (r *rounds) at() int64 { return began.Add(time.Duration(r.n) * time.Second).UnixMilli() }

func (r *rounds) put(s *model.Signal, v float64, to string) { r.Sample("web", r.at(), s, v, to) }

func (r *rounds) commit(t *testing.T) {
	t.Helper()
	r.n++
	if err := r.Commit(collect.Round{Number: r.n, Time: time.UnixMilli(r.at() - 1000)}); err != nil {
		t.Fatal(err)
	}
}

// scraped is what a scrape says, read as Prometheus reads it.
func (r *rounds) scraped(t *testing.T) map[string]float64 {
	t.Helper()
	p := r.page(openMetrics, func(*bytes.Buffer, format) {})
	return parsed(t, p.plain, string(openMetrics))
}

func parsed(t *testing.T, text []byte, contentType string) map[string]float64 {
	t.Helper()
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("a scrape cannot be read: %v\n%.2000s", err, text)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, v := p.Series()
		if _, twice := all[l.String()]; twice {
			t.Errorf("%s came twice", l)
		}
		all[l.String()] = v
	}
}

func wantSeries(t *testing.T, all map[string]float64, name, to string, want float64) {
	t.Helper()
	key := labels.FromStrings("__name__", name, "host", "web", "to", to).String()
	if v, ok := all[key]; !ok || v != want {
		t.Errorf("%s is %v (there: %v), want %v", key, v, ok, want)
	}
}

func wantNone(t *testing.T, all map[string]float64, name string) {
	t.Helper()
	for key := range all {
		if strings.Contains(key, `"`+name+`"`) && !strings.Contains(key, "signal=") {
			t.Errorf("%s is shown, which was not read", key)
		}
	}
}

func TestOnlyWhatWasReadIsShown(t *testing.T) {
	r := newRounds()
	r.put(gauge, 1, "a")
	r.put(gauge, 2, "b")
	r.commit(t)
	wantSeries(t, r.scraped(t), "test_queue", "a", 1)
	r.put(gauge, 3, "a") // b went away
	r.commit(t)
	all := r.scraped(t)
	wantSeries(t, all, "test_queue", "a", 3)
	if len(all) != 2 { // and plimsoll_host_info
		t.Errorf("%v is shown, want what is there", all)
	}
	for range patience + 2 { // now there is none at all
		r.commit(t)
	}
	wantNone(t, r.scraped(t), "test_queue")
	r.put(gauge, 4, "a")
	r.commit(t)
	wantSeries(t, r.scraped(t), "test_queue", "a", 4)
	r.Status("web", "test_queue", model.Status{State: model.Failed, Why: "gone"})
	r.commit(t)
	all = r.scraped(t)
	wantNone(t, all, "test_queue")
	if v := all[labels.FromStrings("__name__", "plimsoll_signal_state", "host", "web", "signal", "test_queue", "state", "failed").String()]; v != 1 {
		t.Errorf("the state of a signal that failed is not told: %v", all)
	}
}

func TestCountersOfOursBeginAtZero(t *testing.T) {
	r := newRounds()
	r.put(ours, 7, "a")
	r.commit(t)
	r.put(ours, 7, "a")
	r.commit(t) // nobody has looked yet
	wantSeries(t, r.scraped(t), "test_seen_total", "a", 0)
	r.put(ours, 9, "a")
	r.commit(t)
	wantSeries(t, r.scraped(t), "test_seen_total", "a", 9)
}

func TestSeriesAreBoundedAndExpire(t *testing.T) {
	r := newRounds()
	for i := range MaxOfSignal + 5 {
		r.put(gauge, 1, fmt.Sprint("c", i))
	}
	r.commit(t)
	all := r.scraped(t)
	if n := len(all); n != MaxOfSignal+2 { // and plimsoll_host_info, and what was cut
		t.Errorf("%d series, want %d", n, MaxOfSignal+2)
	}
	cut := labels.FromStrings("__name__", "plimsoll_exporter_series_cut_total", "host", "web", "signal", "test_queue").String()
	if all[cut] != 5 {
		t.Errorf("%v were cut, want 5", all[cut])
	}
	// Containers come and go under ever new names; those of two rounds ago leave their room.
	for round := range 20 {
		for i := range 1000 {
			r.put(gauge, 1, fmt.Sprint("round", round, "c", i))
		}
		r.commit(t)
	}
	if all := r.scraped(t); len(all) != 1000+2 || all[cut] > 5+1000 {
		t.Errorf("%d series, %v cut: those that went away take room", len(all), all[cut])
	}
	for range int(forget/time.Second) + 2 {
		r.commit(t)
	}
	if r.count != 0 || len(r.families) != 0 {
		t.Errorf("%d series of %d signals are known that went away long ago", r.count, len(r.families))
	}
}

func TestHostileLabelsAreHarmless(t *testing.T) {
	r := newRounds()
	for i, to := range []string{"a\"} 1\n# EOF\n", "\x1b[2J", "\xff\xfe", "\xff", "back\\slash", strings.Repeat("long", 5000), strings.Repeat("long", 5001), "", "\x00"} {
		r.put(gauge, float64(i), to)
	}
	r.commit(t)
	all := r.scraped(t) // which wants each series once
	for key := range all {
		if strings.ContainsAny(key, "\x1b\x00") || len(key) > 2*maxLabel {
			t.Errorf("%q is shown as it came", key)
		}
	}
	if len(all) < 6 {
		t.Errorf("%v: less than what can be told apart", all)
	}
	parsed(t, r.page(plainText, func(*bytes.Buffer, format) {}).plain, string(plainText))
}

func TestNotesAreBounded(t *testing.T) {
	said := 0
	s := newStore(time.Second, nil, func(string) { said++ })
	for i := range 5 * maxNotes {
		s.Note(fmt.Sprint("note ", i))
		s.Note("note 0")
	}
	if said != maxNotes {
		t.Errorf("%d notes, want %d", said, maxNotes)
	}
}

// Where the bound is near there is no room to grow as far as elsewhere: what found none is a crowd, too, after a while.
func TestACrowdAtTheBound(t *testing.T) {
	r := newRounds()
	r.count = MaxSeries - 1000
	for range settles {
		r.crowded(false)
	}
	r.count = MaxSeries
	for n := settles + 1; n < 2*fullFor; n++ {
		r.put(gauge, 1, fmt.Sprint("c", n))
		if got := r.crowded(false); got != (n >= fullFor) {
			t.Errorf("renewal %d: crowded is %v", n, got)
		}
	}
	r.begun(false)
	for range settles {
		r.crowded(false)
	}
	if r.usual != MaxSeries-1000 {
		t.Errorf("%d series are taken for usual, while some of those who read know all names still", r.usual)
	}
	if r.count = 0; r.crowded(false) {
		t.Error("nothing is known, which is a crowd")
	}
}
