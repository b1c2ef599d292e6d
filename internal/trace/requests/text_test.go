package requests

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func lying(slot int, n uint64, each time.Duration) Times {
	b := make(Buckets, nSlots)
	b[slot] = n
	return Times{time.Duration(n) * each, b}
}

func TestText(t *testing.T) {
	three, none := uint64(3), Times{Buckets: make(Buckets, nSlots)}
	s := Seen{Elapsed: 2 * time.Second}
	s.Places = []Place{
		{Listen: "0.0.0.0:80", Begun: 4003, Followed: 1000, Silent: 2, LetBe: 1, Unread: &three, Groups: []Group{{Name: "nginx", Unread: lying(10, 4000, 6*time.Microsecond),
			InHand: lying(45, 4000, 3*time.Millisecond), Served: lying(48, 3990, 4*time.Millisecond), Failed: map[string]uint64{"left": 3}, Excluded: map[string]uint64{"tls": 5}}}},
		{Destination: "unix:/run/php.sock", Begun: 400, Followed: 400, Groups: []Group{{Name: "nginx", Unread: lying(9, 400, 5*time.Microsecond),
			InHand: lying(44, 400, 2*time.Millisecond), Served: none}}},
	}
	want := `2 s: 4,003 requests came to listeners (2,002/s), 3 wait for a reply now; 400
were asked of others (200/s).

listener    process  /s     unread  in hand  99 % <   last byte  99 % <
0.0.0.0:80  nginx    2,000  6 µs    3 ms     2.56 ms  4 ms       4.1 ms

process  asks                /s   waits  99 % <   last byte  unread
nginx    unix:/run/php.sock  200  2 ms   2.05 ms  -          5 µs

times  what                                    process  where
5      handshakes and alerts of TLS            nginx    0.0.0.0:80
3      the other end left first                nginx    0.0.0.0:80
2      connections that were closed unasked             0.0.0.0:80
1      connections whose clients left unasked           0.0.0.0:80

note: 4,403 requests are estimated from 1,400 that were followed
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second}).Text(80); !strings.HasPrefix(text, "1 s: 0 requests") {
		t.Errorf("%q", text)
	}
}

// TestBuckets: bounds rise by a quarter of the last doubling at most, as the C counts.
func TestBuckets(t *testing.T) {
	b := make(Buckets, nSlots)
	if b.Bound(0) != time.Microsecond || b.Bound(4) != 2*time.Microsecond || b.Bound(8) != 4*time.Microsecond || b.Bound(nSlots-2) != time.Microsecond<<26 {
		t.Errorf("%v %v %v %v", b.Bound(0), b.Bound(4), b.Bound(8), b.Bound(nSlots-2))
	}
	for slot := 1; slot < nSlots-1; slot++ {
		if rise := float64(b.Bound(slot)) / float64(b.Bound(slot-1)); rise <= 1 || rise > 1.2501 {
			t.Errorf("slot %d rises by %v", slot, rise)
		}
	}
	b[0], b[40], b[nSlots-1] = 50, 49, 1
	if d, ok := b.Quantile(0.99); !ok || d != b.Bound(40) {
		t.Error(d, ok)
	}
	if d, ok := b.Quantile(1); ok {
		t.Errorf("the last slot has no bound, and yet it is %v", d)
	}
}
