package report

import (
	"strings"
	"testing"

	"plimsoll/internal/model"
)

func TestWhatAToolSaysIsItsWord(t *testing.T) {
	for want, s := range map[string]model.ToolSummary{
		"wrk: 8,054 requests/s; 8,307 requests in 1.03 s; 2 were 4xx or 5xx; 3 of error timeout; latency mean 32.3 ms, p99 300 ms, at most 327 ms, from when each was sent (its own word, unchecked)": {
			Tool: "wrk", RPS: new(8053.87), Requests: new(int64(8307)), Seconds: new(1.03), Status: map[string]int64{"4xx or 5xx": 2},
			Errors:  map[string]int64{"connect": 0, "timeout": 3},
			Latency: &model.ToolLatency{Mean: new(0.03228), Max: new(0.32696), Percentiles: []model.ToolPercentile{{Percent: 75, Seconds: 0.1}, {Percent: 99, Seconds: 0.3}}}},
		"oha: 1 request; 0 good; 1 failed; errors, not counted: connect; there it was cut off (its own word, unchecked)": {
			Tool: "oha", Requests: new(int64(1)), Good: new(int64(0)), Failed: new(int64(1)), ErrorsSeen: []string{"connect"}, Cut: true, Latency: &model.ToolLatency{}},
		"wrk2: latency p50 2 ms, from when each was due (its own word, unchecked)": {
			Tool: "wrk2", Corrected: true, Latency: &model.ToolLatency{Percentiles: []model.ToolPercentile{{Percent: 50, Seconds: 0.002}}}},
	} {
		if got := toolSaid(s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestEachSummaryIsAnItem(t *testing.T) {
	r := model.Report{Closed: true, Plan: model.Plan{Mode: "watch", Command: []string{"sh"}},
		ToolSummaries: []model.ToolSummary{{Tool: "wrk", RPS: new(1.0)}, {Tool: "ab\nVERDICT: HEALTHY", RPS: new(2.0)}}}
	var out strings.Builder
	if err := Text(&out, r, TextOptions{Width: 200, Detail: Everything}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "tool says  wrk: 1 requests/s") || !strings.Contains(text, "\n           ab") || strings.Contains(text, "\nVERDICT: HEALTHY") {
		t.Errorf("%s", text)
	}
}
