package diagnose

import (
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

func TestAccepted(t *testing.T) {
	grown := `  series: ['limit_size{host="s"} 100x9', 'refused_total{host="s",cpu="0"} 7x9', 'refused_total{host="s",cpu="1"} 0+2x9']`
	still := `  series: ['limit_size{host="s"} 100x9', 'refused_total{host="s",cpu="0"} 7x9']`
	for name, c := range map[string]struct {
		accept, vector string
		want           model.Truth
	}{
		"one of two counters grew":             {"increase(refused_total[$window]) == 0", grown, model.False},
		"none grew":                            {"increase(refused_total[$window]) == 0", still, model.True},
		"read, and there is no series of it":   {"increase(refused_total[$window]) == 0", "  series: ['limit_size{host=\"s\"} 1x9']\n  read: [refused_total]", model.True},
		"not read":                             {"increase(refused_total[$window]) == 0", "  series: ['limit_size{host=\"s\"} 1x9']\n  missing: {refused_total: denied}", model.Unknown},
		"a level that is not there":            {"avg_over_time(used_size[$window]) < 1", "  series: ['limit_size{host=\"s\"} 1x9']\n  read: [used_size]", model.Unknown},
		"a level that is low enough":           {"avg_over_time(limit_size[$window]) < 101", still, model.True},
		"a level that is not":                  {"avg_over_time(limit_size[$window]) < 100", still, model.False},
		"another host's":                       {"avg_over_time(limit_size[$window]) < 101", `  series: ['limit_size{host="s"} 1x9', 'limit_size{host="b"} 500x9']`, model.True},
		"another form, with a result":          {"limit_size == 100 and limit_size > 5", still, model.True},
		"another form, without":                {"limit_size == 100 and limit_size > 500", still, model.False},
		"a window that this run does not have": {"increase(refused_total[$calm]) == 0", still, model.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ruleset.ParseAcceptance(c.accept, query.Terms{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := newRun(over(written(t, c.vector+"\n")), asItIs).accepted(a, map[string]string{"host": "s"})
			if err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestTypedChanges(t *testing.T) {
	rs := goodSet(t, "{sysctl: x.max, to: 2 * limit_size}", "[{sysctl: x.max, to: 2 * limit_size}, {backlog: '{{.Subject.host}}:80', to: 9}, {person: look}]")
	findings, err := Findings(over(written(t, "  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 100x9']\n  read: [refused_total]\n")), rs.Get("x.good"))
	if err != nil {
		t.Fatal(err)
	}
	got := findings[0].Fix[0]
	if got.Command != "sysctl -w x.max=200; listen on s:80 with a backlog of 9; look" {
		t.Error(got.Command)
	}
	for i, want := range []model.FixChange{
		{Kind: "sysctl", Name: "x.max", Value: "200"}, {Kind: "backlog", Name: "s:80", Value: "9"}, {Kind: "person", Name: "look"},
	} {
		c := got.Changes[i]
		if c.Kind != want.Kind || c.Name != want.Name || c.Value != want.Value || c.Host != "s" || c.Subject["host"] != "s" {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// A setting that is another host's than the subject's.
func TestWhoseSettingItIs(t *testing.T) {
	for name, c := range map[string]struct{ at, host, value, listen string }{
		"another host's":      {`label_replace(limit_size, "at", "far", "host", "s")`, "far", "9", ""},
		"one of its services": {`label_replace(label_replace(limit_size, "at", "far", "", ""), "listen", "[::]:80", "", "")`, "far", "9", "[::]:80"},
		"nobody's":            {`label_replace(limit_size > 500, "at", "far", "host", "s")`, "", "", ""},
		"of another subject":  {`label_replace(label_replace(limit_size, "at", "far", "", ""), "host", "b", "", "")`, "", "", ""},
		"one without a label": {"limit_size", "", "", ""},
	} {
		rs := goodSet(t, "{sysctl: x.max, to: 2 * limit_size}", "{nginx: x, to: 9, at: '"+c.at+"'}")
		findings, err := Findings(over(written(t, "  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 100x9']\n  read: [refused_total]\n")), rs.Get("x.good"))
		if err != nil {
			t.Fatal(err)
		}
		if got := findings[0].Fix[0].Changes[0]; got.Host != c.host || got.Value != c.value || got.ListensAt != c.listen || got.Subject["host"] != "s" {
			t.Errorf("%s: %+v; want %q on %q", name, got, c.value, c.host)
		}
	}
}
