package loadtool

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

var update = flag.Bool("update", os.Getenv("PLIMSOLL_UPDATE") == "1", "write golden files anew")

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixtures returns the recorded outputs by name; the tool is the name's first word.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	check(t, err)
	all := map[string][]byte{}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		check(t, err)
		all[strings.TrimSuffix(filepath.Base(p), ".txt")] = text
	}
	if len(all) == 0 {
		t.Fatal("no recorded outputs in testdata")
	}
	return all
}

func readerFor(t testing.TB, fixture string) *Reader {
	t.Helper()
	tool, _, _ := strings.Cut(fixture, "_")
	r := New([]string{tool})
	if r == nil {
		t.Fatalf("%s: no such tool", tool)
	}
	return r
}

func summaries(t testing.TB, fixture string, text []byte) []model.ToolSummary {
	t.Helper()
	r := readerFor(t, fixture)
	_, err := r.Write(text)
	check(t, err)
	list, dropped := r.Summaries()
	if dropped > 0 {
		t.Errorf("%s: %d summaries too many", fixture, dropped)
	}
	return list
}

// What the tools printed, and what is read of it.
func TestRecorded(t *testing.T) {
	for name, text := range fixtures(t) {
		got, err := json.MarshalIndent(summaries(t, name, text), "", " ")
		check(t, err)
		got = append(got, '\n')
		path := filepath.Join("testdata", name+".json")
		if *update {
			check(t, os.WriteFile(path, got, 0o644))
		}
		want, err := os.ReadFile(path)
		check(t, err)
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s (-want +got; PLIMSOLL_UPDATE=1 writes it anew):\n%s", name, d)
		}
	}
}

// However the output comes in pieces, the same is read.
func TestInPieces(t *testing.T) {
	for name, text := range fixtures(t) {
		r := readerFor(t, name)
		for piece := range bytes.SplitAfterSeq(text, []byte(" ")) {
			_, err := r.Write(piece)
			check(t, err)
		}
		got, _ := r.Summaries()
		if d := cmp.Diff(summaries(t, name, text), got); d != "" {
			t.Errorf("%s: (-whole +pieces)\n%s", name, d)
		}
	}
}

// A tool that was killed in the middle of its summary tells what it told, and that
// it broke off.
func TestCutOff(t *testing.T) {
	told := 0
	for name, text := range fixtures(t) {
		if strings.Contains(name, "_loop") {
			continue // its first summary is whole
		}
		last := bytes.LastIndexByte(bytes.TrimSpace(text), '\n')
		for end := 0; end < last; end += 7 {
			for _, s := range summaries(t, name, text[:end]) {
				if s.Cut {
					told++
				}
				if s.Cut && s.Status != nil && s.Good != nil && s.Tool != "h2load" {
					t.Fatalf("%s: cut at %d: what follows from all lines is told: %+v", name, end, s)
				}
			}
		}
		if half := summaries(t, name, text[:last/3]); len(half) > 0 && !half[0].Cut {
			t.Errorf("%s: a third of it is taken for all", name)
		}
	}
	if told == 0 {
		t.Error("none was cut off")
	}
}

// Where several tools run, or one several times, each summary is listed, in order.
func TestSeveral(t *testing.T) {
	all := fixtures(t)
	r := New([]string{"sh", "-c", "wrk http://h/; ab http://h/; fortio load http://h/; wrk http://h/"})
	for _, name := range []string{"wrk_loop", "ab", "fortio", "wrk_mixed"} {
		_, err := r.Write(all[name])
		check(t, err)
	}
	list, dropped := r.Summaries()
	var got []string
	for _, s := range list {
		got = append(got, s.Tool)
	}
	if d := cmp.Diff([]string{"wrk", "wrk", "wrk", "ab", "fortio", "wrk"}, got); d != "" || dropped != 0 {
		t.Errorf("%d dropped, %s", dropped, d)
	}
	if d := cmp.Diff(summaries(t, "ab", all["ab"]), list[3:4]); d != "" {
		t.Errorf("ab between two others (-alone +between): %s", d)
	}
}

// What is kept does not grow with the output, and the newest is kept.
func TestBounds(t *testing.T) {
	r := New([]string{"wrk"})
	loop := fixtures(t)["wrk_loop"]
	for range 10 {
		_, err := r.Write(bytes.Repeat([]byte("x"), 1<<20)) // a line without an end
		check(t, err)
		_, err = r.Write(append([]byte("\n"), loop...))
		check(t, err)
	}
	if cap(r.line) > 2*longestLine {
		t.Errorf("%d bytes of a line are held", cap(r.line))
	}
	list, dropped := r.Summaries()
	if len(list) != mostSummaries || dropped != 30-mostSummaries || *list[len(list)-1].Connections != 4 {
		t.Errorf("%d kept, %d dropped, the last %+v", len(list), dropped, list[len(list)-1])
	}
}

// A number that cannot be, or is none, is not told.
func TestNumbersThatAreNone(t *testing.T) {
	r := New([]string{"wrk"})
	_, err := r.Write([]byte("Running 1s test @ http://h/\n    Latency     -nanus    -nanus   9e999s    0.00%\n" +
		"  99999999999999999999 requests in -1.00s, 9999999999999999PB read\nRequests/sec:      nan\nTransfer/sec:       infB\n" +
		"Running 1s test @ http://h/\nRequests/sec:  1e999\nRequests/sec: 5\n"))
	check(t, err)
	list, _ := r.Summaries()
	if d := cmp.Diff([]model.ToolSummary{{Tool: "wrk", RPS: new(5.0), Cut: true}}, list); d != "" {
		t.Error(d)
	}
}

// Around what is missing nothing is made up: a number may have lost its end, and a
// summary what stood between.
func TestWhatIsMissingIsNotMadeUp(t *testing.T) {
	r := New([]string{"wrk"})
	write := func(text string) {
		_, err := r.Write([]byte(text))
		check(t, err)
	}
	write("Running 1s test @ http://h/\nRequests/sec: 4\nRunning 1s test @ http://h/\n  Requests/sec:  1")
	r.Skip()
	write("23\nRequests/sec: 45\nRunning 1s test @ http://h/\nRequests/sec: 5\n")
	list, dropped := r.Summaries()
	want := []model.ToolSummary{{Tool: "wrk", RPS: new(4.0), Cut: true}, {Tool: "wrk", RPS: new(5.0), Cut: true}}
	if d := cmp.Diff(want, list); d != "" || dropped != 1 {
		t.Errorf("%d left out; %s", dropped, d)
	}
}

// What one writes of no tool is none's summary.
func TestSilence(t *testing.T) {
	for _, text := range []string{"", "\n", "unable to connect to 127.0.0.1:80 Connection refused\n", "Running 5s test @ http://h/\n  1 threads and 2 connections\n"} {
		if list := summaries(t, "wrk", []byte(text)); len(list) != 0 {
			t.Errorf("%q: %+v", text, list)
		}
	}
}
