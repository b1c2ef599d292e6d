// Package kernel holds the probes of the kernel's own counters: CPU, scheduler,
// interrupts, memory, network stack, connection tracking, devices, settings and
// log. Each file is one probe, its signals declared above the code that reads
// them; names are node_exporter's wherever it has the metric.
package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// source is one kernel file of a probe and the signals that come from it.
type source struct {
	path    string // below the root: "proc/stat"
	hint    string // what it means when there is no such file
	signals []*model.Signal
	// machines is what only the machine's own network namespace shows: where ours has no such file it is opened there.
	machines bool
	// put parses the whole file and records it. What it does not find it marks.
	put func(b []byte, out *probe.Out) error
}

// err adds to an error of opening or reading what it means and what to do.
func (s *source) err(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return host.Absent(s.hint) // one sentence for all files that lack for the same reason: reports say each reason once
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("not allowed to read it, run as root: %w", err)
	}
	return err
}

// fromFiles completes p so that it reads the sources; make gives a fresh set
// for each host, because their put functions may keep state.
func fromFiles(p probe.Probe, make func() []source) probe.Probe {
	for _, s := range make() {
		p.Signals = append(p.Signals, s.signals...)
	}
	p.CanRun = func(h *host.Host) error { return canRead(h, make()) }
	p.Open = func(h *host.Host) (probe.Reader, error) {
		r := &files{host: h}
		for _, s := range make() {
			r.sources = append(r.sources, openSource{source: s})
		}
		return r, nil
	}
	return p
}

// canRead returns nil when at least one source can be opened, else why not the first.
func canRead(h *host.Host, sources []source) error {
	var first error
	for i := range sources {
		f, err := host.OpenFile(h.Path(sources[i].path))
		if err == nil {
			return f.Close()
		}
		if first == nil {
			first = sources[i].err(err)
		}
	}
	return first
}

// files is a Reader of kernel files. A file that is not there is looked for
// again in every round: it may come with a module.
type files struct {
	host    *host.Host
	sources []openSource
}

type openSource struct {
	source
	file *host.File // nil when it could not be opened
}

// Read reads every source and marks the signals of those that cannot be read.
func (r *files) Read(out *probe.Out) error {
	for i := range r.sources {
		s := &r.sources[i]
		if err := s.read(r.host, out); err != nil {
			for _, sig := range s.signals {
				out.Mark(sig, err)
			}
		}
	}
	return nil
}

func (s *openSource) read(h *host.Host, out *probe.Out) error {
	if s.file == nil {
		f, err := s.open(h)
		if err != nil {
			return s.err(err)
		}
		s.file = f
	}
	b, err := s.file.Bytes()
	if err != nil {
		s.file.Close()
		s.file = nil
		return s.err(err)
	}
	if err := s.put(b, out); err != nil {
		return fmt.Errorf("parse %s: %w", s.path, err)
	}
	return nil
}

func (s *openSource) open(h *host.Host) (*host.File, error) {
	f, err := host.OpenFile(h.Path(s.path))
	if err == nil || !s.machines || h.Recorded() || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	s.machines = false // what is not there either is not looked for again
	_ = host.OnMachine(func() error { f, err = host.OpenFile(h.Path(s.path)); return err })
	return f, err
}

// Close closes the files.
func (r *files) Close() error {
	var first error
	for _, s := range r.sources {
		if s.file == nil {
			continue
		}
		if err := s.file.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// errNoField says that a file lacks a field; it makes the signal absent.
func errNoField(file, field string) error {
	return host.Absent(fmt.Sprintf("this kernel's %s has no %s", file, field))
}

// errNoCounter is errNoField of a file that lacks many at once: the signal's name says which, and the reason is one for all.
func errNoCounter(file string) error {
	return host.Absent(fmt.Sprintf("this kernel's %s has no such counter", file))
}

// parseUint reads a decimal number without the allocation of strconv's string.
func parseUint(b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > 20 {
		return 0, fmt.Errorf("want a number, got %q", b)
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<64-1)/10 {
			return strconv.ParseUint(string(b), 10, 64)
		}
		d := uint64(c - '0')
		if n*10 > 1<<64-1-d {
			return 0, fmt.Errorf("number %q: %w", b, strconv.ErrRange)
		}
		n = n*10 + d
	}
	return n, nil
}

// nextField cuts the first blank-separated field off b.
func nextField(b []byte) (field, rest []byte) {
	b = bytes.TrimLeft(b, " \t\n")
	if i := bytes.IndexAny(b, " \t\n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// values are the signals of a table in the order of their names.
func values(m map[string]*model.Signal) []*model.Signal {
	return slices.SortedFunc(maps.Values(m), func(a, b *model.Signal) int { return strings.Compare(a.Name, b.Name) })
}
