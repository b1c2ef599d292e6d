package drops

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	s := Seen{Elapsed: 10 * time.Second, Unnamed: "the names are hidden"}
	s.Drops = []Drops{
		{Netns: 7, Reason: "NETFILTER_DROP", Location: "nft_do_chain", Packets: 4321},
		{Netns: 7, Reason: "NOT_SPECIFIED", Location: "sk_stream_kill_queues", Packets: 900},
		{Netns: 7, Reason: "TCP_LISTEN_OVERFLOW", Packets: 12},
	}
	s.ByPort = []Drops{{Netns: 7, Reason: "NETFILTER_DROP", Port: 80, Packets: 4321}, {Netns: 7, Reason: "NOT_SPECIFIED", Port: 80, Packets: 900}}
	s.Late = []Late{{Netns: 7, Reason: "NETFILTER_DROP", Port: 80, Connections: 1200, Waited: 1800 * time.Second}}
	want := `10 s: 4,333 packets thrown away (433/s); besides, 900 for reasons that also
occur where all is well.

reason               in function   packets  /s
NETFILTER_DROP       nft_do_chain  4,321    432
TCP_LISTEN_OVERFLOW  ?             12       1.2

reason          service's port  packets  /s
NETFILTER_DROP  80              4,321    432

Connections that stood late, since a SYN of theirs had been thrown away:
reason          service's port  connections  later on average
NETFILTER_DROP  80              1,200        1.5 s

usual reason   in function            packets  /s
NOT_SPECIFIED  sk_stream_kill_queues  900      90

note: the names are hidden
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Several namespaces are told apart.
func TestTextOfSeveralNamespaces(t *testing.T) {
	s := Seen{Elapsed: time.Second}
	s.Drops = []Drops{{Netns: 4026532452, Reason: "CPU_BACKLOG", Location: "enqueue_to_backlog", Packets: 2}, {Reason: "CPU_BACKLOG", Packets: 1}}
	text := s.Text(80)
	for _, want := range []string{"enqueue_to_backlog  2        2   A\n", "?                   1        1   B\n", "A 4026532452, B not known"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second}).Text(80); !strings.HasPrefix(text, "1 s: 0 packets thrown away") || strings.Count(text, "\n") > 2 {
		t.Errorf("%q", text)
	}
}
