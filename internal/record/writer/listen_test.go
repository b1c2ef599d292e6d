package writer

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// heard is a batch as text.
func heard(b *Batch) (lines []string) {
	for _, s := range b.Samples {
		lines = append(lines, fmt.Sprintf("%s %d:%v", s.Series, s.Time-start, s.Value))
	}
	for _, e := range b.Events {
		lines = append(lines, fmt.Sprintf("event %s %s", e.Kind, e.Text))
	}
	for _, s := range b.Statuses {
		lines = append(lines, fmt.Sprintf("status %s %s %s", s.Host, s.Signal, s.State))
	}
	for _, n := range b.Notes {
		lines = append(lines, "note "+n)
	}
	for _, w := range b.Windows {
		lines = append(lines, fmt.Sprintf("window %s %d", w.Name, w.Start-start))
	}
	return lines
}

func TestAListenerHearsWhatIsRecorded(t *testing.T) {
	w, _ := create(t)
	w.Sample("server", start, gauge, 1, "http://u:secret@x/") // before anybody listens
	check(t, w.Commit())
	l, gone := w.Listen(4), w.Listen(4)
	gone.Close()
	hear := func(want ...string) {
		t.Helper()
		b, missed, err := l.Next(t.Context())
		check(t, err)
		if d := cmp.Diff(want, heard(b)); d != "" || missed != (Missed{}) {
			t.Errorf("missed %v; -want +got\n%s", missed, d)
		}
	}
	w.Sample("server", start+1000, gauge, 2, "http://u:secret@x/")
	w.Sample("server", start+1000, counted, 3, "k")
	w.Event(model.Event{Time: start, Kind: "log", Text: "token=0123456789abcdef"})
	w.Status("server", "g", model.Status{State: model.Read})
	w.Note("a sentence")
	check(t, w.Commit())
	hear(`{__name__="g", dev="http://(masked)@x/", host="server"} 1000:2`,
		`{__name__="c_total", host="server", kind="k"} 0:0`, `{__name__="c_total", host="server", kind="k"} 1000:3`,
		"event log token=(masked)", "status server g read", "note a sentence")
	check(t, w.Commit())
	w.Status("server", "g", model.Status{State: model.Read}) // nothing new
	check(t, w.Update(func(r *model.Run) { r.Windows = []model.Window{{Name: "hold", Start: start + 7}} }))
	hear("window hold 7")
	w.Note("the last")
	check(t, w.Close())
	hear("note the last")
	for _, ended := range []*Listener{l, w.Listen(1)} {
		if _, _, err := ended.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	}
	if len(gone.batches) > 0 {
		t.Error("one that listens no more was told")
	}
}

func TestASlowListenerLosesAndIsTold(t *testing.T) {
	w, dir := create(t)
	l := w.Listen(2)
	for i := range 5 {
		for dev := range 3 {
			w.Sample("server", start+int64(i), gauge, 1, fmt.Sprint(dev))
		}
		check(t, w.Commit())
	}
	for i, want := range []Missed{{Batches: 3, Samples: 9}, {}} {
		b, missed, err := l.Next(t.Context())
		check(t, err)
		if len(b.Samples) != 3 || missed != want {
			t.Errorf("batch %d: %d samples, missed %+v, want 3 and %+v", i, len(b.Samples), missed, want)
		}
	}
	check(t, w.Close())
	if got := len(dump(t, dir)); got != 3 {
		t.Errorf("%d series recorded, want 3", got)
	}
}

// BenchmarkListen is a round of 5,000 series with so many that listen and take nothing.
func BenchmarkListen(b *testing.B) {
	for _, listeners := range []int{0, 1, 4} {
		b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
			w, err := Create(b.TempDir()+"/run", plan())
			if err != nil {
				b.Fatal(err)
			}
			for range listeners {
				w.Listen(4)
			}
			names := make([]string, 5000)
			for i := range names {
				names[i] = fmt.Sprint("dev", i)
			}
			b.ReportAllocs()
			for i := range b.N {
				for _, name := range names {
					w.Sample("server", start+int64(i), gauge, float64(i), name)
				}
				if err := w.Commit(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
