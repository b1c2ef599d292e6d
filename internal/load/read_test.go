package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// recorded returns what an engine printed, by file.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/records/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("recorded records: found %d, %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func readAll(text []byte) (all []Record, err error) {
	err = ReadRecords(bytes.NewReader(text), func(r Record) { all = append(all, r) })
	return all, err
}

func TestRecordsAreRead(t *testing.T) {
	for path, text := range recorded(t) {
		all, err := readAll(text)
		if err != nil || len(all) != bytes.Count(text, []byte("\n")) || !all[len(all)-1].Final {
			t.Errorf("%s: %d records, %v", path, len(all), err)
		}
		var again bytes.Buffer
		for _, r := range all {
			if err := json.NewEncoder(&again).Encode(r); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(string(text), again.String()); d != "" {
			t.Errorf("%s: written again (-want +got):\n%s", path, d)
		}
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	for line, want := range map[string]string{
		`{`:                                  "record 1: unexpected end of JSON input",
		`{"phase":"hold","t_ms":1e99}`:       "record 1: json: cannot unmarshal number 1e99 into Go struct field Record.t_ms of type int64",
		`{"phase":"hold","t_ms":NaN}`:        "record 1: invalid character 'N' looking for beginning of value",
		`{"phase":"../x"}`:                   `record 1: phase "../x": want one of [calm ramp hold drain]`,
		`{"phase":"hold","phase_ended":"x"}`: `record 1: a change of phase, "x": want one of [calm ramp hold drain]`,
		`{"phase":"hold","phases":[{"phase":"hold"},{"phase":"calm"}]}`:                             `record 1: counts of phase "calm": want one of [calm ramp hold], each once and in this order`,
		`{"phase":"hold","phases":[{"phase":"hold"},{"phase":"hold"}]}`:                             `record 1: counts of phase "hold": want one of [calm ramp hold], each once and in this order`,
		`{"phase":"hold","phases":[{"phase":"drain"}]}`:                                             `record 1: counts of phase "drain": want one of [calm ramp hold], each once and in this order`,
		`{"phase":"hold","phases":[{"phase":"hold","requests":-1}]}`:                                "record 1: counts of phase hold: a count or a time is negative",
		`{"phase":"hold","phases":[{"phase":"hold","requests":2,"statuses":{"200":3}}]}`:            `record 1: counts of phase hold: 3 replies with status "200": want one from 100 to 599, and no more than the 2 requests that began`,
		`{"phase":"hold","phases":[{"phase":"hold","requests":2,"statuses":{"600":1}}]}`:            `record 1: counts of phase hold: 1 replies with status "600": want one from 100 to 599, and no more than the 2 requests that began`,
		`{"phase":"hold","phases":[{"phase":"hold","requests":2,"statuses":{"2xx":1}}]}`:            `record 1: counts of phase hold: 1 replies with status "2xx": want one from 100 to 599, and no more than the 2 requests that began`,
		`{"phase":"hold","phases":[{"phase":"hold","requests":2,"statuses":{"200":-1}}]}`:           `record 1: counts of phase hold: -1 replies with status "200": want one from 100 to 599, and no more than the 2 requests that began`,
		`{"phase":"hold","phases":[{"phase":"hold","outcomes":{"2xx":1}}]}`:                         `record 1: counts of phase hold: 1 requests ended as "2xx": more than the 0 that began`,
		`{"phase":"hold","phases":[{"phase":"hold","waits_seconds":{"2xx":-0.5}}]}`:                 "record 1: counts of phase hold: a count or a time is negative",
		`{"phase":"hold","phases":[{"phase":"hold","service_us":{"p50":-1}}]}`:                      "record 1: counts of phase hold: a count or a time is negative",
		`{"phase":"hold","connections":{"idle":-1}}`:                                                "record 1: a number of connections, requests or seconds is negative",
		`{"phase":"hold","threads":[{"user_seconds":-1}]}`:                                          "record 1: a number of connections, requests or seconds is negative",
		`{"phase":"hold","intervals":[{"phase":"hold","kind":"x"}]}`:                                `record 1: latencies of phase "hold": kind "x": want response or service of one of [calm ramp hold]`,
		`{"phase":"hold","intervals":[{"phase":"hold","kind":"service","start_ms":1}]}`:             `record 1: latencies of phase "hold": they end before they begin`,
		`{"phase":"hold","intervals":[{"phase":"hold","kind":"service","histogram":"a,b\nc"}]}`:     `record 1: latencies of phase "hold": the histogram is no base64 in one line`,
		`{"phase":"hold","intervals":[{"phase":"hold","kind":"service","histogram":"YWJj\nYWJj"}]}`: `record 1: latencies of phase "hold": the histogram is no base64 in one line`,
	} {
		_, err := readAll([]byte(line + "\n"))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
	}
}

// A line that is cut off is told from one that is wrong, and what came before it counts.
func TestARecordThatIsCutOff(t *testing.T) {
	text := recorded(t)["testdata/records/closed.jsonl"]
	all, err := readAll(text[:len(text)-2])
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(all) != bytes.Count(text, []byte("\n"))-1 {
		t.Errorf("%d records, %v", len(all), err)
	}
}

// endless is a line without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += int64(len(p))
	return len(p), nil
}

// A line of any length costs no more than the longest record.
func TestALineWithoutAnEnd(t *testing.T) {
	var from endless
	err := ReadRecords(&from, func(Record) { t.Error("a record") })
	if err == nil || err.Error() != "record 1: it is longer than 16 MiB" || from.read > maxRecord {
		t.Errorf("%d bytes were read: %v", from.read, err)
	}
}

func FuzzReadRecords(f *testing.F) {
	for _, text := range recorded(f) {
		for line := range bytes.Lines(text) { // whole files take a minute each to minimize
			f.Add(line)
			f.Add(line[:len(line)/2])
		}
	}
	for _, line := range []string{
		`{"phase":"hold","t_ms":9223372036854775808}`, `{"phase":"hold","phases":[{"phase":"hold","waits_seconds":{"2xx":1e400}}]}`,
		`{"phase":"hold","totals":{"requests":-1,"outcomes":null,"seconds":-0.0}}`, `[`, `null`, "\x00\xff", "\r\n\n",
		`{"phase":"hold","phases":[{"phase":"hold","requests":9223372036854775807,"outcomes":{"2xx":9223372036854775807,"3xx":1}}]}`,
	} {
		f.Add([]byte(line + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		err := ReadRecords(bytes.NewReader(text), func(r Record) {
			n++
			mustBePossible(t, &r)
		})
		if lines := strings.Count(string(text), "\n"); err == nil && n != lines {
			t.Errorf("%d records of %d lines, and no error", n, lines)
		}
	})
}

// mustBePossible holds that a record makes sense as samples and as lines of a log.
func mustBePossible(t *testing.T, r *Record) {
	r.Samples(func(s *model.Signal, v float64, labels ...string) {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || len(labels) != len(s.Labels) {
			t.Errorf("%s %q = %v", s.Name, labels, v)
		}
	})
	for _, p := range r.Phases {
		if got := sum(p.Outcomes); got < 0 || got > p.Requests {
			t.Errorf("%d requests, %d outcomes", p.Requests, got)
		}
	}
	for _, i := range r.Intervals {
		if strings.ContainsAny(i.Kind+i.Histogram, ",\n\r") {
			t.Errorf("%+v would break a line of the log", i)
		}
	}
}
