package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// logKinds are the messages told apart. Each is known by words from its head
// or middle that have stood in every kernel since 3.10; tails get reworded.
var logKinds = []struct {
	kind  string
	words []string // all of them, in small letters
}{
	{"conntrack_table_full", []string{"nf_conntrack: ", "table full"}},
	{"syn_flooding", []string{"possible syn flooding"}},
	{"oom_kill", []string{"killed process "}},
	{"tw_bucket_overflow", []string{"time wait bucket table overflow"}},
	{"neighbour_table_overflow", []string{"neighbo", "table overflow"}},
	{"out_of_tcp_memory", []string{"tcp: out of memory"}},
	{"pids_limit", []string{"cgroup: fork rejected by pids controller"}},
	{"file_max", []string{"vfs: file-max limit "}},
	{"orphans", []string{"tcp: too many orphaned sockets"}},
	{"filesystem_error", []string{"fs error"}},
	{"filesystem_error", []string{"remounting filesystem read-only"}},
	{"disk_error", []string{"i/o error"}},
	{"allocation_failure", []string{"page allocation failure"}},
	{"device_stuck", []string{"netdev watchdog"}},
	{"hung_task", []string{"task ", " blocked for more than "}},
}

const (
	logOther = "other"
	// logEvents is how many lines of one round become events; the rest is counted.
	logEvents = 20
	// logBatch ends the reading of a log that is written faster than it is read.
	logBatch = 10000
)

var (
	logMessages = &model.Signal{Name: "plimsoll_kernel_log_messages_total", Kind: model.Counter, Unit: "messages",
		Help:   "Lines in the kernel's log since the run began. The kernel limits the rate of many of them: silence proves nothing.",
		Labels: []string{"kind"}, Source: "/dev/kmsg", ByHand: "dmesg --follow", StartsAtZero: true}
	logOmitted = &model.Signal{Name: "plimsoll_kernel_log_omitted_total", Kind: model.Counter, Unit: "messages",
		Help:   "Lines of the kernel's log that are not among the events: reason=rate (too many at once; counted by kind all the same) or overwritten (gone before they were read; not counted).",
		Labels: []string{"reason"}, Source: "/dev/kmsg", ByHand: "dmesg --follow", StartsAtZero: true}
)

// Log follows the kernel's log from the moment it is opened.
func Log() probe.Probe {
	const path = "dev/kmsg"
	return probe.Probe{Name: "kernel_log", Scope: probe.PerMachine, Cost: costLog,
		Signals: []*model.Signal{logMessages, logOmitted},
		Blind: []string{"the kernel limits how often it repeats many messages: silence proves nothing",
			"messages of one network namespace stand in the machine's log and not all say which one"},
		CanRun: func(h *host.Host) error {
			fd, err := openLog(h.Path(path))
			if err != nil {
				return err
			}
			return unix.Close(fd)
		},
		Open: func(h *host.Host) (probe.Reader, error) {
			fd, err := openLog(h.Path(path))
			if err != nil {
				return nil, err
			}
			return newKernelLog(fd), nil
		}}
}

func openLog(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Seek(fd, 0, io.SeekEnd)
		if err != nil {
			unix.Close(fd)
		}
	}
	err = pathError(path, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return -1, fmt.Errorf("no kernel log here (a container seldom has /dev/kmsg): %w", err)
	case errors.Is(err, fs.ErrPermission):
		return -1, fmt.Errorf("not allowed to read the kernel's log, run as root, with CAP_SYSLOG, or sysctl kernel.dmesg_restrict=0: %w", err)
	}
	return fd, err
}

func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

type kernelLog struct {
	fd          int
	buf         []byte
	counts      map[string]int
	rate        int    // lines that did not become events
	overwritten uint64 // lines that were gone
	next        uint64 // sequence number that comes next; 0 before the first
}

func newKernelLog(fd int) *kernelLog {
	l := &kernelLog{fd: fd, buf: make([]byte, 8192), counts: map[string]int{logOther: 0}}
	for _, k := range logKinds {
		l.counts[k.kind] = 0
	}
	return l
}

// Read takes what was logged since the last round.
func (l *kernelLog) Read(out *probe.Out) error {
	events := 0
	for range logBatch {
		n, err := unix.Read(l.fd, l.buf)
		if err == unix.EAGAIN {
			break
		}
		if err == unix.EPIPE || err == unix.EINTR {
			continue // EPIPE: overwritten; the sequence numbers tell how many
		}
		if err != nil {
			return fmt.Errorf("read the kernel's log: %w", err)
		}
		if n == 0 {
			break
		}
		r, err := parseLogRecord(l.buf[:n])
		if err != nil {
			return fmt.Errorf("parse /dev/kmsg: %w", err)
		}
		if l.take(r) && events < logEvents {
			events++
			out.EventAt(logTime(r.micros), "kernel.log", r.text, map[string]string{"kind": logKind(r.text)})
		} else if r.kernel() {
			l.rate++
		}
	}
	for kind, n := range l.counts {
		out.Put(logMessages, float64(n), kind)
	}
	out.Put(logOmitted, float64(l.rate), "rate")
	out.Put(logOmitted, float64(l.overwritten), "overwritten")
	return nil
}

// take counts a record; false when it is not the kernel's own (a program
// wrote it into the kernel's log).
func (l *kernelLog) take(r logRecord) bool {
	if l.next != 0 && r.seq > l.next {
		l.overwritten += r.seq - l.next
	}
	l.next = r.seq + 1
	if !r.kernel() {
		return false
	}
	l.counts[logKind(r.text)]++
	return true
}

// Close closes the log.
func (l *kernelLog) Close() error { return unix.Close(l.fd) }

// logKind says which of logKinds a line is.
func logKind(text string) string {
	small := strings.ToLower(text)
next:
	for _, k := range logKinds {
		for _, w := range k.words {
			if !strings.Contains(small, w) {
				continue next
			}
		}
		return k.kind
	}
	return logOther
}

// logTime turns a record's time, microseconds of the kernel's monotonic clock,
// into wall time.
func logTime(micros int64) time.Time {
	var ts unix.Timespec
	now := time.Now()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return now
	}
	return now.Add(time.Duration(micros)*time.Microsecond - time.Duration(ts.Nano()))
}

// logRecord is one record of /dev/kmsg.
type logRecord struct {
	priority int // syslog facility*8 + level
	seq      uint64
	micros   int64 // since boot
	text     string
}

// kernel says whether the kernel itself wrote it (facility 0).
func (r logRecord) kernel() bool { return r.priority>>3 == 0 }

// parseLogRecord parses "6,339,5140900,-;text", its continuation lines
// (" SUBSYSTEM=acpi") left out; see Documentation/ABI/testing/dev-kmsg.
// Unprintable bytes of the text stay escaped as the kernel wrote them.
func parseLogRecord(b []byte) (logRecord, error) {
	head, text, ok := bytes.Cut(b, []byte(";"))
	if !ok {
		return logRecord{}, fmt.Errorf("want PRIORITY,SEQUENCE,TIME,FLAGS;text, got %q", b)
	}
	f := strings.Split(string(head), ",")
	if len(f) < 3 {
		return logRecord{}, fmt.Errorf("want PRIORITY,SEQUENCE,TIME,FLAGS before the text, got %q", head)
	}
	var r logRecord
	priority, err := strconv.ParseUint(f[0], 10, 31)
	if err != nil {
		return logRecord{}, fmt.Errorf("priority: %w", err)
	}
	r.priority = int(priority)
	if r.seq, err = strconv.ParseUint(f[1], 10, 63); err != nil {
		return logRecord{}, fmt.Errorf("sequence: %w", err)
	}
	if r.micros, err = strconv.ParseInt(f[2], 10, 64); err != nil {
		return logRecord{}, fmt.Errorf("time: %w", err)
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	r.text = string(text)
	return r, nil
}
