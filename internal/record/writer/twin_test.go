package writer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	walrecord "github.com/prometheus/prometheus/tsdb/record"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

func notesOf(t *testing.T, dir string) []string {
	t.Helper()
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	return run.Meta().Notes
}

// Names are anybody's: two that are the same once they are recorded must not keep a run from being closed.
func TestSeriesThatAreTheSameOnceRecorded(t *testing.T) {
	long := strings.Repeat("x", maxLabel)
	for name, c := range map[string]struct{ first, second, recorded string }{
		"two secrets":                       {"password=a", "password=b", "password=(masked)"},
		"a secret, and what masks it":       {"password=a", "password=(masked)", "password=(masked)"},
		"what masks a secret, and a secret": {"password=(masked)", "password=a", "password=(masked)"},
		"names that are too long":           {long + "a", long + "b", long},
		"a name that is too long, and not":  {long + "a", long, long},
		"what is no UTF-8":                  {"\xff", "\xfe", "\ufffd"},
		"two hosts' secrets":                {"host password=a", "host password=b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := create(t)
			sample := func(at int64, s *model.Signal, value float64, label string) {
				if host, ok := strings.CutPrefix(label, "host "); ok {
					w.Sample(host, at, s, value, "")
				} else {
					w.Sample("h", at, s, value, label)
				}
			}
			for i := range int64(3) {
				at := start + 500 + i*1000
				sample(at, gauge, float64(i), c.first)
				sample(at, gauge, 100, c.second)
				sample(at, gauge, 200, c.second)
				sample(at, counted, float64(i+1), c.first)
				sample(at, counted, 100, c.second)
				check(t, w.Commit())
			}
			want := []string{
				`{__name__="c_total", host="h", kind="` + c.recorded + `"} 0:0 500:1 1500:2 2500:3`,
				`{__name__="g", dev="` + c.recorded + `", host="h"} 500:0 1500:1 2500:2`,
			}
			if c.recorded == "" {
				want = []string{`{__name__="c_total", host="password=(masked)"} 0:0 500:1 1500:2 2500:3`, `{__name__="g", host="password=(masked)"} 500:0 1500:1 2500:2`}
			}
			if diff := cmp.Diff(want, dump(t, dir)); diff != "" {
				t.Errorf("from the write-ahead log (-want +got):\n%s", diff)
			}
			check(t, w.Close())
			if diff := cmp.Diff(want, dump(t, dir)); diff != "" {
				t.Errorf("from the block (-want +got):\n%s", diff)
			}
			if notes := notesOf(t, dir); len(notes) == 0 || !strings.Contains(notes[0], "the one that came first was recorded alone") || strings.Contains(notes[0], "password=a") {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// What a value holds is never taken for the end of it.
func TestSeriesWhoseLabelsHaveZeroBytes(t *testing.T) {
	w, dir := create(t)
	two := &model.Signal{Name: "two", Kind: model.Gauge, Labels: []string{"a", "b"}}
	for i := range int64(2) {
		w.Sample("h", start+i, two, 1, "x\x00y", "z")
		w.Sample("h", start+i, two, 2, "x", "y\x00z")
	}
	check(t, w.Close())
	if got := dump(t, dir); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// A log, as older versions wrote it, in which two series have the same labels: it is closed, whatever of it is in one
// block, and tells the same before and after.
func TestALogWithTheSameSeriesTwiceIsClosed(t *testing.T) {
	want := []string{`{__name__="g", dev="x", host="h"} 0:1 1:5 10:1 20:1 21:5 30:1`}
	for _, most := range []int{1, 2, 3, 5, 100} {
		w, dir := create(t)
		w.series.pieceSamples = most
		var enc walrecord.Encoder
		lset := labels.FromStrings("__name__", "g", "dev", "x", "host", "h")
		check(t, w.series.log.Add(enc.Series([]walrecord.RefSeries{{Ref: 1, Labels: lset}, {Ref: 2, Labels: lset}}, nil)))
		for _, s := range []struct {
			ref   uint64
			at    int64
			value float64
		}{{1, 0, 1}, {2, 0, 5}, {2, 1, 5}, {1, 10, 1}, {2, 9, 5}, {1, 20, 1}, {2, 21, 5}, {1, 30, 1}, {1, 25, 9}} {
			check(t, w.series.log.Add(enc.Samples([]walrecord.RefSample{{Ref: chunks.HeadSeriesRef(s.ref), T: start + s.at, V: s.value}}, nil)))
		}
		if diff := cmp.Diff(want, dump(t, dir)); diff != "" {
			t.Errorf("from the write-ahead log (-want +got):\n%s", diff)
		}
		check(t, w.Close())
		if diff := cmp.Diff(want, dump(t, dir)); diff != "" {
			t.Errorf("from blocks of %d samples (-want +got):\n%s", most, diff)
		}
		if notes := notesOf(t, dir); len(notes) != 1 || !strings.HasPrefix(notes[0], "3 samples of the log were left out") {
			t.Errorf("notes %q", notes)
		}
	}
}
