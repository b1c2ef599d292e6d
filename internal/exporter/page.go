package exporter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"plimsoll/internal/export"
	"plimsoll/internal/model"
)

// format is how series are written.
type format string

// The formats, by their content types.
const (
	openMetrics format = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	plainText   format = "text/plain; version=0.0.4; charset=utf-8"
)

// page is what a scrape gets in one format. It is made once a round, however many ask.
type page struct {
	plain  []byte
	zip    sync.Once
	zipped []byte
}

// gzip is the page, packed when the first one asks for that.
func (p *page) gzip() []byte {
	p.zip.Do(func() {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err == nil {
			_, err = w.Write(p.plain)
		}
		if err == nil && w.Close() == nil {
			p.zipped = out.Bytes()
		}
	})
	return p.zipped
}

// page is that of the newest round, nil before the first. own writes what the exporter says of itself.
func (s *store) page(in format, own func(*bytes.Buffer, format)) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round.Number == 0 {
		return nil
	}
	if p := s.pages[in]; p != nil {
		return p
	}
	var out bytes.Buffer
	out.Grow(s.sizes[in] + s.sizes[in]/8) // about that of the round before: one that grows from nothing leaves twice its size behind
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		s.family(&out, in, name)
	}
	s.writeHosts(&out, in)
	s.writeStates(&out, in)
	s.writeCut(&out, in)
	own(&out, in)
	if in == openMetrics {
		out.WriteString("# EOF\n")
	}
	s.sizes[in] = out.Len()
	s.pages[in] = &page{plain: out.Bytes()}
	return s.pages[in]
}

// family writes a signal's series, and nothing where none is shown.
func (s *store) family(out *bytes.Buffer, in format, name string) {
	f := s.families[name]
	described := false
	for _, host := range slices.Sorted(maps.Keys(f.hosts)) {
		of := f.hosts[host]
		for _, one := range of.list {
			if !s.shown(of, one) {
				continue
			}
			if !described {
				described = true
				s.describe(out, in, f.signal)
			}
			value := one.value
			if one.zero {
				value = 0
				one.seen = true
			}
			line(out, name, one.labels, value)
		}
	}
}

// describe writes a signal's metadata.
func (s *store) describe(out *bytes.Buffer, in format, sig *model.Signal) {
	if in == openMetrics {
		export.Describe(out, sig, func(name string) bool { return s.families[name] != nil })
		return
	}
	typ := "untyped"
	switch {
	case sig.Kind == model.Gauge:
		typ = "gauge"
	case export.IsTotal(sig.Name):
		typ = "counter"
	}
	fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", sig.Name, export.Escaped(sig.Help), sig.Name, typ)
}

func line(out *bytes.Buffer, name, labels string, value float64) {
	out.WriteString(name)
	out.WriteByte('{')
	out.WriteString(labels)
	out.WriteString("} ")
	out.Write(strconv.AppendFloat(out.AvailableBuffer(), value, 'g', -1, 64))
	out.WriteByte('\n')
}

// The series that tell how the others are to be understood; package remote reads them.
var (
	hostInfo = &model.Signal{Name: "plimsoll_host_info", Kind: model.Gauge, Unit: "info",
		Help: "1 for each host that is observed; hosts of one machine (the kernel's boot id) share its CPUs and disks."}
	signalState = &model.Signal{Name: "plimsoll_signal_state", Kind: model.Gauge, Unit: "state",
		Help: "1: whether a signal is read on a host; absent, denied and failed mean that what it would say is not known."}
	seriesCut = &model.Signal{Name: "plimsoll_exporter_series_cut_total", Kind: model.Counter, Unit: "readings",
		Help: "Readings that are not shown, since more series came than are shown of one signal, or of all."}
)

func (s *store) writeHosts(out *bytes.Buffer, in format) {
	s.describe(out, in, hostInfo)
	for _, h := range s.hosts {
		line(out, hostInfo.Name, fmt.Sprintf(`host="%s",machine="%s",kernel="%s",cpus="%d"`,
			export.Escaped(h.Name), export.Escaped(h.Machine), export.Escaped(clean(h.Kernel)), h.CPUs), 1)
	}
}

func (s *store) writeStates(out *bytes.Buffer, in format) {
	s.describe(out, in, signalState)
	for _, host := range slices.Sorted(maps.Keys(s.status)) {
		of := s.status[host]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			line(out, signalState.Name, fmt.Sprintf(`host="%s",signal="%s",state="%s"`, export.Escaped(host), name, of[name]), 1)
		}
	}
}

func (s *store) writeCut(out *bytes.Buffer, in format) {
	s.describe(out, in, seriesCut)
	for key, n := range s.cut {
		line(out, seriesCut.Name, fmt.Sprintf(`host="%s",signal="%s"`, export.Escaped(key.host), key.signal), n)
	}
}
