package exporter

import (
	"errors"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// both is a log that goes to the store and to what is beside it.
type both struct {
	shown *store
	kept  collect.Log
}

func (b both) Sample(host string, t int64, s *model.Signal, value float64, labelValues ...string) {
	b.shown.Sample(host, t, s, value, labelValues...)
	b.kept.Sample(host, t, s, value, labelValues...)
}

func (b both) Status(host, signal string, st model.Status) {
	b.shown.Status(host, signal, st)
	b.kept.Status(host, signal, st)
}

func (b both) Note(sentence string) {
	b.shown.Note(sentence)
	b.kept.Note(sentence)
}

func (b both) Commit(r collect.Round) error { return errors.Join(b.shown.Commit(r), b.kept.Commit(r)) }

func (b both) Event(e model.Event) { b.kept.Event(e) }
func (b both) Interval(start, end int64, tag, encoded string) {
	b.kept.Interval(start, end, tag, encoded)
}
func (b both) Profile(name string, data []byte) error { return b.kept.Profile(name, data) }
func (b both) Packets(host string, part []byte) error { return b.kept.Packets(host, part) }
func (b both) Traced(t model.Tracing)                 { b.kept.Traced(t) }
