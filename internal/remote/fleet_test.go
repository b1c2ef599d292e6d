package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// served answers as Prometheus does, by its engine, and refuses with status 422 what needs more readings at once.
func served(t *testing.T, most int, first http.HandlerFunc, metrics ...map[string]string) string {
	t.Helper()
	var store record.Memory
	for _, m := range metrics {
		var points []record.Point
		for i := range 40 {
			points = append(points, record.Point{Time: 1_000_000_000 + 15_000*int64(i), Value: float64(i)})
		}
		store.Add(labels.FromMap(m), points)
	}
	store.Sort()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: most, Timeout: time.Minute})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first != nil {
			first(w, r)
			if w.Header().Get("X-Done") != "" {
				return
			}
		}
		at, _ := strconv.ParseFloat(r.FormValue("time"), 64)
		q, err := engine.NewInstantQuery(r.Context(), &store, nil, r.FormValue("query"), time.UnixMilli(int64(at*1000)))
		if err != nil {
			t.Errorf("%s: %v", r.FormValue("query"), err)
			return
		}
		defer q.Close()
		res := q.Exec(r.Context())
		if res.Err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": "execution", "error": res.Err.Error()})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": res.Value.Type(), "result": res.Value}})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// fleetOf takes a whole fleet.
func fleetOf(t *testing.T, q Query) (map[string]Host, Asked) {
	t.Helper()
	var mu sync.Mutex
	got := map[string]Host{}
	asked, err := Fleet(context.Background(), q, signals, func(h Host, of int) {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := got[h.Name]; twice {
			t.Errorf("%s came twice", h.Name)
		}
		got[h.Name] = h
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, asked
}

// Each host of a fleet is what Fetch makes of it alone, also where the server answers for two at a time at most.
func TestFleetIsEachAlone(t *testing.T) {
	var metrics []map[string]string
	for i := range 23 {
		at := fmt.Sprintf("web%02d:9100", i)
		metrics = append(metrics, metric("node_boot_time_seconds", at), metric("node_nf_conntrack_entries", at), metric("node_cpu_seconds_total", at, "cpu", "0", "mode", "idle"))
	}
	metrics = append(metrics, metric("node_load1", "db:9100", "cluster", "other"), metric("node_nf_conntrack_entries", "db:9100", "cluster", "other"))
	const samplesOfTwo = 2 * 2 * 41
	for name, most := range map[string]int{"as many as it likes": 1_000_000, "two at a time": samplesOfTwo} {
		t.Run(name, func(t *testing.T) {
			q := Query{URL: served(t, most, nil, metrics...), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute, Match: []string{"cluster=c"}}
			got, asked := fleetOf(t, q)
			if len(got) != 23 || asked.Readings < 23*40 {
				t.Fatalf("%d hosts, %d readings, want 23 hosts: %v", len(got), asked.Readings, slices.Sorted(maps.Keys(got)))
			}
			for name, h := range got {
				if h.Err != nil {
					t.Errorf("%s: %v", name, h.Err)
					continue
				}
				alone := q
				alone.Match = []string{"host=" + name}
				run, err := Fetch(context.Background(), alone, signals)
				if err != nil {
					t.Fatal(err)
				}
				want, have := run.Meta(), h.Run.Meta()
				want.Plan.Remote, have.Plan.Remote = nil, nil
				if d := cmp.Diff(want, have); d != "" {
					t.Errorf("%s is another than alone: %s", name, d)
				}
			}
		})
	}
}

// An exporter of ours has several hosts behind one instance, and --match host=NAME means them.
func TestFleetOfOurExporters(t *testing.T) {
	var metrics []map[string]string
	for _, host := range []string{"web", "db"} {
		for _, name := range []string{hostInfo, "node_nf_conntrack_entries", "plimsoll_tcp_listen_queue"} {
			metrics = append(metrics, metric(name, "10.0.0.1:9109", "host", host, "machine", "m1"))
		}
		metrics = append(metrics, metric(signalState, "10.0.0.1:9109", "host", host, "signal", ours.Name, "state", "read"))
	}
	got, _ := fleetOf(t, Query{URL: served(t, 1_000_000, nil, metrics...), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute, Match: []string{"host=db"}})
	if len(got) != 1 || got["db"].Err != nil {
		t.Fatalf("got %+v, want db alone", got)
	}
	meta := got["db"].Run.Meta()
	if len(meta.Hosts) != 1 || meta.Hosts[0].Machine != "m1" || meta.Status["db"][ours.Name].State != model.Read {
		t.Errorf("hosts %+v, %s is %+v; want db on m1, read", meta.Hosts, ours.Name, meta.Status["db"][ours.Name])
	}
}

// A server that has no time is asked again, and not without end.
func TestBusyServer(t *testing.T) {
	var mu sync.Mutex
	times := map[string]int{}
	busy := func(most int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if times[r.FormValue("query")]++; times[r.FormValue("query")] <= most {
				w.Header().Set("Retry-After", "0")
				w.Header().Set("X-Done", "yes")
				http.Error(w, "too many", http.StatusTooManyRequests)
			}
		}
	}
	load, conntrack := metric("node_load1", "web:9100"), metric("node_nf_conntrack_entries", "web:9100")
	got, asked := fleetOf(t, Query{URL: served(t, 1_000_000, busy(tries-1), load, conntrack), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute})
	if got["web"].Err != nil || asked.Queries != 3*tries {
		t.Errorf("%+v with %d queries, want web with %d", got, asked.Queries, 3*tries)
	}
	clear(times)
	_, err := Fleet(context.Background(), Query{URL: served(t, 1_000_000, busy(tries), load, conntrack), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute}, signals, nil)
	if err == nil || !strings.Contains(err.Error(), "asked 5 times") {
		t.Errorf("error %v, want one that says how often it was asked", err)
	}
}

// What could not be taken of some hosts is said of them, and leaves the others.
func TestFleetOfWhichAPartFails(t *testing.T) {
	first := func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "web15:9100") {
			w.Header().Set("X-Done", "yes")
			http.Error(w, `{"status":"error","errorType":"internal","error":"a disk is broken"}`, http.StatusInternalServerError)
		}
	}
	var metrics []map[string]string
	for i := range 20 {
		at := fmt.Sprintf("web%02d:9100", i)
		metrics = append(metrics, metric("node_load1", at), metric("node_nf_conntrack_entries", at))
	}
	got, _ := fleetOf(t, Query{URL: served(t, 1_000_000, first, metrics...), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute})
	for name, h := range got {
		if broken := h.Err != nil; broken != (name >= "web10") || broken && !strings.Contains(h.Err.Error(), "a disk is broken") {
			t.Errorf("%s: %v", name, h.Err)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d hosts, want 20", len(got))
	}
}

// Whose series are asked for is said in each question.
func TestTenant(t *testing.T) {
	tenants := func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope-OrgID") != "team" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s is asked as %q, with %q", r.FormValue("query"), r.Header.Get("X-Scope-OrgID"), r.Header.Get("Authorization"))
		}
	}
	url := served(t, 1_000_000, tenants, metric("node_load1", "web:9100"), metric("node_nf_conntrack_entries", "web:9100"))
	got, _ := fleetOf(t, Query{URL: url, Token: "secret", Tenant: "team", At: time.Unix(1_000_585, 0), Window: 5 * time.Minute})
	if got["web"].Err != nil || len(got) != 1 {
		t.Errorf("got %+v, want web", got)
	}
}

func TestUnwilling(t *testing.T) {
	refused := errors.New("no")
	for _, c := range []struct {
		status           int
		errorType        string
		busy, lessPlease bool
	}{
		{422, "execution", false, true}, {503, "timeout", false, true}, {503, "unavailable", true, false}, {429, "", true, false}, {504, "", true, false}, {400, "bad_data", false, false},
	} {
		err := unwilling(&http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {"7"}}}, c.errorType, refused)
		var busy busyError
		if errors.As(err, &busy) != c.busy || errors.Is(err, errTooMuch) != c.lessPlease || !errors.Is(err, refused) || c.busy && busy.after != 7*time.Second {
			t.Errorf("%d %s: %v (%v)", c.status, c.errorType, err, busy.after)
		}
	}
	for try, want := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 20: longestPause} {
		if d := pauseBefore(try, -1); d < want/2 || d > want {
			t.Errorf("before try %d: %v, want %v or half of it", try, d, want)
		}
	}
	if d := pauseBefore(1, time.Hour); d != longestPause {
		t.Errorf("a server that asks for an hour gets %v", d)
	}
	if retryAfter("0") != 0 || retryAfter("") != -1 || retryAfter("-5") != -1 {
		t.Error("Retry-After is read wrongly")
	}
}

// A server that was silent to some is asked again; where nothing is answered any more, the rest is not asked for.
func TestFleetOfASilentServer(t *testing.T) {
	c := &client{patient: true, base: &url.URL{Scheme: "http", Host: "x"}, asked: new(asked), http: &http.Client{Transport: silent{}}}
	var busy busyError
	if _, err := c.once(t.Context(), "up", time.Unix(0, 0)); !errors.As(err, &busy) {
		t.Errorf("to one of a fleet: %v, want that it is asked again", err)
	}
	c.patient = false
	if _, err := c.once(t.Context(), "up", time.Unix(0, 0)); err == nil || errors.As(err, &busy) {
		t.Errorf("to one alone: %v, want that it is not asked again", err)
	}
	var metrics []map[string]string
	for i := range 40 * hostsAtOnce {
		metrics = append(metrics, metric("node_load1", fmt.Sprintf("web%04d:9100", i)))
	}
	first := func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.FormValue("query"), "count by") {
			w.Header().Set("X-Done", "yes")
			http.Error(w, `{"status":"error","errorType":"internal","error":"a disk is broken"}`, http.StatusInternalServerError)
		}
	}
	got, asked := fleetOf(t, Query{URL: served(t, 1_000_000, first, metrics...), At: time.Unix(1_000_585, 0), Window: 5 * time.Minute})
	why := map[string]int{}
	for _, h := range got {
		why[fmt.Sprint(h.Err != nil && strings.Contains(h.Err.Error(), "in vain"))]++
	}
	if len(got) != 40*hostsAtOnce || asked.Queries > 1+inVain+atOnce || why["true"] < (40-inVain-atOnce)*hostsAtOnce {
		t.Errorf("%d hosts, %d queries, in vain: %v", len(got), asked.Queries, why)
	}
}

// silent is a server that never answers.
type silent struct{}

func (silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, os.ErrDeadlineExceeded }
