package page

import (
	"encoding/json"
	"fmt"
)

// What Grafana is told: the version of its format, and how wide and how high panels are, in its grid of 24 columns.
const (
	grafanaSchema           = 39
	gridWidth               = 24
	panelWidth, panelHeight = 8, 8
	tooltipsOfAllPanels     = 1
	askHostsWhenTimeChanges = 2
	sortByName              = 1
)

type object = map[string]any

// prometheus is the source that who opens the dashboard chooses.
var prometheus = object{"type": "prometheus", "uid": "${datasource}"}

// Grafana is a dashboard as Grafana imports it: the charts that a report has of a host, drawn of series that a
// Prometheus scraped from an exporter of ours, or was given of a run.
func Grafana() ([]byte, error) {
	panels := []any{}
	y := 0
	row := func(title string, list []view) {
		panels = append(panels, object{"type": "row", "id": len(panels) + 1, "title": title, "collapsed": false, "panels": []any{}, "gridPos": object{"h": 1, "w": gridWidth, "x": 0, "y": y}})
		y++
		for i, v := range list {
			x := i % (gridWidth / panelWidth) * panelWidth
			panels = append(panels, panel(len(panels)+1, v, x, y+i/(gridWidth/panelWidth)*panelHeight))
		}
		y += (len(list) + gridWidth/panelWidth - 1) / (gridWidth / panelWidth) * panelHeight
	}
	panels = append(panels, verdicts(len(panels)+1, y))
	y += verdictHeight
	row("Host $host", views())
	row("Load, of runs that were imported", loadViews())
	return json.MarshalIndent(object{
		"title": "Plimsoll", "uid": "plimsoll", "tags": []string{"plimsoll"}, "schemaVersion": grafanaSchema, "version": 1, "editable": true,
		"description":  "Series of plimsoll watch --listen. What holds a service back is said by plimsoll diagnose --prometheus.",
		"graphTooltip": tooltipsOfAllPanels, "refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"templating": object{"list": []any{
			object{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
			object{"name": "host", "label": "host", "type": "query", "datasource": prometheus, "query": "label_values(node_procs_running, host)",
				"refresh": askHostsWhenTimeChanges, "sort": sortByName},
		}},
		"annotations": object{"list": []any{object{"name": "alerts of $host", "datasource": prometheus, "enable": true, "hide": false, "iconColor": "red",
			"expr": alerts, "step": "10s", "titleFormat": "{{alertname}}", "textFormat": "{{plimsoll_rule}}", "useValueForTime": false}}}, "panels": panels,
	}, "", "  ")
}

// alerts are those of plimsoll rules export --prometheus that ring for the host; a condition is nobody's to know.
const alerts = `ALERTS{host="$host",alertstate="firing",plimsoll_rule!="",plimsoll_kind!="condition"}`

// verdictHeight is that of the panel of causes.
const verdictHeight = 6

// verdicts is the panel of what was a cause, from when to when: a bar for each rule.
func verdicts(id, y int) object {
	return object{"type": "state-timeline", "id": id, "title": "What held it back", "datasource": prometheus, "gridPos": object{"h": verdictHeight, "w": gridWidth, "x": 0, "y": y},
		"description": "Alerts of plimsoll rules export --prometheus that rang. Of several at once the Alertmanager rings for those that no other explains.",
		"targets": []any{object{"refId": "A", "datasource": prometheus, "expr": "max by (plimsoll_rule) (" + alerts + ")", "legendFormat": "{{plimsoll_rule}}",
			"range": true, "editorMode": "code"}},
		"fieldConfig": object{"defaults": object{"color": object{"mode": "fixed", "fixedColor": "red"}, "noValue": "none",
			"mappings": []any{object{"type": "value", "options": object{"1": object{"text": "rings", "index": 0}}}}}, "overrides": []any{}},
		"options": object{"showValue": "never", "rowHeight": 0.8, "mergeValues": true, "tooltip": object{"mode": "single", "sort": "none"},
			"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": false, "calcs": []string{}}}}
}

// loadViews are of what only a load of our own tells.
func loadViews() []view {
	return []view{
		{plot: plot{title: "Requests, by what became of them", unit: aSecond}, lines: top("plimsoll_load_outcomes_total", rate, "outcome")},
		{plot: plot{title: "Latency of replies", unit: seconds}, lines: top("plimsoll_load_latency_seconds", level, "quantile", "kind", "response")},
		{plot: plot{title: "Open connections", unit: numberOf("connections")}, lines: []source{{name: "open", signal: "plimsoll_load_connections", match: []string{"state", "open"}}}},
	}
}

// panel is a view as Grafana draws it. A gap is a gap, and limits are dashed and red.
func panel(id int, v view, x, y int) object {
	targets := []any{}
	add := func(expr, legend string) {
		targets = append(targets, object{"refId": string(rune('A' + len(targets))), "datasource": prometheus, "expr": expr, "legendFormat": legend, "range": true, "editorMode": "code"})
	}
	for _, q := range v.lines {
		legend := q.name
		if q.by != "" {
			legend = "{{" + q.by + "}}"
		}
		add(q.promQL(), legend)
	}
	if v.expr != "" {
		add(v.expr, "{{mode}}")
	}
	overrides := []any{}
	if expr, name := v.limitQL(); expr != "" {
		add(expr, name)
		overrides = append(overrides, object{"matcher": object{"id": "byName", "options": name}, "properties": []any{
			object{"id": "color", "value": object{"mode": "fixed", "fixedColor": "red"}},
			object{"id": "custom.lineStyle", "value": object{"fill": "dash", "dash": []int{6, 4}}},
			object{"id": "custom.stacking", "value": object{"mode": "none"}},
		}})
	}
	custom := object{"drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false,
		"stacking": object{"mode": "none", "group": "A"}}
	if v.stacked {
		custom["fillOpacity"], custom["stacking"] = 60, object{"mode": "normal", "group": "A"}
	}
	defaults := object{"unit": v.unit.grafana, "min": 0, "custom": custom}
	if v.top > 0 {
		defaults["max"] = v.top
	}
	return object{"type": "timeseries", "id": id, "title": v.title, "datasource": prometheus, "targets": targets,
		"gridPos":     object{"h": panelHeight, "w": panelWidth, "x": x, "y": y},
		"fieldConfig": object{"defaults": defaults, "overrides": overrides},
		"options": object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": object{"mode": "multi", "sort": "desc"}}}
}

// promQL asks for what the query reads of $host; of many lines, for those that are the highest over all that is shown.
func (q source) promQL() string {
	if q.by == "" {
		return q.sum(false)
	}
	return fmt.Sprintf("(%s) and topk(%d, %s)", q.sum(false), mostLines, q.sum(true))
}

// sum is what the query reads at each moment, or over all that is shown.
func (q source) sum(whole bool) string {
	if q.per != "" {
		per := q
		per.signal, per.per = q.per, ""
		q.per = ""
		return q.sum(whole) + " / (" + per.sum(whole) + " > 0)"
	}
	series := q.signal + `{host="$host"`
	for i := 0; i < len(q.match); i += 2 {
		series += fmt.Sprintf(",%s=%q", q.match[i], q.match[i+1])
	}
	series += "}"
	switch {
	case q.form == rate && whole:
		series = "rate(" + series + "[$__range] @ end())"
	case q.form == rate:
		series = "rate(" + series + "[$__rate_interval])"
	case whole:
		series = "max_over_time(" + series + "[$__range] @ end())"
	}
	if q.by != "" {
		return "sum by (" + q.by + ") (" + series + ")"
	}
	return "sum(" + series + ")"
}

// limitQL asks for what a view's lines are held against, "" where there is nothing.
func (v view) limitQL() (expr, name string) {
	switch {
	case v.cpus:
		return `count(node_cpu_seconds_total{host="$host",mode="idle"})`, "CPUs"
	case v.limit != nil:
		return "min(" + v.limit.signal + `{host="$host"})`, v.limit.name
	}
	return "", ""
}
