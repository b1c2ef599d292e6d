package loadtool

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"plimsoll/internal/model"
)

// every is a command in which each tool runs.
var every = []string{"sh", "-c", "wrk http://h/; wrk2 http://h/; ab; hey; oha; h2load; k6; vegeta; fortio; siege; jmeter; bombardier"}

// FuzzOutput reads any output, in two pieces and in one.
func FuzzOutput(f *testing.F) {
	for _, text := range fixtures(f) {
		f.Add(text, uint(len(text)/2))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint) {
		at := int(cut % uint(len(text)+1))
		whole, dropped := read(t, text)
		pieces, droppedToo := read(t, text[:at:at], text[at:])
		if !reflect.DeepEqual(whole, pieces) || dropped != droppedToo {
			t.Fatalf("in one %+v\nin two %+v", whole, pieces)
		}
		if len(whole) > mostSummaries {
			t.Fatalf("%d summaries", len(whole))
		}
		for _, s := range whole {
			sound(t, s)
		}
	})
}

func read(t *testing.T, pieces ...[]byte) ([]model.ToolSummary, int) {
	r := New(every)
	for _, p := range pieces {
		if n, err := r.Write(p); n != len(p) || err != nil {
			t.Fatalf("%d of %d bytes taken: %v", n, len(p), err)
		}
	}
	return r.Summaries()
}

// sound fails on a number that cannot be measured, and on a list that grew too long.
func sound(t *testing.T, s model.ToolSummary) {
	t.Helper()
	if _, err := json.Marshal(s); err != nil {
		t.Fatal(err) // NaN and infinity have no JSON
	}
	for _, x := range []*float64{s.RPS, s.Seconds} {
		if x != nil && *x < 0 {
			t.Fatalf("%+v", s)
		}
	}
	for _, n := range []*int64{s.Requests, s.Good, s.Failed, s.Bytes, s.Connections} {
		if n != nil && *n < 0 {
			t.Fatalf("%+v", s)
		}
	}
	for _, n := range s.Errors {
		if n < 0 {
			t.Fatalf("%+v", s)
		}
	}
	if len(s.Errors) > 6 || len(s.Status) > 6 || len(s.ErrorsSeen) > 6 {
		t.Fatalf("%+v", s)
	}
	if s.Latency == nil {
		return
	}
	last := math.Inf(-1)
	for _, p := range s.Latency.Percentiles {
		if p.Percent <= last || p.Percent >= 100 || p.Seconds < 0 {
			t.Fatalf("%+v", s.Latency)
		}
		last = p.Percent
	}
}

// FuzzArguments looks for tools in any command line.
func FuzzArguments(f *testing.F) {
	f.Add("sh", "-c", "for c in 1 10; do nice wrk -c$c 'http://h/'; done | tee \"x y\"")
	f.Add("env", "A=b", "ip netns exec srv ab")
	f.Add("sh", "-c", `sh -c "sh -c 'sh -c \"wrk\"'"`)
	f.Fuzz(func(_ *testing.T, a, b, c string) {
		New([]string{a, b, c})
		New([]string{"sh", "-c", c})
	})
}
