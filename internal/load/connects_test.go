package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

// A connection is tried for when its time has come, not before: for ten of them, 5 ms apart, that takes 43 ms at least.
// The server answers nobody before all stand, so that none can do another's work.
func TestConnectsArePaced(t *testing.T) {
	const connections, least = 10, 9*5 - 2
	for why, change := range map[string]func(*model.LoadPlan){
		"closed loop":               func(*model.LoadPlan) {},
		"open loop":                 func(p *model.LoadPlan) { p.Rate = 5000 },
		"open loop, dense":          func(p *model.LoadPlan) { p.Rate = 50_000 },
		"two threads":               func(p *model.LoadPlan) { p.Threads = 2 },
		"a new one each":            func(p *model.LoadPlan) { p.KeepAlive = false },
		"a new one each, open loop": func(p *model.LoadPlan) { p.KeepAlive, p.Rate = false, 200 },
	} {
		t.Run(why, func(t *testing.T) {
			var s *server
			all := make(chan struct{})
			s = serve(t, func(c *net.TCPConn, n int64) bool {
				if n == connections {
					close(all)
				}
				<-all
				return say(okReply)(c, n)
			})
			plan := model.LoadPlan{URL: s.url, Connections: connections, Threads: 1, Requests: connections, KeepAlive: true, ConnectRate: 200, TimeoutMS: 600_000}
			change(&plan)
			if plan.Threads == 2 {
				plan.ConnectRate = 400 // each has half of it, and half of the connections
			}
			got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
			if got.Outcomes["2xx"] != connections || got.Attempts != connections {
				t.Errorf("%v with %d attempts, want %d of each", got.Outcomes, got.Attempts, connections)
			}
			want := int64(least)
			if plan.Threads == 2 {
				want = 4*5 - 2
			}
			if took := got.End - got.Start; took < want {
				t.Errorf("the connections were open within %d ms, want %d at least", took, want)
			}
			if lag := got.Lag; lag.Count > 0 && lag.P50 >= least*1000 {
				t.Errorf("waiting for leave to connect counts as the generator's lag: %+v", lag)
			}
		})
	}
}

// What an open loop's request waits for a connection that may not be opened yet is waiting for a connection.
func TestWaitingToConnectIsInTheLatency(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 2, Requests: 2, Rate: 1e6, KeepAlive: true, ConnectRate: 10})
	th := s.thread
	s.until("the second request waits to connect", func() bool { return th.waiting.n == 1 && th.head == 1 && th.due == 2 })
	th.shared.base = th.shared.base.Add(-200_000_000) // 0.2 s later
	s.until("both are on their way", func() bool { return th.head == 2 })
	if got := th.tally.phases[hold].parts[queued]; got < 50_000_000 {
		t.Errorf("%d ns of waiting for a connection, want the 98 ms at least until the second might be opened", got)
	}
}

func TestStreamsShareAPacedConnection(t *testing.T) {
	var mu sync.Mutex
	from := map[string]int{}
	s := serveHTTP2(t, nil, &xhttp2.Server{}, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr]++
		mu.Unlock()
	})
	for _, rate := range []float64{0, 3000} {
		clear(from)
		plan := model.LoadPlan{URL: s.url, HTTP2: true, Streams: 4, Connections: 3, Threads: 1, Requests: 3000, KeepAlive: true, ConnectRate: 1000, Rate: rate, TimeoutMS: 600_000}
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		if got.Outcomes["2xx"] != 3000 || got.Attempts > 3 || len(from) != int(got.Attempts) {
			t.Errorf("rate %g: %v, %d attempts, requests by connection %v; want 3000 over at most 3", rate, got.Outcomes, got.Attempts, from)
		}
	}
}

func TestConnectionsComeFromTheirSources(t *testing.T) {
	for why, c := range map[string]struct {
		sources []string
		want    int // addresses
	}{
		"a list":   {[]string{"127.1.0.9", "127.2.0.9", "127.3.0.9"}, 3},
		"a prefix": {[]string{"127.1.2.0/29"}, 6}, // but the first and the last
		"one":      {[]string{"127.0.0.1"}, 1},
	} {
		t.Run(why, func(t *testing.T) {
			var mu sync.Mutex
			from := map[string]int{}
			s := serveConns(t, func(s *server, c *net.TCPConn) {
				mu.Lock()
				from[netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().String()]++
				mu.Unlock()
				s.answerAll(c, func(int64) bool { return say(okReply)(c, 0) })
			})
			plan := model.LoadPlan{URL: s.url, Connections: 12, Threads: 2, Requests: 240, Sources: c.sources, TimeoutMS: 600_000}
			runPlan(t, t.Context(), plan)
			s.mustCount(t, 240)
			mu.Lock()
			defer mu.Unlock()
			if len(from) != c.want {
				t.Errorf("connections by address %v, want %d addresses", from, c.want)
			}
		})
	}
}

// Bound without a port of its own a socket's port is one of its own target: more sockets than ports have room then.
func TestASourceHasItsPortsForEachTarget(t *testing.T) {
	s, other := serve(t, say(okReply)), serve(t, say(okReply))
	var ports []int
	for _, url := range []string{s.url, other.url} {
		st := newStage(t, model.LoadPlan{Connections: 1, Requests: 1, Sources: []string{"127.1.0.1"}})
		at := netip.MustParseAddrPort(strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
		_, st.thread.shared.address = sockaddr(at)
		st.until("it is on its way", func() bool { return st.thread.conns[0].state >= connecting })
		value, err := unix.GetsockoptInt(int(st.thread.conns[0].fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT)
		name, err2 := unix.Getsockname(int(st.thread.conns[0].fd))
		if err != nil || err2 != nil || value != 1 {
			t.Fatalf("IP_BIND_ADDRESS_NO_PORT %d, %v, %v; want 1", value, err, err2)
		}
		ports = append(ports, name.(*unix.SockaddrInet4).Port)
	}
	if slices.Contains(ports, 0) {
		t.Errorf("ports %v, want one each", ports)
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	for _, list := range [][]string{
		{""}, {"localhost"}, {"10.0.0.0/15"}, {"10.0.0.0/33"}, {"fd00::/111"}, {"127.0.0.1", "::1"}, {"127.0.0.1", "127.0.0.1"}, {"0.0.0.0"}, {"224.0.0.1"},
		{"127.0.0.1:80"}, {"10.0.0.0/16", "10.1.0.0/16"}, {"::ffff:1.2.3.4/120"},
	} {
		if got, err := ParseSources(list); err == nil {
			t.Errorf("%q was taken, as %d addresses", list, len(got))
		}
	}
	for text, want := range map[string][]string{
		"10.0.0.5/30": {"10.0.0.5", "10.0.0.6"}, "10.0.0.4/31": {"10.0.0.4", "10.0.0.5"}, "10.0.0.4/32": {"10.0.0.4"}, "fd00::4/127": {"fd00::4", "fd00::5"}, "::ffff:10.0.0.1": {"10.0.0.1"},
	} {
		got, err := ParseSources([]string{text})
		if s := strings.Fields(strings.Trim(strings.ReplaceAll(strings.Join(addressTexts(got), " "), ",", ""), "[]")); err != nil || !slices.Equal(s, want) {
			t.Errorf("%s: %v, %v; want %v", text, s, err, want)
		}
	}
}

func addressTexts(list []netip.Addr) (texts []string) {
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return texts
}

func TestSourcesWithoutAWayAreTold(t *testing.T) {
	at := netip.MustParseAddr
	got := SourceFaults([]netip.Addr{at("127.0.0.1"), at("203.0.113.7"), at("::1"), at("127.9.9.9")}, at("127.0.0.1"))
	want := []SourceFault{{at("203.0.113.7"), unix.EADDRNOTAVAIL}, {at("::1"), unix.EAFNOSUPPORT}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	err := Run(context.Background(), model.LoadPlan{URL: "http://127.0.0.1:1/", Connections: 1, Requests: 1, Sources: []string{"203.0.113.7"}}, func(Record) error { return nil })
	if !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("%v, want EADDRNOTAVAIL", err)
	}
}

func TestConnectsThatAreNone(t *testing.T) {
	for why, plan := range map[string]model.LoadPlan{
		"a rate below 0":                             {ConnectRate: -1},
		"less than one a day":                        {ConnectRate: 1e-9},
		"fewer connects than requests that need one": {ConnectRate: 10, Rate: 20},
		"and so in a later stage":                    {ConnectRate: 10, Rate: 5, Stages: []model.Stage{{AtMS: 1, Rate: 20}}},
		"a source for a Unix socket":                 {Sources: []string{"127.0.0.1"}, UnixSocket: "/run/x"},
		"no address":                                 {Sources: []string{"x"}},
	} {
		plan.URL, plan.Connections, plan.DurationMS = "http://127.0.0.1/", 1, 1000
		if err := Check(plan); err == nil {
			t.Errorf("%s: was taken", why)
		}
	}
}
