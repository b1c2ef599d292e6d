package tcp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace"
)

func histogram(slot int, n uint64) trace.Histogram {
	h := make(trace.Histogram, 28)
	h[slot] = n
	return h
}

func TestTextOfAnUnhealthyService(t *testing.T) {
	s := Seen{Elapsed: 2 * time.Second}
	s.Connects = []Connects{
		{Netns: 1, Name: "nginx", Destination: "10.0.0.2:9000", Took: 3 * time.Second, Connected: histogram(12, 1000), Setup: 2500 * time.Millisecond,
			Setups: histogram(12, 1000), Failures: map[string]uint64{"EADDRNOTAVAIL": 17, "ECONNREFUSED": 3}},
		{Netns: 1, Name: "curl", Destination: "[::1]:80", Connected: histogram(0, 0), Setups: histogram(0, 0), Failures: map[string]uint64{"given_up": 1}},
	}
	s.Sides = []Side{
		{Endpoint: Endpoint{Netns: 1, Role: "client", Destination: "10.0.0.2:9000"}, Retransmits: map[string]uint64{"syn": 2, "data": 5},
			ResetsReceived: map[string]uint64{"SYN_SENT": 3}, Changes: map[Change]uint64{{"SYN_SENT", "ESTABLISHED"}: 1000, {"ESTABLISHED", "CLOSE_WAIT"}: 900}},
		{Endpoint: Endpoint{Netns: 1, Role: "server", Port: "80"}, Ahead: 8000, ResetsSent: map[string]uint64{"NO_SOCKET": 3, "": 1},
			Changes: map[Change]uint64{arrived: 2000, {"ESTABLISHED", "FIN_WAIT1"}: 11}},
	}
	s.Lost = map[string]uint64{"events": 7}
	want := `2 s: 1,000 connects (500/s) and 21 that failed; 2,000 connections arrived at
listeners (1,000/s); 7 segments were sent again.

process  connects to    /s   mean  99 % <  own work  99 % <
nginx    10.0.0.2:9000  500  3 ms  4.1 ms  2.5 ms    4.1 ms

process  failed to connect to  times  error
nginx    10.0.0.2:9000         17     EADDRNOTAVAIL
nginx    10.0.0.2:9000         3      ECONNREFUSED
curl     [::1]:80              1      given_up

end               new/s  ahead  closed first  other first  sent again
to 10.0.0.2:9000  500    -      0             900          7
:80               1,000  4      11            0            0

resets            end               why
3       received  to 10.0.0.2:9000  in SYN_SENT
3       sent      :80               NO_SOCKET
1       sent      :80               -

note: 7 events were lost (events)
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// With the longest names and several namespaces, the tables still fit a terminal.
func TestTablesFit(t *testing.T) {
	s := Seen{Elapsed: time.Second}
	longest := Endpoint{Netns: 4026532452, Role: "client", Destination: "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535"}
	s.Connects = []Connects{{Netns: longest.Netns, Name: "exactly15letter", Destination: longest.Destination, Took: time.Hour, Connected: histogram(20, 99_999),
		Setup: time.Minute, Setups: histogram(12, 99_999), Failures: map[string]uint64{"EADDRNOTAVAIL": 123_456}}}
	s.Sides = []Side{{Endpoint: longest, ResetsSent: map[string]uint64{"TCP_INVALID_ACK_SEQUENCE": 123_456}}, {Endpoint: Endpoint{Netns: 1, Role: "server", Port: "65535"}}}
	for _, line := range strings.Split(s.Text(80), "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second}).Text(80); !strings.HasPrefix(text, "1 s: 0 connects") || strings.Count(text, "\n") > 2 {
		t.Errorf("%q", text)
	}
}
