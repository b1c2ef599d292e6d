package load

import (
	"fmt"
	"math"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
)

// What a worker says becomes series, memory and sums of ours: none of them without end.
func TestAWorkerSaysNoMoreThanThereIs(t *testing.T) {
	encode := func(digits int) string {
		h := hdr.New(1, maxMicros, digits)
		if err := h.RecordValue(5); err != nil {
			t.Fatal(err)
		}
		text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := encode(3)
	share := func(of, name, histogram string) Record {
		return Record{Shares: []Share{{Of: of, Kind: "response", Name: name, Histogram: histogram}}}
	}
	phase := func(p PhaseRecord) Record {
		p.Phase = model.Hold
		return Record{Phases: []PhaseRecord{p}}
	}
	many := map[string]int64{}
	for i := range maxNames + 1 {
		many[fmt.Sprint(i)] = 0
	}
	plan := model.LoadPlan{Targets: []model.Target{{Name: "a"}}, Stages: make([]model.Stage, 1)}
	for name, c := range map[string]struct {
		record Record
		want   string
	}{
		"a target of the plan":  {share(ofTarget, "a", good), ""},
		"a stage of the plan":   {share(ofStage, "1", good), ""},
		"a phase":               {share(model.Hold, "", good), ""},
		"another target":        {share(ofTarget, "b", good), "none of that name"},
		"another stage":         {share(ofStage, "2", good), "none of that name"},
		"a stage by two names":  {share(ofStage, "+1", good), "none of that name"},
		"a phase with a name":   {share(model.Hold, "b", good), "none of that name"},
		"a fine histogram":      {share(model.Hold, "", encode(5)), "by 5 digits"},
		"endless outcomes":      {phase(PhaseRecord{Outcomes: many}), "names in one place"},
		"endless threads":       {Record{Threads: make([]ThreadCPU, maxNames+1)}, "names in one place"},
		"a long name":           {Record{Threads: []ThreadCPU{{Thread: strings.Repeat("x", maxName+1)}}}, "more than 512 bytes"},
		"requests that overrun": {phase(PhaseRecord{Requests: math.MaxInt64}), "more than any load can have"},
		"seconds that overrun":  {phase(PhaseRecord{Waits: map[string]float64{"2xx": math.MaxFloat64}}), "more than any load can have"},
	} {
		err := NewSum(plan, []string{"w"}).Take(0, c.record, 0)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTimesOfARecord(t *testing.T) {
	for _, c := range []struct {
		r    Record
		want bool
	}{
		{Record{Time: 5, Phases: []PhaseRecord{{Start: 1}, {Start: 1, End: 9}}}, true},
		{Record{Time: math.MaxInt64}, false},
		{Record{Time: 5, Phases: []PhaseRecord{{Start: math.MinInt64}}}, false},
		{Record{Time: 5, Phases: []PhaseRecord{{Start: 1, End: 10}}}, false},
	} {
		if got := c.r.Within(1, 9); got != c.want {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}
