package exporter

import (
	"bytes"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// own is what the exporter says of itself.
type own struct {
	registry *prometheus.Registry
	scrapes  prometheus.Counter
	store    *store
}

func newOwn(version string, st *store) *own {
	o := &own{registry: prometheus.NewRegistry(), store: st}
	o.scrapes = prometheus.NewCounter(prometheus.CounterOpts{Name: "plimsoll_exporter_scrapes_total", Help: "Scrapes that were answered."})
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "plimsoll_exporter_info", Help: "1; the version of plimsoll.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	// The store is held while these are read.
	known := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "plimsoll_exporter_series", Help: "Series that are known, of which those of the newest reading are shown."},
		func() float64 { return float64(st.count) })
	rounds := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "plimsoll_exporter_rounds_total", Help: "Rounds in which everything that was due was read."},
		func() float64 { return float64(st.round.Number) })
	newest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "plimsoll_exporter_round_timestamp_seconds", Help: "When the newest round was taken."},
		func() float64 { return float64(st.round.Time.UnixMilli()) / 1000 })
	anew := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "plimsoll_exporter_begun_anew_total", Help: "How often all that reads was begun anew, with counters at zero, since names of what went away took the room of others."},
		func() float64 { return float64(st.anew) })
	interval := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "plimsoll_exporter_interval_seconds", Help: "Time between two rounds."},
		st.interval.Seconds)
	o.registry.MustRegister(o.scrapes, info, known, rounds, newest, anew, interval, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return o
}

// write writes it behind the series, while the store is held.
func (o *own) write(out *bytes.Buffer, in format) {
	families, err := o.registry.Gather()
	if err != nil { // of the rest we know all the same
		families = append(families[:0:0], families...)
	}
	for _, f := range families {
		if in == openMetrics {
			_, err = expfmt.MetricFamilyToOpenMetrics(out, f)
		} else {
			_, err = expfmt.MetricFamilyToText(out, f)
		}
		if err != nil {
			return // a buffer takes everything
		}
	}
}
