// Package varnish reads Varnish's own counters where Varnish keeps them: in files that it shares with varnishstat, in its working
// directory. No program is started, nothing is asked, and nothing has to be configured.
package varnish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/host/ownsocket"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
)

const (
	findEvery = 2 * time.Second
	readEvery = time.Second
	// atOnce and atEdge are how long a round waits for a reading that most likely comes at once.
	atOnce = 3 * time.Millisecond
	atEdge = 25 * time.Millisecond
	// maxServices bounds who is read, maxIndex the list of segments.
	maxServices = 8
	maxIndex    = 1 << 20
	// folder is where the process that serves keeps its segments; who manages it has others.
	folder = "/_.vsm_child/"
)

// All lists the package's probes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "varnish",
		Scope:   probe.PerHost,
		Signals: signals(),
		Cost:    "one reading a second: 0.1 ms of ours, and nothing of Varnish's (Varnish 7.1, two storages, a backend)",
		Blind: []string{
			"a Varnish before 6.0 keeps its counters otherwise, and is not read",
			"a thread adds what its clients asked (client_req, cache_hit, cache_miss, s_pass) to Varnish's own counters when it has nothing to do: where clients keep their connection and ask on at once, after a whole run; what it asks backends, fetches and throws out is counted as it is done",
			"of storages and backends the first that Varnish lists are read, up to 128 segments of counters in all",
			"how many threads it may have, and what VCL says, is not read",
		},
		Open: func(h *host.Host) (probe.Reader, error) { return &reader{host: h}, nil },
	}}
}

// reader reads all Varnish of one host.
type reader struct {
	host     *host.Host
	looked   time.Time
	services []*service
	err      error
}

// Read reports what was read since the last Read, and reads anew: in the background, since whose file system a working
// directory is on is not ours to say.
func (r *reader) Read(out *probe.Out) error {
	if now := out.Now(); r.looked.IsZero() || now.Sub(r.looked) >= findEvery {
		r.looked = now
		r.find()
	}
	if r.err != nil {
		return r.err
	}
	wait := atOnce
	if out.Forced() {
		wait = atEdge
	}
	for _, s := range r.services {
		s.collect(time.Time{})
		s.begin(out.Now(), out.Forced())
	}
	until := time.Now().Add(wait)
	for _, s := range r.services {
		s.collect(until)
		s.report(out)
	}
	return nil
}

// Close lets go of the files of all that no reading is under way of; a reading that is lets go of its own.
func (r *reader) Close() error {
	for _, s := range r.services {
		s.end()
	}
	return nil
}

// find looks for processes that serve.
func (r *reader) find() {
	procs, err := r.host.Services()
	if r.err = err; err != nil {
		return
	}
	known := r.services
	r.services = nil
	for _, s := range serving(procs) {
		if len(r.services) == maxServices {
			break
		}
		s.host = r.host
		if i := slices.IndexFunc(known, func(o *service) bool { return o.proc.PID == s.proc.PID && o.proc.Start == s.proc.Start }); i >= 0 {
			s = known[i]
			known = slices.Delete(known, i, i+1)
		}
		r.services = append(r.services, s)
	}
	for _, s := range known {
		s.end()
	}
}

// serving are the children of processes that manage. One that manages and has none stands for it, with the reason why nothing is read; its
// children of a moment (who compiles VCL) bear its own name, so where one is called as who serves is, it is that.
func serving(procs []host.Proc) (list []*service) {
	const manages, serves = "varnishd", "cache-main"
	children := map[int][]host.Proc{}
	is := map[int]bool{}
	for _, p := range procs {
		is[p.PID] = p.Comm == manages
		if p.Comm == manages || p.Comm == serves {
			children[p.PPID] = append(children[p.PPID], p)
		}
	}
	for _, p := range procs {
		if !is[p.PID] || is[p.PPID] {
			continue
		}
		own := children[p.PID]
		if named := slices.DeleteFunc(slices.Clone(own), func(c host.Proc) bool { return c.Comm != serves }); len(named) > 0 {
			own = named
		}
		for _, c := range own {
			list = append(list, &service{proc: c, err: fmt.Errorf("Varnish (process %d) was not read yet", c.PID)})
		}
		if len(own) == 0 {
			list = append(list, &service{proc: p, alone: fmt.Errorf("Varnish (process %d) has no process that serves: it was stopped, or it just ended", p.PID)})
		}
	}
	return list
}

// service is one process that serves.
type service struct {
	host  *host.Host
	proc  host.Proc
	alone error // why there is none to read
	begun time.Time
	reply chan reading
	memory
	listen string
	values []value
	err    error
	fresh  bool
}

// reading is what a look brought. What it has open comes back with it.
type reading struct {
	memory memory
	listen string
	values []value
	err    error
}

func (s *service) begin(now time.Time, edge bool) {
	if s.alone != nil {
		s.err = s.alone
		return
	}
	if s.reply != nil || !edge && now.Sub(s.begun) < readEvery-readEvery/20 {
		return
	}
	s.begun = now
	to, h, pid := make(chan reading, 1), s.host, s.proc.PID
	r := reading{memory: s.memory, listen: s.listen}
	s.memory, s.reply = memory{}, to
	go func() {
		if r.err = r.read(h, pid); r.err != nil {
			r.memory.close()
			r.memory = memory{}
		}
		to <- r
	}()
}

func (s *service) collect(until time.Time) {
	r, ok := asker.Await(s.reply, until)
	if !ok {
		return
	}
	s.reply, s.memory, s.listen, s.values, s.err = nil, r.memory, r.listen, r.values, r.err
	s.fresh = r.err == nil
}

// report puts what was read, or says of all signals why it was not.
func (s *service) report(out *probe.Out) {
	switch {
	case s.err != nil:
		for _, sig := range signals() {
			out.Mark(sig, s.err)
		}
		if s.listen != "" && !errors.Is(s.err, fs.ErrNotExist) && !errors.Is(s.err, fs.ErrPermission) {
			out.Mark(up, nil)
			out.Put(up, 0, s.listen)
		}
	case s.fresh:
		out.Put(up, 1, s.listen)
		for _, v := range s.values {
			out.Put(v.signal, v.number, append([]string{s.listen}, v.label)[:len(v.signal.Labels)]...)
		}
	}
	s.fresh = false
}

func (s *service) end() {
	if to := s.reply; to != nil {
		go func() {
			r := <-to
			r.memory.close()
		}()
	}
	s.memory.close()
}

// read reads all counters that are wanted.
func (r *reading) read(h *host.Host, pid int) error {
	if r.listen == "" {
		list, err := ownsocket.Listeners(h, pid)
		if err != nil {
			return fmt.Errorf("look where Varnish listens; that needs root, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", err)
		}
		if len(list) == 0 {
			return host.Absent(fmt.Sprintf("Varnish (process %d) listens nowhere that we see", pid))
		}
		first := max(0, slices.IndexFunc(list, func(a ownsocket.Address) bool { return a.Path == "" }))
		r.listen = list[first].String()
	}
	// Its current directory is its working directory, whatever -n says and wherever that is from here.
	if err := r.memory.look(h.Path("proc", strconv.Itoa(pid), "cwd")); err != nil {
		return fmt.Errorf("read the counters of Varnish (process %d): %w", pid, err)
	}
	var err error
	r.values, err = r.memory.values()
	return err
}

// memory is a process's segments, kept open: that what is read is always what was found, and looking is cheap.
type memory struct {
	index []byte
	files map[string]*os.File
	docs  map[string]map[string]int // where counters stand, by the number of the StatDoc
	stats []place
}

// look reads the index, and where it has changed finds the segments anew.
func (m *memory) look(dir string) error {
	index, _, err := rooted.ReadFile(dir, folder+"_.index", maxIndex)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return host.Absent("its working directory has no " + folder[1:] + "_.index: it is older than 6.0, or was started without shared memory")
	case err != nil:
		return err
	case m.files != nil && bytes.Equal(index, m.index):
		return nil
	}
	m.close()
	*m = memory{index: index, files: map[string]*os.File{}, docs: map[string]map[string]int{}}
	list, err := parseIndex(index)
	if err != nil {
		return fmt.Errorf("read %s_.index: %w", folder[1:], err)
	}
	for _, p := range list {
		if p.category == "Stat" && !wanted(p.ident) || m.files[p.file] != nil || len(m.files) == 2*maxSegments {
			continue
		}
		if m.files[p.file], err = open(dir, folder+p.file); err != nil {
			return err
		}
	}
	return m.take(list)
}

// wanted says that a segment has counters that are read.
func wanted(ident string) bool {
	class, _, _ := strings.Cut(ident, ".")
	return classes[class] != nil
}

// take reads the descriptions, and keeps where counters are.
func (m *memory) take(list []place) error {
	described := int64(0)
	for _, p := range list {
		if p.category == "StatDoc" {
			described += p.length
		}
	}
	if described > maxDoc {
		return fmt.Errorf("the descriptions of its counters have %d bytes, want at most %d", described, maxDoc)
	}
	for _, p := range list {
		switch {
		case p.category == "StatDoc":
			if err := m.describe(p); err != nil {
				return err
			}
		case wanted(p.ident) && len(m.stats) < maxSegments:
			m.stats = append(m.stats, p)
		}
	}
	if !slices.ContainsFunc(m.stats, func(p place) bool { return p.ident == "MAIN" }) {
		return errors.New("its index lists no counters of the name MAIN")
	}
	return nil
}

// describe reads a description.
func (m *memory) describe(p place) error {
	text, err := m.segment(p)
	if err != nil {
		return err
	}
	described, _, err := body(text)
	if err != nil {
		return err
	}
	m.docs[p.ident], err = parseDoc(described)
	return err
}

func (m *memory) values() (list []value, err error) {
	for _, p := range m.stats {
		text, err := m.segment(p)
		if err != nil {
			return nil, err
		}
		counters, doc, err := body(text)
		if errors.Is(err, errNotYet) && p.ident != "MAIN" {
			continue // a backend that comes or goes
		}
		if err != nil {
			return nil, err
		}
		if m.docs[doc] == nil {
			return nil, fmt.Errorf("nothing describes the counters of %.60q", p.ident)
		}
		list = append(list, values(p.ident, counters, m.docs[doc])...)
	}
	return list, nil
}

// segment reads a segment; a file that is too short, of one that is being taken away, is not ready.
func (m *memory) segment(p place) ([]byte, error) {
	f := m.files[p.file]
	if f == nil {
		return nil, errNotYet
	}
	text := make([]byte, p.length)
	if _, err := f.ReadAt(text, p.offset); err == io.EOF {
		return nil, errNotYet
	} else if err != nil {
		return nil, err
	}
	return text, nil
}

// close lets go of the files.
func (m *memory) close() {
	for _, f := range m.files {
		if f != nil {
			f.Close()
		}
	}
	m.files = nil
}

// open opens a file in the tree of a process's directory.
func open(dir, name string) (*os.File, error) {
	found, err := rooted.Open(dir, name)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	return found.Open(name)
}
