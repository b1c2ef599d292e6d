package export

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

const start = 1_700_000_000_000 // Unix milliseconds

var declared = []*model.Signal{
	{Name: "plimsoll_waits_seconds_total", Kind: model.Counter, Unit: "seconds", Help: "time in \\which\n\"somebody\" waited"},
	{Name: "node_load1", Kind: model.Gauge, Unit: "ratio", Help: "one minute"},
	{Name: "node_netstat_TcpExt_ListenDrops", Kind: model.Counter, Unit: "packets", Help: "drops"},
	{Name: "jobs", Kind: model.Gauge, Unit: "jobs", Help: "now"},
	{Name: "jobs_total", Kind: model.Counter, Unit: "jobs", Help: "since ever"},
}

// hostile is what a label's value may hold.
const hostile = "=cmd()\n\"x\"\\\u202e\x00\xff# EOF"

// sample is a run of a few series, among them those of a directory that is not ours.
func sample() *record.Run {
	var m record.Memory
	add := func(pairs ...string) {
		var points []record.Point
		for i := range int64(3) {
			points = append(points, record.Point{Time: start + i*1000 + 7, Value: float64(i) / 3})
		}
		m.Add(labels.FromStrings(pairs...), points)
	}
	add("__name__", "plimsoll_waits_seconds_total", "host", "a", "cpu", "0")
	add("__name__", "plimsoll_waits_seconds_total", "host", "a", "cpu", "1")
	add("__name__", "node_load1", "host", "a")
	add("__name__", "node_load1", "host", "=b")
	add("__name__", "node_netstat_TcpExt_ListenDrops", "host", "a")
	add("__name__", "jobs", "host", "a")
	add("__name__", "jobs_total", "host", "a")
	add("__name__", "foreign_total", "host", "a", "text", hostile, "Upper", "u")
	add("__name__", "no name\n# EOF", "host", "a")
	add("__name__", "bad_label", "host", "a", "no label", "x")
	m.Sort()
	return record.InMemory(model.Run{}, &m)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// held are the run's readings as text, by series.
func held(t *testing.T, run *record.Run) (list []string) {
	first, last, err := run.Span()
	check(t, err)
	for s, err := range run.Series(first, last, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")) {
		check(t, err)
		if !writable(s.Labels) {
			continue
		}
		for _, p := range s.Points {
			list = append(list, fmt.Sprintf("%s %d %v", strings.ReplaceAll(s.Labels.String(), `\xff`, "\uFFFD"), p.Time, p.Value))
		}
	}
	slices.Sort(list)
	return list
}

// Prometheus' own parser reads the same series back, each family once and in one piece.
func TestOpenMetricsIsReadByPrometheus(t *testing.T) {
	var doc bytes.Buffer
	left, err := OpenMetrics(&doc, sample(), declared)
	check(t, err)
	if left != 2 {
		t.Errorf("%d series left out, want 2", left)
	}
	var got, families []string
	p := textparse.NewOpenMetricsParser(doc.Bytes(), labels.NewSymbolTable())
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		switch entry {
		case textparse.EntryType:
			name, typ := p.Type()
			if slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(f, string(name)+" ") }) {
				t.Errorf("family %s is there twice", name)
			}
			families = append(families, string(name)+" "+string(typ))
		case textparse.EntryUnit:
			name, unit := p.Unit()
			families = append(families, string(name)+" in "+string(unit))
		case textparse.EntryHelp:
			if name, help := p.Help(); string(name) == "plimsoll_waits_seconds" && string(help) != declared[0].Help {
				t.Errorf("help is %q", help)
			}
		case textparse.EntrySeries:
			var l labels.Labels
			_, at, v := p.Series()
			p.Labels(&l)
			got = append(got, fmt.Sprintf("%s %d %v", l, *at, v))
		}
	}
	slices.Sort(got)
	if d := cmp.Diff(held(t, sample()), got); d != "" {
		t.Errorf("-run +read back\n%s", d)
	}
	want := []string{"foreign_total unknown", "jobs gauge", "jobs_total unknown", "node_load1 gauge", "node_netstat_TcpExt_ListenDrops unknown",
		"plimsoll_waits_seconds counter", "plimsoll_waits_seconds in seconds"}
	if d := cmp.Diff(want, families); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !strings.HasSuffix(doc.String(), "\n# EOF\n") || strings.Count(doc.String(), "\n# EOF\n") != 1 {
		t.Error("the end is not where it should be")
	}
}

func TestCSVHasAllReadingsAndNoFormula(t *testing.T) {
	var doc bytes.Buffer
	check(t, CSV(&doc, sample()))
	rows, err := csv.NewReader(&doc).ReadAll()
	check(t, err)
	if len(rows) != 1+10*3 || strings.Join(rows[0], " ") != "time_ms name host labels value" {
		t.Fatalf("%d rows, the first %q", len(rows), rows[0])
	}
	for _, r := range rows[1:] {
		for _, cell := range r[1:4] {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("%q may be run by a spreadsheet", cell)
			}
		}
	}
	want := []string{"1700000001007", "plimsoll_waits_seconds_total", "a", `cpu="1"`, "0.3333333333333333"}
	if !slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, want) }) {
		t.Errorf("no row %q", want)
	}
}

// A run whose disk is full, or that goes into a pipe that is closed, ends with that error.
func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return CSV(w, sample()) },
		func(w io.Writer) error { _, err := OpenMetrics(w, sample(), nil); return err },
	} {
		r, w := io.Pipe()
		r.Close()
		if err := write(w); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
	}
}
