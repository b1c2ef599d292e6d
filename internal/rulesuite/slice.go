package rulesuite

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// The most that is read of a slice as it is packed and unpacked (those that the rules
// have take a twentieth of it), and of all, unpacked, in bytes.
const (
	maxSliceFile = 2 << 20
	maxSlice     = 16 << 20
	maxSlices    = 64 << 20
)

// slice is what one rule read of a recorded run, and where it held. Nothing in
// it was written by hand.
type slice struct {
	// Holds are the subjects for which the rule is confirmed or suspected, in the
	// order of the findings. A look-alike has none.
	Holds []held `json:"holds"`
	// First and Last are the times of the run's first and last sample, in Unix
	// milliseconds.
	First int64 `json:"first_ms"`
	Last  int64 `json:"last_ms"`
	// Run is the manifest, as far as the rule reads it.
	Run    model.Run     `json:"run"`
	Series []sliceSeries `json:"series"`

	name string // of the case that was recorded
}

// held is a subject for which a rule holds.
type held struct {
	Subject map[string]string   `json:"subject"`
	Answer  model.FindingAnswer `json:"answer"` // confirmed or suspected
}

func (h held) same(as held) bool { return h.Answer == as.Answer && maps.Equal(h.Subject, as.Subject) }

// sliceSeries is one series, whole: its labels, "__name__" among them, and its
// points (Unix milliseconds, value).
type sliceSeries struct {
	Metric map[string]string `json:"metric"`
	Points [][2]float64      `json:"points"`
}

// readSlices reads the rule's slices; left is how many bytes all may have yet.
func readSlices(rule *ruleset.Rule, left *int64) ([]*slice, error) {
	var list []*slice
	var errs []error
	for _, name := range rule.Captured {
		file := path.Join(ruleset.SliceDir, name+ruleset.SliceEnd)
		raw, err := rule.ReadFile(file, maxSliceFile)
		var s *slice
		if err == nil {
			raw, err = unpackSlice(raw)
		}
		if *left -= int64(len(raw)); err == nil && *left < 0 {
			err = tooMuch("slices")
		}
		if err == nil {
			s, err = readSlice(raw)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path.Join(rule.Path, file), err))
			continue
		}
		s.name = name
		list = append(list, s)
	}
	return list, errors.Join(errs...)
}

func unpackSlice(raw []byte) ([]byte, error) {
	packed, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("want a slice in JSON, packed with gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, maxSlice+1))
	if err != nil {
		return nil, fmt.Errorf("unpack the slice: %w", err)
	}
	if len(text) > maxSlice {
		return nil, fmt.Errorf("more than %d bytes: want what one rule reads alone", maxSlice)
	}
	return text, nil
}

// parseSlice reads a packed slice.
func parseSlice(raw []byte) (*slice, error) {
	text, err := unpackSlice(raw)
	if err != nil {
		return nil, err
	}
	return readSlice(text)
}

func readSlice(text []byte) (*slice, error) {
	s := new(slice)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("want a slice in JSON: %w", err)
	}
	for _, one := range s.Series {
		if one.Metric["__name__"] == "" || one.Metric["host"] == "" {
			return nil, fmt.Errorf("series %v: want a name and a host", one.Metric)
		}
		for i, p := range one.Points {
			if p[0] < float64(s.First) || p[0] > float64(s.Last) || i > 0 && p[0] <= one.Points[i-1][0] {
				return nil, fmt.Errorf("series %v: point %d: want times that grow, from first_ms to last_ms", one.Metric, i+1)
			}
		}
	}
	return s, nil
}

// run is the slice's part of the run, as the rule sees it.
func (s *slice) run() *query.Run {
	store := new(record.Memory)
	for _, one := range s.Series {
		points := make([]record.Point, len(one.Points))
		for i, p := range one.Points {
			points[i] = record.Point{Time: int64(p[0]), Value: p[1]}
		}
		store.Add(labels.FromMap(one.Metric), points)
	}
	store.Sort()
	meta := s.Run
	meta.Hosts = slices.Clone(meta.Hosts)
	for i := range meta.Hosts { // boot ids were left out of it; the lab's hosts share a machine
		meta.Hosts[i].Machine = "lab"
	}
	return query.Over(meta, store, s.First, s.Last)
}

// test evaluates the rule over the slice, and compares where it holds.
func (s *slice) test(rule *ruleset.Rule) error {
	findings, err := diagnose.Findings(s.run(), rule)
	got := holding(findings)
	if !slices.EqualFunc(got, s.Holds, held.same) {
		err = errors.Join(err, fmt.Errorf("it holds for %v, want %v; there are %s", got, s.Holds, subjectsOf(findings)))
	}
	return err
}

// holding returns the subjects of the findings that hold.
func holding(findings []model.Finding) []held {
	list := []held{}
	for _, f := range findings {
		if f.Answer == model.Confirmed || f.Answer == model.Suspected {
			list = append(list, held{f.Subject, f.Answer})
		}
	}
	return list
}
