package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

var (
	entries = &model.Signal{Name: "node_nf_conntrack_entries", Kind: model.Gauge}
	cpuTime = &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Labels: []string{"cpu", "mode"}}
	groups  = &model.Signal{Name: "namedprocess_namegroup_cpu_seconds_total", Kind: model.Counter, Labels: []string{"groupname"}}
	ours    = &model.Signal{Name: "plimsoll_tcp_listen_queue", Kind: model.Gauge}
	signals = []*model.Signal{entries, cpuTime, groups, ours}
)

// serve answers every query with these series, at readings 15 s apart.
func serve(t *testing.T, seen *[]string, metrics ...map[string]string) string {
	t.Helper()
	var list []map[string]any
	for _, m := range metrics {
		var values [][2]any
		for i := range 40 {
			values = append(values, [2]any{1_000_000 + 15*i, fmt.Sprint(i)})
		}
		list = append(list, map[string]any{"metric": m, "values": values})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		*seen = append(*seen, query)
		list := slices.DeleteFunc(slices.Clone(list), func(s map[string]any) bool {
			return !strings.Contains(query, s["metric"].(map[string]string)["__name__"])
		})
		json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": list}})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func metric(name, instance string, rest ...string) map[string]string {
	m := map[string]string{"__name__": name, "instance": instance, "job": "node", "cluster": "c"}
	for i := 0; i+1 < len(rest); i += 2 {
		m[rest[i]] = rest[i+1]
	}
	return m
}

func TestFetchGivesOurLabels(t *testing.T) {
	var seen []string
	url := serve(t, &seen,
		metric("node_nf_conntrack_entries", "web1:9100"),
		metric("node_cpu_seconds_total", "web1:9100", "cpu", "0", "mode", "idle"),
		metric("node_cpu_seconds_total", "web1:9100", "cpu", "1", "mode", "idle"),
		metric("node_nf_conntrack_entries", "10.0.0.9:9100", "host", "db"))
	run, err := Fetch(context.Background(), Query{URL: url, At: time.Unix(1_000_585, 0), Window: 5 * time.Minute, Match: []string{"host=web1", "env!=test"}}, signals)
	if err != nil {
		t.Fatal(err)
	}
	meta := run.Meta()
	want := []model.Host{{Name: "db", Spec: "10.0.0.9:9100"}, {Name: "web1", Spec: "web1:9100", CPUs: 2}}
	if d := cmp.Diff(want, meta.Hosts); d != "" {
		t.Error(d)
	}
	if meta.Plan.Interval != 15_000 {
		t.Errorf("interval %d, want 15000", meta.Plan.Interval)
	}
	for signal, want := range map[string]string{
		"node_nf_conntrack_entries": "read ", "plimsoll_tcp_listen_queue": "absent what it needs only Plimsoll itself reads",
		"namedprocess_namegroup_cpu_seconds_total": "absent process-exporter sees only",
	} {
		st := meta.Status["web1"][signal]
		if got := string(st.State) + " " + st.Why; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", signal, got, want)
		}
	}
	if q := `{__name__=~"node_nf_conntrack_entries|node_cpu_seconds_total",instance=~"(web1)(:[0-9]+)?",env!="test"}[600001ms]`; seen[0] != q {
		t.Errorf("asked %s, want %s", seen[0], q)
	}
}

func TestHosts(t *testing.T) {
	for name, c := range map[string]struct {
		metrics []map[string]string
		want    string
		note    bool
	}{
		"two exporters of one host": {want: "web1",
			metrics: []map[string]string{metric("node_nf_conntrack_entries", "web1:9100"), metric("node_cpu_seconds_total", "web1:9256")}},
		"two hosts behind one address": {want: "web1:9100 web1:9101",
			metrics: []map[string]string{metric("node_nf_conntrack_entries", "web1:9100"), metric("node_nf_conntrack_entries", "web1:9101")}},
		"one exporter scraped by two jobs": {want: "web1", note: true,
			metrics: []map[string]string{metric("node_nf_conntrack_entries", "web1:9100"), metric("node_nf_conntrack_entries", "web1:9100", "job", "again")}},
		"an address of IPv6": {want: "fe80::1", metrics: []map[string]string{metric("node_nf_conntrack_entries", "[fe80::1]:9100")}},
		"no instance":        {want: "unnamed", metrics: []map[string]string{metric("node_nf_conntrack_entries", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			run, err := Fetch(context.Background(), Query{URL: serve(t, &seen, c.metrics...), At: time.Unix(1_000_585, 0), Window: time.Minute}, signals)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range run.Meta().Hosts {
				got = append(got, h.Name)
			}
			if s := strings.Join(got, " "); s != c.want || c.note != (len(run.Meta().Notes) > 0) {
				t.Errorf("hosts %q, want %q; notes %q", s, c.want, run.Meta().Notes)
			}
		})
	}
}

// What only Plimsoll reads is taken where an exporter of ours is scraped, and "none of it" is a
// fact there; another exporter's series under our names are not taken.
func TestFetchTakesOurExporters(t *testing.T) {
	var seen []string
	of := func(name string, rest ...string) map[string]string {
		return metric(name, "web1:9109", append(rest, "host", "web")...)
	}
	url := serve(t, &seen, of("node_nf_conntrack_entries"), of("plimsoll_tcp_listen_queue"),
		of("namedprocess_namegroup_cpu_seconds_total", "groupname", "nginx"),
		metric("namedprocess_namegroup_cpu_seconds_total", "web1:9256", "groupname", "nginx"),
		of(hostInfo, "machine", "boot-1", "kernel", "6.1.0"),
		of(signalState, "signal", "plimsoll_tcp_listen_queue", "state", "read"),
		of(signalState, "signal", "node_cpu_seconds_total", "state", "read"),
		of(signalState, "signal", "namedprocess_namegroup_cpu_seconds_total", "state", "denied"))
	run, err := Fetch(context.Background(), Query{URL: url, At: time.Unix(1_000_585, 0), Window: 5 * time.Minute}, signals)
	if err != nil {
		t.Fatal(err)
	}
	if hosts := run.Meta().Hosts; len(hosts) != 1 || hosts[0].Name != "web" || hosts[0].Machine != "boot-1" || hosts[0].Kernel != "6.1.0" {
		t.Errorf("hosts %+v, want web alone, with its machine", hosts)
	}
	for signal, want := range map[string]model.State{
		"plimsoll_tcp_listen_queue": model.Read, "node_cpu_seconds_total": model.Read, "namedprocess_namegroup_cpu_seconds_total": model.Denied,
	} {
		if st := run.Meta().Status["web"][signal]; st.State != want {
			t.Errorf("%s is %+v, want %s", signal, st, want)
		}
	}
}

// What a store behind the server holds back may be anything: it is not known, and never absent.
func TestPartialAnswers(t *testing.T) {
	const series = `{"metric":{"__name__":"node_nf_conntrack_entries","instance":"web1:9100"},"values":[[1000500,"1"],[1000515,"2"],[1000530,"3"]]}`
	for name, c := range map[string]struct{ field, why string }{
		"Thanos":          {`"warnings":["store 10.0.0.7:10901: no such host","second"]`, "store 10.0.0.7:10901: no such host; second"},
		"VictoriaMetrics": {`"isPartial":true`, "some of its storage nodes did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, `{"status":"success",%s,"data":{"resultType":"matrix","result":[%s]}}`, c.field, series)
			}))
			defer srv.Close()
			run, err := Fetch(context.Background(), Query{URL: srv.URL, At: time.Unix(1_000_545, 0), Window: time.Minute}, signals)
			if err != nil {
				t.Fatal(err)
			}
			meta := run.Meta()
			for _, signal := range []string{"node_cpu_seconds_total", "node_nf_conntrack_entries"} {
				if st := meta.Status["web1"][signal]; st.State != model.Failed || !strings.Contains(st.Why, c.why) {
					t.Errorf("%s is %+v, want failed, with %q", signal, st, c.why)
				}
			}
			if !slices.ContainsFunc(meta.Notes, func(note string) bool { return strings.Contains(note, c.why) }) {
				t.Errorf("notes %q, want one with %q", meta.Notes, c.why)
			}
		})
	}
}

// A reading that is older than the windows says nothing about them.
func TestStaleIsAbsent(t *testing.T) {
	var seen []string
	url := serve(t, &seen, metric("node_nf_conntrack_entries", "web1:9100"))
	run, err := Fetch(context.Background(), Query{URL: url, At: time.Unix(1_000_800, 0), Window: time.Minute}, signals)
	if err != nil {
		t.Fatal(err)
	}
	if st := run.Meta().Status["web1"]["node_nf_conntrack_entries"]; st.State != model.Absent {
		t.Errorf("status %+v, want absent", st)
	}
}

func FuzzReply(f *testing.F) {
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","instance":"h:1"},"values":[[1.5,"2"],[2,"NaN"]]}]}}`))
	f.Add(200, []byte(`{"status":"success","isPartial":true,"warnings":["a store is silent"],"data":{"result":[]}}`))
	f.Add(400, []byte(`{"status":"error","error":"parse error"}`))
	f.Add(200, []byte(`{"status":"success","data":{"result":[{"values":[[1e300,"x"]]}]}}`))
	f.Fuzz(func(t *testing.T, status int, raw []byte) {
		got, err := parseReply(&http.Response{StatusCode: status}, bytes.NewReader(raw), &room{100, 1000})
		if err != nil {
			return
		}
		f := relabelled(got.series, signals)
		f.memory()
		f.hosts(got.series)
		f.status(signals, 0, &taken{states: got.series})
		f.interval()
	})
}
