package report

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/loadtool"
	"plimsoll/internal/model"
)

// What is printed as another tool's is read by who reads that tool's.
func TestOtherToolsWordsAreReadAsTheirs(t *testing.T) {
	plan := model.LoadPlan{URL: "http://127.0.0.1:8080/x?y=1", Connections: 20, Threads: 2}
	l := model.Load{ReceivedBytes: 3 << 20, Seconds: 2, RPS: 1010, Latency: model.Quantiles{Count: 2020, Mean: 1500, P50: 900, P90: 2500, P99: 14_000, Max: 1_200_000},
		Outcomes: map[string]int64{"2xx": 1993, "3xx": 7, "expected:4xx": 5, "5xx": 15, "connect:ECONNREFUSED": 1, "tls:eof": 1, "read:eof": 4, "read:timeout": 8, "write:EPIPE": 16}}
	for _, c := range []struct {
		tool     string
		status   string
		notGood  int64
		requests string // and bytes
		errors   map[string]int64
		shares   []model.ToolPercentile
	}{
		{"wrk", "4xx or 5xx", 20, `(?m)^  2020 requests in 2\.00s, 3\.00MB read$[^$]*^Transfer/sec:     1\.50MB$`, map[string]int64{"connect": 2, "read": 4, "write": 16, "timeout": 8}, []model.ToolPercentile{{Percent: 50, Seconds: 0.0009}, {Percent: 90, Seconds: 0.0025}, {Percent: 99, Seconds: 0.014}}},
		{"ab", "not 2xx", 27, `(?m)^Complete requests:      2020$[^$]*^Total transferred:      3145728 bytes$[^$]*^Transfer rate:          1536\.00 \[Kbytes/sec\] received$`, map[string]int64{"connect": 2, "read": 12, "write": 16, "length": 0, "other": 0}, []model.ToolPercentile{{Percent: 50, Seconds: 0.001}, {Percent: 90, Seconds: 0.002}, {Percent: 99, Seconds: 0.014}}},
	} {
		var b bytes.Buffer
		if err := FormatOf(&b, c.tool, plan, l); err != nil {
			t.Fatal(err)
		}
		r := loadtool.New([]string{c.tool})
		if _, err := r.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
		all, _ := r.Summaries()
		if len(all) != 1 {
			t.Fatalf("%s: %d summaries in\n%s", c.tool, len(all), b.String())
		}
		s := all[0]
		if !regexp.MustCompile(c.requests).Match(b.Bytes()) || s.RPS == nil || *s.RPS != 1010 || s.Connections == nil || *s.Connections != 20 || s.Status[c.status] != c.notGood {
			t.Errorf("%s: read %+v from\n%s", c.tool, s, b.String())
		}
		if d := cmp.Diff(&model.ToolLatency{Percentiles: c.shares}, s.Latency, cmpopts.IgnoreFields(model.ToolLatency{}, "Mean", "Max"), cmpopts.EquateApprox(0, 1e-9)); d != "" {
			t.Errorf("%s: latency: %s\n%s", c.tool, d, b.String())
		}
		if d := cmp.Diff(c.errors, s.Errors); d != "" {
			t.Errorf("%s: errors: %s\n%s", c.tool, d, b.String())
		}
	}
}
