// Package servicelog follows the files that the processes of a host log to, and
// counts the lines in which they say that something ran out. It knows no log's
// format: only the words that the C library and common servers use.
package servicelog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/logtail"
)

const (
	// lookEvery is how often one process's open files are looked at again,
	// looksARound how many are in one round, and firstFiles how many
	// descriptors of each: logs are opened early.
	lookEvery   = time.Minute
	looksARound = 100
	firstFiles  = 24
	// roundLimit bounds what is read of one log in one round, maxLogs how many are followed.
	roundLimit = 256 << 10
	maxLogs    = 64
	// forgetAfter is for how long a log is followed that nobody has open any more.
	forgetAfter = 2 * lookEvery
	// eventsEach is how many lines of each kind become events.
	eventsEach = 3
	maxLine    = 400
	// lookBack is how much of the log of a server that has alarms is read once for what is still set: one line may be from when it was started.
	lookBack = 1 << 20
)

var (
	errorLines = &model.Signal{Name: "plimsoll_service_log_errors_total", Kind: model.Counter, Unit: "lines", Labels: []string{"groupname", "error"}, StartsAtZero: true,
		Help: "Lines in which a process logged that something ran out: error is the number's name (ENOSPC, EROFS, EMFILE, ENFILE, ENOMEM …), fork (EAGAIN for a new process or thread), " +
			"inotify, php_memory_limit, php_max_execution_time, java_heap, too_many_clients or maxmemory (of a backend).",
		Source: "files that the host's processes log to", ByHand: "tail -F LOG | grep -iE 'no space|too many|cannot allocate|read-only'"}
	fullLines = &model.Signal{Name: "plimsoll_service_log_full_total", Kind: model.Counter, Unit: "lines", Labels: []string{"groupname", "what"}, StartsAtZero: true,
		Help:   "Lines in which a server logged that it can start no further worker: what is scoreboard (Apache: fewer workers serve than MaxRequestWorkers allows, but all places for processes are taken, those on their way out counted: ServerLimit).",
		Source: "files that the host's processes log to", ByHand: "tail -F LOG | grep 'scoreboard is full'"}
	alarmSet = &model.Signal{Name: "plimsoll_service_log_alarm", Kind: model.Gauge, Unit: "none", Labels: []string{"groupname", "alarm", "said"},
		Help:   "1 while a server, by its log, keeps those who write waiting for an alarm of its own, 0 once that is cleared: alarm is rabbitmq_disk or rabbitmq_memory; said is earlier where it stands in what was logged before we looked (the last 1 MiB), else watched.",
		Source: "files that the host's processes log to", ByHand: "rabbitmq-diagnostics alarms; grep 'resource limit alarm' /var/log/rabbitmq/*.log"}
	skipped = &model.Signal{Name: "plimsoll_service_log_skipped_bytes_total", Kind: model.Counter, Unit: "bytes", StartsAtZero: true,
		Help: "Bytes of those logs that were not read because they grow faster than they are read.", Source: "files that the host's processes log to", ByHand: "ls -l LOG"}
	signals = []*model.Signal{errorLines, fullLines, alarmSet, skipped}
)

// All returns the probe of services' logs.
func All() []probe.Probe {
	return []probe.Probe{{
		Name: "service_log", Scope: probe.PerHost, Signals: signals,
		Cost: "60 µs for each process first seen and every minute, 1 µs a round for each log, 1 ms for each 256 KiB logged, 4 ms once for each log of RabbitMQ's (Linux 6.18)",
		Blind: []string{
			"what is logged to a pipe, a socket (journald, syslog) or a terminal; access logs",
			"silence proves nothing: many programs do not log what fails",
			"an alarm that was set more than 1 MiB of log ago; one that a RabbitMQ which logs no more than warnings had before it was started anew is taken to be still set",
		},
		Open: func(h *host.Host) (probe.Reader, error) {
			return &reader{host: h, list: h.Services, logs: map[fileID]*log{}, looked: map[int]look{}, counts: map[fact]uint64{}, alarms: map[alarm]bool{}, told: map[alarm]int{}, buf: make([]byte, logtail.BufferSize)}, nil
		},
	}}
}

type key struct{ group, name string }

// fact is what a line of a group's log says.
type fact struct {
	signal *model.Signal
	key
}

// fileID names a file for good.
type fileID struct{ dev, ino uint64 }

// log is a file that a group of processes logs to.
type log struct {
	group   string
	tail    *logtail.Tail
	skipped int64
	seen    time.Time // when somebody was last seen to have it open
}

// look is when one process's open files were looked at.
type look struct {
	start   uint64
	at      time.Time
	refused bool // we may not see what it has open
}

type reader struct {
	host   *host.Host
	list   func() ([]host.Proc, error)
	logs   map[fileID]*log
	looked map[int]look
	buf    []byte
	lost   int64 // bytes that were skipped
	counts map[fact]uint64
	alarms map[alarm]bool // whether it is set
	told   map[alarm]int  // how many of its lines became events
	events []event
}

// alarm is one of a group's, and when its log said so.
type alarm struct {
	key
	said string
}

type event struct {
	key
	line string
}

func (r *reader) Read(out *probe.Out) error {
	procs, err := r.list()
	if err != nil {
		return err
	}
	r.follow(procs, out.Now())
	for id, l := range r.logs {
		if err := l.tail.Round(r.buf, roundLimit, func(line []byte) { r.take(l, line) }); err != nil || out.Now().Sub(l.seen) > forgetAfter {
			l.tail.Close()
			delete(r.logs, id)
		}
		r.lost += l.tail.Skipped() - l.skipped
		l.skipped = l.tail.Skipped()
	}
	for k, n := range r.counts {
		out.Put(k.signal, float64(n), k.group, k.name)
	}
	for a, set := range r.alarms {
		v := 0.0
		if set {
			v = 1
		}
		out.Put(alarmSet, v, a.group, a.name, a.said)
	}
	for _, e := range r.events {
		out.Event("service.log", e.line, map[string]string{"groupname": e.group, "error": e.name})
	}
	r.events = r.events[:0]
	out.Put(skipped, float64(r.lost))
	if n := r.refused(); n > 0 {
		return fmt.Errorf("what %s may not be seen; that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, which root has unless they were taken: %w", who(n), fs.ErrPermission)
	}
	if len(r.logs) == 0 { // which is not the same as one that is silent
		return host.Absent("no process of this host was seen to log to a file")
	}
	return nil
}

// Close lets go of the logs.
func (r *reader) Close() error {
	var err error
	for _, l := range r.logs {
		err = errors.Join(err, l.tail.Close())
	}
	return err
}

// follow looks for the logs of processes, of so many in one round.
func (r *reader) follow(procs []host.Proc, now time.Time) {
	left, seen := looksARound, map[int]bool{}
	for i := range procs {
		p := &procs[i]
		seen[p.PID] = true
		l, known := r.looked[p.PID]
		if p.Kernel || strings.HasPrefix(p.Comm, "plimsoll") {
			continue
		}
		if !known || l.start != p.Start || now.Sub(l.at) >= lookEvery && left > 0 {
			if left--; left < 0 {
				continue
			}
			r.looked[p.PID] = look{p.Start, now, !r.followThoseOf(p, now) && !isInit(p.PID)}
		}
	}
	for pid := range r.looked {
		if !seen[pid] {
			delete(r.looked, pid)
		}
	}
}

// followThoseOf follows the regular files among a process's first descriptors
// that it writes to as one writes a log. It returns false if we may not see them.
func (r *reader) followThoseOf(p *host.Proc, now time.Time) bool {
	dir := filepath.Join(r.host.Path("proc"), strconv.Itoa(p.PID))
	hidden := false // the list may be read by whom the files are hidden from
	_, err := host.EachDescriptor(dir, firstFiles, func(fd int, link []byte, err error) {
		hidden = hidden || errors.Is(err, fs.ErrPermission)
		if err == nil && fd > 0 && mayBeLog(link) {
			r.followFile(dir, fd, string(link), p.Comm, now)
		}
	})
	return !hidden && !errors.Is(err, fs.ErrPermission) // one that has ended logs nothing
}

// isInit says whether a process is the machine's init. It serves nobody, and some clouds' own keeps rights that it gives to no
// shell, so that even root may not look into it. In a PID namespace process 1 may be the service.
func isInit(pid int) bool {
	first, err := host.InFirstPIDs()
	return pid == 1 && first && err == nil
}

// refused is how many processes we may not look into.
func (r *reader) refused() (n int) {
	for _, l := range r.looked {
		if l.refused {
			n++
		}
	}
	return n
}

// mayBeLog says whether a file's name may be that of a log that tells errors.
func mayBeLog(name []byte) bool {
	return bytes.HasPrefix(name, []byte("/")) && !bytes.HasPrefix(name, []byte("/dev/")) && !bytes.Contains(name[bytes.LastIndexByte(name, '/'):], []byte("access"))
}

// followFile follows the file of a descriptor if it is a log. Mostly it is one that
// many processes have open, and followed already.
func (r *reader) followFile(dir string, fd int, name, group string, now time.Time) {
	var st unix.Stat_t
	path := filepath.Join(dir, "root", name)
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	id := fileID{st.Dev, st.Ino}
	if l := r.logs[id]; l != nil {
		l.seen = now
	} else if len(r.logs) < maxLogs && isLog(dir, fd) {
		if tail, err := logtail.Open(logtail.Place{Root: filepath.Join(dir, "root"), Name: name}); err == nil {
			l := &log{group: group, tail: tail, seen: now}
			r.logs[id] = l
			if hasAlarms(group) { // what cannot be read here fails in the round
				_ = tail.Earlier(lookBack, func(line []byte) { r.takeAlarm(l, line, "earlier") })
			}
		}
	}
}

// isLog says whether a descriptor is written to as one writes a log: it was
// opened for appending, or is the standard output or error output.
func isLog(dir string, fd int) bool {
	b, err := host.ReadFile(filepath.Join(dir, "fdinfo", strconv.Itoa(fd)))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(v), 8, 64)
			writes := flags&unix.O_ACCMODE != unix.O_RDONLY
			return err == nil && writes && (flags&unix.O_APPEND != 0 || fd <= 2)
		}
	}
	return false
}

// take counts one line of a log.
func (r *reader) take(l *log, line []byte) {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	text := string(line)
	signal, name := errorLines, errorOf(line)
	if name == "" {
		signal, name = fullLines, fullOf(line)
	}
	if name == "" {
		r.takeAlarm(l, line, "watched")
		return
	}
	f := fact{signal, key{strings.ToValidUTF8(l.group, "\uFFFD"), name}}
	if r.counts[f]++; r.counts[f] <= eventsEach {
		r.events = append(r.events, event{f.key, fmt.Sprintf("%s: %s", l.tail.Path(), strings.ToValidUTF8(text, "\uFFFD"))})
	}
}

// takeAlarm notes what a line of a log says of an alarm.
func (r *reader) takeAlarm(l *log, line []byte, said string) {
	if !hasAlarms(l.group) {
		return
	}
	line = line[:min(len(line), maxLine)]
	name, set := alarmOf(line)
	if !set {
		for a := range r.alarms {
			if a.group == l.group && (a.name == name || name == everyAlarm) {
				r.alarms[a] = false
			}
		}
		return
	}
	a := alarm{key{l.group, name}, said}
	r.alarms[a] = true
	if r.told[a]++; r.told[a] <= eventsEach {
		r.events = append(r.events, event{a.key, fmt.Sprintf("%s, %s: %s", l.tail.Path(), said, strings.ToValidUTF8(string(line), "\uFFFD"))})
	}
}

// who says how many processes log.
func who(n int) string {
	if n == 1 {
		return "1 process logs"
	}
	return fmt.Sprintf("%d processes log", n)
}
