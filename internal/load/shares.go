package load

import (
	"fmt"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// shareKinds are the names of what is measured.
var shareKinds = [durations]string{response: "response", service: "service", connect: "connect", failed: "failed", delay: "delay", lag: "lag",
	unread: "unread", firstWait: "first_byte", transfer: "transfer", fullHandshake: "tls_full", resumedHandshake: "tls_resumed"}

const (
	ofTarget = "target"
	ofStage  = "stage"
)

// shares collects what the threads measured since the last record.
type shares struct {
	phases          [counted][durations]*hdr.Histogram
	targets, stages []groupTally
	encoder         encoder
}

func newShares(targets, stages int) *shares {
	s := &shares{targets: newGroups(targets), stages: newGroups(stages)}
	for p := range s.phases {
		for k := range s.phases[p] {
			s.phases[p][k] = newHistogram()
		}
	}
	return s
}

// add adds a thread's tally, which stays as it is.
func (s *shares) add(t *tally) {
	for p := range t.phases {
		for k := range t.phases[p].took {
			t.phases[p].took[k].addTo(s.phases[p][k])
		}
	}
	for _, of := range []struct{ from, to []groupTally }{{t.targets, s.targets}, {t.stages, s.stages}} {
		for i := range of.from {
			of.to[i].response.Merge(of.from[i].response)
			of.to[i].lag.Merge(of.from[i].lag)
		}
	}
}

// told are the histograms that have something, which begin anew.
func (s *shares) told(names []string) (list []Share, err error) {
	put := func(h *hdr.Histogram, one Share) {
		if h.TotalCount() == 0 || err != nil {
			return
		}
		one.Histogram, err = s.encoder.encode(h)
		list = append(list, one)
		h.Reset()
	}
	for p := range s.phases {
		for k, h := range s.phases[p] {
			put(h, Share{Of: phase(p).String(), Kind: shareKinds[k]})
		}
	}
	for i := range s.targets {
		put(s.targets[i].response, Share{Of: ofTarget, Kind: shareKinds[response], Name: names[i]})
	}
	for i := range s.stages {
		put(s.stages[i].response, Share{Of: ofStage, Kind: shareKinds[response], Name: strconv.Itoa(i)})
		put(s.stages[i].lag, Share{Of: ofStage, Kind: shareKinds[lag], Name: strconv.Itoa(i)})
	}
	return list, err
}

// decode reads a histogram of ours.
func decode(text string) (*hdr.Histogram, error) {
	h, err := hdr.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("a histogram of latencies: %w", err)
	}
	if h.HighestTrackableValue() > maxMicros || h.LowestTrackableValue() != 1 || h.SignificantFigures() < 1 || h.SignificantFigures() > 3 {
		return nil, fmt.Errorf("a histogram of latencies from %d to %d µs by %d digits: want 1 to at most %d by 1 to 3", h.LowestTrackableValue(), h.HighestTrackableValue(), h.SignificantFigures(), maxMicros)
	}
	return h, nil
}

// CountOf is how many latencies a histogram has that is in the form of Interval.Histogram.
func CountOf(histogram string) (int64, error) {
	h, err := decode(histogram)
	if err != nil {
		return 0, err
	}
	return h.TotalCount(), nil
}
