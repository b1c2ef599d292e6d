package clock

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// Clocks that are apart are compared as NTP does it; what contradicts nothing changes nothing. An answer is known less well as time passes.
func TestClocks(t *testing.T) {
	var b Book
	ms := func(v float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(v * 1e6)) }
	read := func(asked, heard, said, back float64) {
		b.Read(ms(asked), ms(back), ms(heard).UnixNano(), ms(said).UnixNano())
	}
	read(0, 110, 120, 40)    // 95 ahead, or up to 15 more or less
	read(100, 201, 205, 106) // 100 ahead, 1 more or less
	read(200, 340, 340, 290) // worse again
	b.Settle(ms(300))
	read(400, 520, 520, 440) // 100, by 20
	b.Settle(ms(500))
	b.Settle(ms(550)) // nothing was asked since
	read(600, 690, 690, 602)
	b.Settle(ms(700))
	want := []model.Clock{
		{Time: 1_000_300, OffsetMS: 100, UncertaintyMS: 1.02, Followed: true},
		{Time: 1_000_500, OffsetMS: 100, UncertaintyMS: 20.01},
		{Time: 1_000_700, OffsetMS: 89, UncertaintyMS: 1.01, Followed: true},
	}
	if d := cmp.Diff(want, b.Readings()); d != "" || b.Ahead() != 89*time.Millisecond {
		t.Errorf("ahead %v; -want +got\n%s", b.Ahead(), d)
	}
}

// A clock that is set is noticed once; one that was read late is not taken for it.
func TestSteps(t *testing.T) {
	s := NewSteps()
	if d := s.Noticed(); d != 0 {
		t.Errorf("nobody set it, and it was set by %v", d)
	}
	looks := []time.Duration{0, 50 * time.Millisecond, time.Hour, time.Hour, time.Hour + time.Millisecond, time.Hour + 5*time.Second, time.Hour, -time.Minute, -time.Minute, -time.Minute}
	look := func() time.Duration { d := looks[0]; looks = looks[1:]; return d }
	var got []time.Duration
	for len(looks) > 0 {
		got = append(got, s.noticed(look))
	}
	if d := cmp.Diff([]time.Duration{0, 0, time.Hour, 0, 0, -time.Hour - time.Minute, 0}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// What was measured long ago is known less well by now: a clock that drifts away from ours is within the error that is told all the same.
func TestDrift(t *testing.T) {
	const drift = 50e-6
	var b Book
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * 1e9)) }
	for s := 0.0; s <= 3600; s += 5 {
		way := 0.020 // there, and none back
		if s == 0 {
			way = 0.0002
		}
		theirs := at((s+way)*(1+drift) + 7).UnixNano()
		b.Read(at(s), at(s+way), theirs, theirs)
	}
	b.Settle(at(3600.1))
	r := b.Readings()[0]
	if wrong := math.Abs(r.OffsetMS - (7+3600.1*drift)*1e3); wrong > r.UncertaintyMS {
		t.Errorf("%v ms ahead is %v ms wrong, and known to %v ms, it is said", r.OffsetMS, wrong, r.UncertaintyMS)
	}
	if r.UncertaintyMS > 12 {
		t.Errorf("known to %v ms, want half of the newest way there and back", r.UncertaintyMS)
	}
}
