package page

import (
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
)

// TestLive: what is shown of a run that lasts is drawn as in its report, and by what is in it.
func TestLive(t *testing.T) {
	rec := opened(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t))
	l, err := rec.Load()
	check(t, err)
	charts, err := Live(rec, l.Course)
	check(t, err)
	var all strings.Builder
	for _, c := range charts {
		all.WriteString(string(c))
	}
	wellFormed(t, "<h1>live</h1>"+all.String())
	said := words(parsed(t, all.String()))
	for _, want := range []string{"Requests, by what became of them", "Latency of replies", "CPU in use", "client, server"} {
		if !strings.Contains(said, want) {
			t.Errorf("the charts lack %q:\n%s", want, said)
		}
	}
	if strings.Contains(all.String(), "<script") {
		t.Error("a chart brings data for a script that is not there")
	}
}

// TestHostsOfOneMachineShareALine, others do not.
func TestHostsOfOneMachineShareALine(t *testing.T) {
	a := []svg.Point{{Time: 1, Value: 2}, {Time: 2, Value: 3}}
	got := asOne([]course{{"a", a}, {"b", []svg.Point{{Time: 1, Value: 2}}}, {"c", a}})
	if len(got) != 2 || got[0].name != "a, c" || got[1].name != "b" {
		t.Errorf("%+v", got)
	}
}

// TestWay: the place that binds is marked by the verdict so far.
func TestWay(t *testing.T) {
	dir := made{seconds: 12, hosts: []string{"client", "server"}}.write(t)
	r, _ := read(t, dir)
	rec := opened(t, dir)
	way, err := Way(rec, r.Verdict)
	check(t, err)
	drawn, err := DrawWay(way)
	check(t, err)
	wellFormed(t, "<h1>live</h1>"+string(drawn))
	if n := strings.Count(string(drawn), `<tr class="binds">`); n != 2 {
		t.Errorf("%d places bind, and two tables are full:\n%s", n, drawn)
	}
	way, err = Way(rec, model.Verdict{})
	check(t, err)
	before, err := DrawWay(way)
	check(t, err)
	if strings.Contains(string(before), "binds") {
		t.Errorf("without a verdict something binds:\n%s", before)
	}
}
