package load

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"plimsoll/internal/model"
)

func TestSamples(t *testing.T) {
	r := Record{
		Phases: []PhaseRecord{{
			Phase: "hold", Requests: 3, Outcomes: map[string]int64{"2xx": 2, "read:eof": 1}, Waits: map[string]float64{"2xx": 0.25},
			Parts: map[string]float64{"first_byte": 0.25}, ConnectCalls: Durations{Count: 3, Seconds: 0.125}, ReplyUnread: Durations{Count: 1, Seconds: 0.5},
			Response: model.Quantiles{Count: 2, P50: 1000, P90: 2000, P95: 2500, P99: 3000, P999: 4000, Max: 5000},
		}},
		Connections: Connections{Connecting: 1, Open: 5, Idle: 2},
		Threads:     []ThreadCPU{{Thread: "0", User: 0.5, System: 1.5}},
	}
	r.TLS = &TLSRecord{
		Handshakes: []model.TLSHandshakes{{Phase: "hold", Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", Resumed: true, Count: 2}},
		Resumed:    model.Quantiles{Count: 2, P50: 100, P90: 100, P95: 100, P99: 100, P999: 100, Max: 200}, Crypto: Durations{Count: 4, Seconds: 0.5},
	}
	r.Phases[0].Attempts, r.Connections.Failed, r.Final = 4, 6, true
	r.Phases[0].Received, r.Phases[0].Sent = 40, 20
	want := []string{
		"plimsoll_load_connect_attempts_total{hold} 4",
		"plimsoll_load_connect_call_seconds_count{hold} 3",
		"plimsoll_load_connect_call_seconds_sum{hold} 0.125",
		"plimsoll_load_connections_missing{failed} 6",
		"plimsoll_load_connections_missing{untried} 0",
		"plimsoll_load_connections{closed} 0",
		"plimsoll_load_connections{connecting} 1",
		"plimsoll_load_connections{idle} 2",
		"plimsoll_load_connections{open} 5",
		"plimsoll_load_cpu_seconds_total{0,system} 1.5",
		"plimsoll_load_cpu_seconds_total{0,user} 0.5",
		"plimsoll_load_latency_seconds{hold,response,0.5} 0.001",
		"plimsoll_load_latency_seconds{hold,response,0.95} 0.0025",
		"plimsoll_load_latency_seconds{hold,response,0.999} 0.004",
		"plimsoll_load_latency_seconds{hold,response,0.99} 0.003",
		"plimsoll_load_latency_seconds{hold,response,0.9} 0.002",
		"plimsoll_load_latency_seconds{hold,response,1} 0.005",
		"plimsoll_load_outcomes_total{hold,2xx} 2",
		"plimsoll_load_outcomes_total{hold,read:eof} 1",
		"plimsoll_load_received_bytes_total{hold} 40",
		"plimsoll_load_reply_unread_seconds_count{hold} 1",
		"plimsoll_load_reply_unread_seconds_sum{hold} 0.5",
		"plimsoll_load_request_seconds_total{hold,first_byte} 0.25",
		"plimsoll_load_requests_total{hold} 3",
		"plimsoll_load_sent_bytes_total{hold} 20",
		"plimsoll_load_tls_crypto_seconds_count{} 4",
		"plimsoll_load_tls_crypto_seconds_sum{} 0.5",
		"plimsoll_load_tls_handshake_seconds{true,0.5} 0.0001",
		"plimsoll_load_tls_handshake_seconds{true,0.95} 0.0001",
		"plimsoll_load_tls_handshake_seconds{true,0.999} 0.0001",
		"plimsoll_load_tls_handshake_seconds{true,0.99} 0.0001",
		"plimsoll_load_tls_handshake_seconds{true,0.9} 0.0001",
		"plimsoll_load_tls_handshake_seconds{true,1} 0.0002",
		"plimsoll_load_tls_handshakes_total{hold,1.3,TLS_AES_128_GCM_SHA256,true} 2",
		"plimsoll_load_wait_seconds_total{hold,2xx} 0.25",
	}
	var got []string
	r.Samples(func(s *model.Signal, v float64, labels ...string) {
		if len(labels) != len(s.Labels) {
			t.Errorf("%s: %d label values for %v", s.Name, len(labels), s.Labels)
		}
		if !slices.Contains(Signals, s) {
			t.Errorf("%s is not in Signals", s.Name)
		}
		got = append(got, s.Name+"{"+strings.Join(labels, ",")+"} "+strconv.FormatFloat(v, 'g', -1, 64))
	})
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSignalsAreDescribed(t *testing.T) {
	for _, s := range Signals {
		if s.Help == "" || s.Source == "" || s.ByHand == "" || s.Unit == "" || s.Kind == "" {
			t.Errorf("%s: a description is missing", s.Name)
		}
	}
}

// Two workers of one host have each series once: counts are added up, the worst of what was late is told, and threads are told apart.
func TestSamplesOfOneHost(t *testing.T) {
	sum := NewSum(model.LoadPlan{}, []string{"a", "b", "c"})
	one := func(requests int64, late float64) Record {
		return Record{Time: 5, Phase: model.Hold, Threads: []ThreadCPU{{Thread: "0", User: late}, {Thread: "rest", User: 1}},
			Phases: []PhaseRecord{{Phase: model.Hold, Requests: requests, SendDelay: model.Quantiles{Count: 1, Max: late * 1e6}}}}
	}
	for k, r := range []Record{one(3, 0.5), one(4, 0.25), one(20, 2)} {
		if err := sum.Take(k, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	told := func() map[string]float64 {
		r, err := sum.Record(Record{Phase: model.Hold}, []bool{true, true, true})
		if err != nil {
			t.Fatal(err)
		}
		r.Workers[0].Host, r.Workers[1].Host, r.Workers[2].Host = "x", "x", "y"
		got := map[string]float64{}
		r.SamplesBy("x", func(host string, s *model.Signal, v float64, labels ...string) {
			key := host + " " + s.Name + "{" + strings.Join(labels, ",") + "}"
			if _, twice := got[key]; twice {
				t.Errorf("%s is told twice", key)
			}
			got[key] = v
		})
		return got
	}
	got := told()
	for key, want := range map[string]float64{
		"x plimsoll_load_requests_total{hold}": 7, "y plimsoll_load_requests_total{hold}": 20, "x plimsoll_load_send_delay_seconds{hold,1}": 0.5,
		"x plimsoll_load_cpu_seconds_total{a/0,user}": 0.5, "x plimsoll_load_cpu_seconds_total{b/0,user}": 0.25, "x plimsoll_load_cpu_seconds_total{rest,user}": 2,
		"y plimsoll_load_cpu_seconds_total{0,user}": 2,
	} {
		if v, some := got[key]; !some || v != want {
			t.Errorf("%s: %v, want %v", key, v, want)
		}
	}
	if err := sum.Take(1, one(5, 0.25), 0); err != nil {
		t.Fatal(err)
	}
	got = told()
	if _, some := got["y plimsoll_load_requests_total{hold}"]; some || got["x plimsoll_load_requests_total{hold}"] != 8 {
		t.Errorf("%v, want what is new of x alone, 8 requests", got)
	}
}

// What io_uring does not measure is not there, and that it is not is known.
func TestWhatIsNotMeasuredIsNoZero(t *testing.T) {
	r := Record{Phases: []PhaseRecord{{Phase: model.Hold, Requests: 9, Attempts: 9, Outcomes: map[string]int64{"2xx": 9}}}}
	r.Samples(func(s *model.Signal, v float64, _ ...string) {
		if strings.Contains(s.Name, "connect_call") || strings.Contains(s.Name, "unread") {
			t.Errorf("%s is %v, and nothing was measured", s.Name, v)
		}
	})
	for engine, want := range map[string]model.State{"": model.Read, stay: model.Read, stayByRing: model.Read, model.IOURing: model.Absent} {
		plan := goesBy(engine, model.LoadPlan{})
		if of := StatusOf(&plan, connectCallSum); of.State != want || (of.Why == "") != (want == model.Read) {
			t.Errorf("engine %q: %+v", engine, of)
		}
		if of := StatusOf(&plan, requestsTotal); of.State != model.Read {
			t.Errorf("engine %q: requests %+v", engine, of)
		}
	}
}
