package loadtool

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string // the tools, "" for none
	}{
		{[]string{"wrk", "-t2", "-c200", "-d10", "http://h/"}, "wrk"},
		{[]string{"/opt/bin/wrk", "-R2000", "http://h/"}, "wrk2"},
		{[]string{"wrk", "--rate", "2000", "http://h/"}, "wrk2"},
		{[]string{"wrk2", "-R", "2000", "http://h/"}, "wrk2"},
		{[]string{"env", "A=b", "LC_ALL=C", "ab", "-n", "10", "http://h/"}, "ab"},
		{[]string{"nice", "-n", "10", "hey", "http://h/"}, "hey"},
		{[]string{"taskset", "-c", "1", "oha", "http://h/"}, "oha"},
		{[]string{"ip", "netns", "exec", "srv", "taskset", "2", "h2load", "http://h/"}, "h2load"},
		{[]string{"sh", "-c", "wrk -t1 http://h/"}, "wrk"},
		{[]string{"bash", "-euc", "cd /tmp && exec ./k6 run x.js | tee log"}, "k6"},
		{[]string{"sh", "-c", "for c in 1 10; do wrk -c$c http://h/; done"}, "wrk"},
		{[]string{"sh", "-c", `echo "GET http://h/" | vegeta attack -rate 10 | vegeta report`}, "vegeta vegeta"},
		{[]string{"sudo", "-u", "bench", "sh", "-c", "siege -b http://h/; 'ab' -n1 http://h/"}, "siege ab"},
		{[]string{"sh", "-c", "sh -c \"sh -c 'fortio load http://h/'\""}, "fortio"},
		{[]string{"java", "-Xmx1g", "-jar", "/opt/jmeter/bin/ApacheJMeter.jar", "-n"}, "jmeter"},
		{[]string{"docker", "run", "--rm", "-i", "grafana/k6:1.0", "run", "-"}, "k6"},
		{[]string{"bombardier", "http://h/"}, "bombardier"},
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"A=b"}, ""},
		{[]string{"curl", "http://h/ab"}, ""},
		{[]string{"./load.sh", "wrk"}, ""},
		{[]string{"sh", "-c", "echo wrk"}, ""},
		{[]string{"sh", "-c", "echo 'x; wrk y'"}, ""},
		{[]string{"sh", "-c"}, ""},
		{[]string{"sh", "load.sh", "wrk"}, ""},
		{[]string{"env"}, ""},
		{slices.Repeat([]string{"nice"}, 10_000), ""},
	} {
		if got := strings.Join(toolsIn(c.argv, 0), " "); got != c.want {
			t.Errorf("%.80q: %q, want %q", c.argv, got, c.want)
		}
		if r := New(c.argv); (r == nil) != (c.want == "") {
			t.Errorf("%.80q: reader %v", c.argv, r)
		}
	}
}

func TestEachNameIsAKnownTool(t *testing.T) {
	for name, tool := range names {
		if known[tool] == nil || known[tool].name != tool {
			t.Errorf("%s is called %s, which nobody reads", name, tool)
		}
	}
}

// wrk2's latency is corrected always, oha's when asked for.
func TestLatencyFromDue(t *testing.T) {
	text := []byte("Running 1s test @ http://h/\nRequests/sec: 10\n  Success rate:\t100.00%\n  Requests/sec:\t10\n  Total:\t1.0100 10 sec\n")
	for _, c := range []struct {
		argv []string
		want model.ToolSummary
	}{
		{[]string{"wrk", "http://h/"}, model.ToolSummary{Tool: "wrk"}},
		{[]string{"wrk", "-R10", "http://h/"}, model.ToolSummary{Tool: "wrk2", Corrected: true}},
		{[]string{"oha", "-q", "10", "http://h/"}, model.ToolSummary{Tool: "oha", Seconds: new(10.1)}},
		{[]string{"sh", "-c", "oha -q 10 --latency-correction http://h/"}, model.ToolSummary{Tool: "oha", Seconds: new(10.1), Corrected: true}},
	} {
		r := New(c.argv)
		_, err := r.Write(text)
		check(t, err)
		c.want.RPS, c.want.Cut = new(10.0), true
		list, _ := r.Summaries()
		if d := cmp.Diff([]model.ToolSummary{c.want}, list); d != "" {
			t.Errorf("%q: %s", c.argv, d)
		}
	}
}
