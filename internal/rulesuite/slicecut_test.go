package rulesuite

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/lab"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// TestCutSlices cuts the rules' slices out of the recordings that lab test kept:
//
//	plimsoll lab test CASE... -o DIR
//	PLIMSOLL_SLICES=DIR go test ./internal/rulesuite -run CutSlices
//
// For each rule that names a recorded case in "lab", it writes what the rule read.
func TestCutSlices(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("PLIMSOLL_SLICES"))
	if len(dirs) == 0 {
		t.Skip("PLIMSOLL_SLICES names no folder of recordings")
	}
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		trials, err := lab.Trials(dir)
		if err != nil {
			t.Error(err)
		}
		for _, trial := range trials {
			t.Run(trial.Case, func(t *testing.T) { cutTrial(t, set, dir, trial) })
		}
	}
}

// cutTrial cuts the slices of all rules that name the trial's case.
func cutTrial(t *testing.T, set ruleset.Rules, dir string, trial *lab.Trial) {
	if trial.Faulty == nil {
		t.Fatalf("the trial has no recording: %s", trial.Failure)
	}
	rec, err := record.Open(filepath.Join(dir, trial.Faulty.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, rule := range set.List {
		if !slices.Contains(slices.Concat(rule.Lab.Causes, rule.Lab.Lookalikes), trial.Case) {
			continue
		}
		s, err := cut(rec, rule)
		if err == nil {
			s.name = trial.Case
			if s.beneathAnother(rule) {
				t.Logf("%s: confirmed, and explained by the cause; no slice of a look-alike", rule.ID)
				continue
			}
			err = errors.Join(s.test(rule), s.fits(rule))
		}
		if err != nil {
			t.Errorf("%s: %v", rule.ID, err)
			continue
		}
		file := filepath.Join("../../rules", rule.Path, ruleset.SliceDir, trial.Case+ruleset.SliceEnd)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, pack(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pack writes a slice as its file has it; the same slice gives the same bytes.
func pack(t *testing.T, s *slice) []byte {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return packed(t, text)
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// cut evaluates the rule over a run and keeps what it read. The slice gives the
// same findings to the last word.
func cut(rec *record.Run, rule *ruleset.Rule) (*slice, error) {
	first, last, err := rec.Span()
	if err != nil {
		return nil, err
	}
	store := &noting{Queryable: rec.Queryable(), first: first, last: last, seen: map[string]sliceSeries{}}
	whole, err := diagnose.Findings(query.Over(rec.Meta(), store, first, last), rule)
	if err != nil {
		return nil, err
	}
	s := &slice{Holds: holding(whole), First: first, Last: last, Run: manifest(rec.Meta(), rule), Series: []sliceSeries{}}
	for _, name := range slices.Sorted(maps.Keys(store.seen)) {
		s.Series = append(s.Series, store.seen[name])
	}
	again, err := diagnose.Findings(s.run(), rule)
	if diff := cmp.Diff(whole, again); diff != "" {
		err = errors.Join(err, fmt.Errorf("the slice does not give what the run gives (-run +slice):\n%s", diff))
	}
	s.rename(rule)
	return s, err
}

// manifest is that of the run as far as the rule reads it, without what tells
// whose machine it was.
func manifest(meta model.Run, rule *ruleset.Rule) model.Run {
	out := model.Run{Format: meta.Format, Started: meta.Started, Plan: meta.Plan, Windows: meta.Windows, Closed: meta.Closed}
	out.Plan.Command = nil
	for _, h := range meta.Hosts {
		out.Hosts = append(out.Hosts, model.Host{Name: h.Name, Spec: h.Spec, CPUs: h.CPUs})
	}
	out.Status = map[string]map[string]model.Status{}
	names := ruleset.Rules{List: []*ruleset.Rule{rule}}.Signals()
	for host, status := range meta.Status {
		out.Status[host] = map[string]model.Status{}
		for _, name := range names {
			if st, tried := status[name]; tried {
				out.Status[host][name] = st
			}
		}
	}
	return out
}

// personal are the labels whose values tell what else is on a machine.
var personal = []string{"groupname", "command", "parent", "grandparent", "owner", "by", "waker", "thread", "mountpoint", "file", "log"}

// rename gives other names to what was on the machine and has no part in the
// case: what is not on a host that the lab made, not one of ours, and named
// neither by the rule nor by what it found.
func (s *slice) rename(rule *ruleset.Rule) {
	known, err := json.Marshal(s.Holds)
	if err != nil {
		panic(err) // strings alone
	}
	text := string(known)
	for _, e := range rule.Expressions() {
		text += e.Text
	}
	made := map[string]bool{"/": true, "unknown": true}
	for _, h := range s.Run.Hosts {
		for _, one := range s.Series {
			if one.Metric["host"] == h.Name && h.Spec != "local" {
				made[one.Metric["groupname"]] = true
			}
		}
	}
	other := map[string]string{}
	for _, one := range s.Series {
		labels := personal
		if one.Metric["mountpoint"] != "" { // else it is a disk or a network device
			labels = append(labels[:len(labels):len(labels)], "device")
		}
		for _, label := range labels {
			v := one.Metric[label]
			if v == "" || made[v] || strings.HasPrefix(v, "plimsoll") || strings.Contains(text, strconv.Quote(v)) {
				continue
			}
			if other[v] == "" {
				other[v] = fmt.Sprintf("other-%d", len(other)+1)
			}
			one.Metric[label] = other[v]
		}
	}
}

// noting is a store that keeps each series that somebody asked for.
type noting struct {
	storage.Queryable
	first, last int64
	seen        map[string]sliceSeries
}

func (n *noting) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := n.Queryable.Querier(mint, maxt)
	return notingQuerier{q, n}, err
}

type notingQuerier struct {
	storage.Querier
	into *noting
}

func (q notingQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if err := q.into.note(ctx, matchers); err != nil {
		return storage.ErrSeriesSet(err)
	}
	return q.Querier.Select(ctx, true, hints, matchers...)
}

// note keeps the series that the matchers choose, from the run's first sample to
// its last.
func (n *noting) note(ctx context.Context, matchers []*labels.Matcher) error {
	q, err := n.Queryable.Querier(n.first, n.last)
	if err != nil {
		return err
	}
	defer q.Close()
	set := q.Select(ctx, true, nil, matchers...)
	for set.Next() {
		lset := set.At().Labels()
		s := sliceSeries{Metric: lset.Map()}
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			at, v := it.At()
			s.Points = append(s.Points, [2]float64{float64(at), v})
		}
		if err := it.Err(); err != nil {
			return err
		}
		n.seen[lset.String()] = s
	}
	return set.Err()
}
