package kernel

import (
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

type discard struct{}

func (discard) Sample(string, int64, *model.Signal, float64, ...string) {}
func (discard) Event(model.Event)                                       {}
func (discard) Status(string, string, model.Status)                     {}
func (discard) Note(string)                                             {}

// BenchmarkRead is one read of each probe on this machine:
//
//	go test -bench Read -benchtime 200x ./internal/probe/kernel
func BenchmarkRead(b *testing.B) {
	h, err := host.Open("here", "local")
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for _, p := range All() {
		b.Run("probe="+p.Name, func(b *testing.B) {
			if err := p.CanRun(h); err != nil {
				b.Skip(err)
			}
			r, err := p.Open(h)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Read(probe.NewOut(discard{}, "here", time.Unix(1, 0), time.Second)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRound is a whole round of the kernel's probes through the sampler;
// ms-cpu/op is all threads' CPU time.
func BenchmarkRound(b *testing.B) {
	h, err := host.Open("here", "local")
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	s := probe.NewSampler([]*host.Host{h}, All(), probe.NewStatusBook(discard{}), time.Second)
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	before, _, err := probe.SelfCost()
	if err != nil {
		b.Fatal(err)
	}
	now, n := time.Unix(1000, 0), 0
	for b.Loop() {
		n++
		now = now.Add(time.Second)
		if err := s.Round(b.Context(), now, false); err != nil {
			b.Fatal(err)
		}
	}
	after, rss, err := probe.SelfCost()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric((after-before)*1000/float64(n), "ms-cpu/op")
	b.ReportMetric(float64(rss>>20), "MiB")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
