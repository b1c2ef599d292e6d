package softirq

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace"
)

func TestText(t *testing.T) {
	h := make(trace.Histogram, 20)
	h[0], h[12] = 90_000, 10_000
	s := Seen{Elapsed: 10 * time.Second, CPUs: 2}
	s.Soft = []Slot{{1, "NET_RX", 100_000, 6200 * time.Millisecond}, {0, "TIMER", 2500, 8 * time.Millisecond}}
	s.Hard = []Slot{{0, "virtio2-input.0", 30_000, 60 * time.Millisecond}}
	s.Waits = []Wait{{"NET_RX", 30 * time.Second, h}}
	want := `10 s on 2 CPUs: softirqs took 31 % of the CPU time, handlers of hardware
interrupts 0.3 %.

softirq  cpu  of that CPU  runs/s  mean
NET_RX   1    62 %         10,000  62 µs
TIMER    0    under 0.1 %  250     3.2 µs

interrupt        cpu  of that CPU  runs/s  mean
virtio2-input.0  0    0.6 %        3,000   2 µs

How long softirqs were pending
softirq  waits/s  mean    50 % <  99 % <
NET_RX   10,000   300 µs  1 µs    4.1 ms
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 4}).Text(80); !strings.HasPrefix(text, "1 s on 4 CPUs: softirqs took 0") {
		t.Errorf("%q", text)
	}
}
