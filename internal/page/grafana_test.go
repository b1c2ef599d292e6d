package page

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestGrafanaTakesTheDashboard: it is what Grafana's own types say a dashboard is, with no field that they do not have.
func TestGrafanaTakesTheDashboard(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	raw, err := Grafana()
	check(t, err)
	var d dashboard.Dashboard
	for _, err := range []error{d.UnmarshalJSONStrict(raw), d.Validate()} {
		var list cog.BuildErrors // what is right gives an empty list of them, which is no nil
		if err != nil && !(errors.As(err, &list) && len(list) == 0) {
			t.Error(err)
		}
	}
	if d.SchemaVersion != grafanaSchema || d.Templating.List == nil || len(d.Panels) < len(views()) {
		t.Errorf("read as schema %d with %d panels", d.SchemaVersion, len(d.Panels))
	}
}

// panels are the dashboard's, but for rows.
func panels(t *testing.T) (list []grafanaPanel) {
	t.Helper()
	raw, err := Grafana()
	check(t, err)
	var d struct{ Panels []grafanaPanel }
	check(t, json.Unmarshal(raw, &d))
	for _, p := range d.Panels {
		if p.Type != "row" {
			list = append(list, p)
		}
	}
	return list
}

type grafanaPanel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

// TestPanelsAskForTheReportsSeries: each panel asks, in PromQL, for the signals of its view, of one host.
func TestPanelsAskForTheReportsSeries(t *testing.T) {
	list := append(views(), loadViews()...)
	found := panels(t)
	if first := found[0]; first.Type != "state-timeline" || !strings.Contains(first.Targets[0].Expr, "ALERTS{") {
		t.Errorf("the first panel is %+v, want what held the host back, in time", first)
	}
	found = found[1:]
	if len(found) != len(list) {
		t.Fatalf("%d panels of %d views", len(found), len(list))
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$host", "a")
	for i, p := range found {
		asked := map[string]bool{}
		for _, target := range p.Targets {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(target.Expr))
			if err != nil {
				t.Errorf("%s: %s: %v", p.Title, target.Expr, err)
				continue
			}
			for _, matchers := range parser.ExtractSelectors(expr) {
				ofHost := false
				for _, m := range matchers {
					ofHost = ofHost || m.Name == "host" && m.Type == labels.MatchEqual && m.Value == "a"
					if m.Name == labels.MetricName {
						asked[m.Value] = true
					}
				}
				if !ofHost {
					t.Errorf("%s asks for all hosts: %s", p.Title, target.Expr)
				}
			}
		}
		for _, l := range list[i].lines {
			if p.Title != list[i].title || !asked[l.signal] || l.per != "" && !asked[l.per] {
				t.Errorf("panel %q of view %q asks for %v, not for %s", p.Title, list[i].title, asked, l.signal)
			}
		}
		if list[i].signal != "" && !asked[list[i].signal] {
			t.Errorf("%s does not ask for %s", p.Title, list[i].signal)
		}
	}
}

// TestPanelsLieBesideEachOther: none covers another, or sticks out.
func TestPanelsLieBesideEachOther(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range panels(t) {
		if ids[p.ID] {
			t.Errorf("two panels are number %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= gridWidth {
					t.Fatalf("%s covers %q, or sticks out at %d, %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
