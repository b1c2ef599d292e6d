// Package packets makes a run in memory of packet captures: what the wire alone can
// tell the rules. The place of the capture is its one host. It judges nothing.
package packets

import (
	"context"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/tally"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Host is the name of the place where the packets were captured.
const Host = "capture"

// The readings are taken step apart, by the packets' clock; a capture that has more of
// them than maxRounds has them further apart.
const (
	step      = 1_000 // ms
	maxRounds = 600
)

// Read reads captures, merged by time, as a run whose main window they are. Options.Frame is
// its own. The errors are capture.Read's.
func Read(ctx context.Context, sources []capture.Source, o capture.Options) (*record.Run, *capture.Reading, error) {
	t := tally.New()
	rounds := &rounds{tally: t, step: step, series: map[string]*points{}}
	o.Frame = func(f *capture.Frame) error {
		rounds.until(f.Packet.Time / 1e6)
		return t.Frame(f)
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	reading, err := capture.Read(ctx, sources, o)
	if err != nil {
		return nil, nil, err
	}
	dropped := int64(0)
	for _, f := range reading.Files {
		dropped += f.Dropped
	}
	rounds.last(dropped)
	return record.InMemory(rounds.meta(names, reading), rounds.memory()), reading, nil
}

// rounds are the readings of a tally.
type rounds struct {
	tally      *tally.Tally
	begun      bool
	start, now int64 // ms
	step       int64
	taken      int64 // steps since the start
	series     map[string]*points
}

// points is one series.
type points struct {
	labels labels.Labels
	list   []record.Point
}

// until takes the readings that are due before a packet of that time.
func (r *rounds) until(ms int64) {
	if !r.begun {
		r.begun, r.start, r.now = true, ms, ms
	}
	r.now = max(r.now, ms)
	for n := (r.now - r.start) / r.step; r.taken < n; n = (r.now - r.start) / r.step {
		if r.taken >= maxRounds {
			r.thin()
			continue
		}
		if r.taken++; n-r.taken >= maxRounds { // a hole in the capture
			continue
		}
		r.put(r.start+r.taken*r.step, 0)
	}
}

// thin leaves every second reading out.
func (r *rounds) thin() {
	r.step *= 2
	r.taken /= 2
	for _, p := range r.series {
		kept := p.list[:0]
		for _, x := range p.list {
			if (x.Time-r.start)%r.step == 0 {
				kept = append(kept, x)
			}
		}
		p.list = kept
	}
}

// last takes the reading at the end, at least a step after the start.
func (r *rounds) last(dropped int64) {
	r.now = max(r.now, r.start+step)
	r.put(r.now, dropped)
}

func (r *rounds) put(ms, dropped int64) {
	r.tally.Put(&sink{r, ms}, dropped, ms*1e6)
}

// sink takes one reading.
type sink struct {
	*rounds
	at int64
}

// Put implements model.Sink. A counter stood at zero when the capture began.
func (s *sink) Put(sig *model.Signal, value float64, values ...string) {
	key := sig.Name + "\xff" + strings.Join(values, "\xff")
	p := s.series[key]
	if p == nil {
		b := labels.NewScratchBuilder(len(values) + 2)
		b.Add(labels.MetricName, sig.Name)
		b.Add("host", Host)
		for i, name := range sig.Labels {
			b.Add(name, values[i])
		}
		b.Sort()
		p = &points{labels: b.Labels()}
		if s.series[key] = p; sig.StartsAtZero && s.at > s.start {
			p.list = append(p.list, record.Point{Time: s.start})
		}
	}
	if n := len(p.list); n > 0 && p.list[n-1].Time >= s.at {
		p.list[n-1].Value = value
		return
	}
	p.list = append(p.list, record.Point{Time: s.at, Value: value})
}

func (r *rounds) memory() *record.Memory {
	m := &record.Memory{}
	for _, p := range r.series {
		m.Add(p.labels, p.list)
	}
	m.Sort()
	return m
}

func (r *rounds) meta(names []string, reading *capture.Reading) model.Run {
	status := map[string]model.Status{}
	for _, s := range tally.Signals {
		status[s.Name] = model.Status{State: model.Read}
	}
	var shows []string
	for _, f := range reading.Findings {
		shows = append(shows, f.Text)
	}
	return model.Run{
		Started: r.start,
		Plan: model.Plan{Mode: "capture", Interval: r.step,
			Capture: &model.CapturePlan{Files: names, Packets: reading.Packets, Connections: reading.Connections, Shows: shows}},
		Hosts:   []model.Host{{Name: Host, Spec: strings.Join(names, ", ")}},
		Windows: []model.Window{{Name: model.Hold, Start: r.start, End: r.now}},
		Status:  map[string]map[string]model.Status{Host: status},
		Notes:   reading.Notes,
		Closed:  true,
	}
}
