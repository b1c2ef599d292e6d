package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/rogpeppe/go-internal/testscript"
)

// scraped is a series as /api/v1/query tells it, and as bench/prometheus.sh
// leaves it.
type scraped struct {
	Metric map[string]string    `json:"metric"`
	Values [][2]json.RawMessage `json:"values"`
}

func readScraped(path string) (all []scraped, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return all, json.NewDecoder(z).Decode(&all)
}

// prometheus (prometheus CASE) serves what a Prometheus scraped during a case of
// the lab, as that answered for it; $PROM leads to it, $AT is the window's end.
func prometheus(ts *testscript.TestScript, _ bool, args []string) {
	all, err := readScraped(ts.Getenv("FIXTURES") + "/" + args[0] + ".json.gz")
	ts.Check(err)
	last := 0.0
	for _, s := range all {
		for _, v := range s.Values {
			t, err := strconv.ParseFloat(string(v[0]), 64)
			ts.Check(err)
			last = max(last, t)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer wrong" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		list, err := selected(all, r.FormValue("query"), r.FormValue("time"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]string{"status": "error", "error": err.Error()})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": list}})
	}))
	ts.Defer(srv.Close)
	ts.Setenv("PROM", srv.URL)
	ts.Setenv("AT", strconv.FormatFloat(last, 'f', 3, 64))
}

// selected answers a range selector, and the question for hosts, which asks for the instances of one;
// of another expression there is nothing.
func selected(all []scraped, query, at string) ([]scraped, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	out := []scraped{}
	var ms *parser.MatrixSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if m, ok := n.(*parser.MatrixSelector); ok {
			ms = m
		}
		return nil
	})
	if ms == nil {
		return out, nil
	}
	_, counts := expr.(*parser.AggregateExpr)
	end, err := strconv.ParseFloat(at, 64)
	if err != nil {
		return nil, errors.New("bad time")
	}
	start := end - float64(ms.Range)/float64(time.Second)
	for _, s := range all {
		fits := true
		for _, m := range ms.VectorSelector.(*parser.VectorSelector).LabelMatchers {
			fits = fits && m.Matches(s.Metric[m.Name])
		}
		got := scraped{Metric: s.Metric}
		if counts {
			got.Metric = map[string]string{"instance": s.Metric["instance"]}
		}
		for _, v := range s.Values {
			if t, err := strconv.ParseFloat(string(v[0]), 64); err == nil && t > start && t <= end {
				got.Values = append(got.Values, v)
			}
		}
		if fits && len(got.Values) > 0 {
			out = append(out, got)
		}
	}
	return out, nil
}
