// Package unread is the tracer of received bytes that wait in their socket for
// the process to read them: the part of a request's time that nobody serves it.
package unread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tcp"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "unread",
		Short:       "how long received bytes wait for their reader",
		About:       "how long bytes that came over TCP wait in their socket until the process reads them",
		Long:        long,
		Level:       trace.Full,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"tcp_rcv_space_adjust"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 8, Replies: "0.956 (0.939–0.957)", CPU: "1.061 (1.053–1.093)"},
		Blind:       blind,
		ByHand:      "ss -tn, several times: Recv-Q of the connections; ss -ltn: that of the listener counts connections not accepted",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches how long bytes that came over TCP wait in their socket until a process
reads them: at a server requests that wait for a busy worker, at a client replies
that wait for a busy client. It is counted when they are read, once for all that
came since the last read. "first" are the first bytes of each accepted connection:
their wait is that in the accept queue and until the first read. Times are counted
by powers of two: 99 % < 4 ms means that it lies between 2 and 4.`

const cost = "0.3 µs a read: an exchange of a request and a reply on loopback, of 8.8 µs in all, took 0.6 µs longer for its two reads " +
	"(Linux 6.18, 2 CPUs, a shared machine): too expensive for all the time, so a run switches it on in bursts"

var blind = []string{
	"bytes are counted when they are read; those that still lie there, or are thrown away unread when the connection ends, are not in it",
	"of a message in several segments, the wait is counted from the last that came",
	"what a process sends while bytes lie there sets the socket's clock anew (HTTP/2, pipelined requests): their wait is then known by jiffies, or counted from that moment where it was less than two of them before",
	"while an ACK is put off and then sent alone, as after 40 ms, the wait is known by jiffies only (1 to 10 ms, by the kernel's HZ)",
	"from the wake-up of a process until it runs it waits for a CPU: that is in it, and in the run-queue wait too",
	"a connection that waits to be accepted is seen by its first bytes: if the client speaks late, or the server first, the wait before them is not",
	"where the kernel itself reads first (TLS in the kernel, sockmap), no wait is seen",
	"a port that is listened on is told from a client's by how the socket came by it: one that a process chose for its client itself, and shares, is taken for a listener's",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Waits is how long bytes lay unread for one command's processes at one end.
type Waits struct {
	tcp.Endpoint
	Name      string          `json:"groupname"`
	Sum       time.Duration   `json:"sum_ns"`
	Histogram trace.Histogram `json:"histogram"`
	// First is the part that the first bytes of accepted connections waited.
	First  time.Duration   `json:"first_ns"`
	Firsts trace.Histogram `json:"firsts"`
}

// Snapshot is everything since the start, the longest sum first.
type Snapshot struct {
	Waits []Waits `json:"waits"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct{ *trace.Set }

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs know how long a jiffy is here.
func programs() (*ebpf.CollectionSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	var tick unix.Timespec // the coarse clock goes on by a jiffy at a time
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return nil, fmt.Errorf("ask how long a jiffy is: %w", err)
	}
	return spec, trace.SetConstant(spec, bpfVarTickNs, uint64(tick.Nano()))
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set}, nil
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapReaders], func(key *bpfReader, cpus []bpfWaits) {
		w := Waits{Endpoint: tcp.MakeEndpoint(key.At.Netns, key.At.IsClient != 0, key.At.Addr, key.At.Port), Name: trace.Comm(key.Comm[:]),
			Histogram: make(trace.Histogram, len(bpfWaits{}.Histogram)), Firsts: make(trace.Histogram, len(bpfWaits{}.First))}
		for i := range cpus {
			w.add(&cpus[i])
		}
		s.Waits = append(s.Waits, w)
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read how long bytes lay unread: %w", err)
	}
	slices.SortFunc(s.Waits, func(a, b Waits) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), strings.Compare(a.Name, b.Name), a.Compare(b.Endpoint))
	})
	s.Lost, err = t.Lost()
	return s, err
}

func (w *Waits) add(cpu *bpfWaits) {
	w.Sum += time.Duration(cpu.Ns)
	w.First += time.Duration(cpu.FirstNs)
	for slot := range cpu.Histogram {
		w.Histogram[slot] += cpu.Histogram[slot]
		w.Firsts[slot] += cpu.First[slot]
	}
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, w := range s.Waits {
		if !t.Has(sum) {
			break
		}
		in := out.In(w.Netns)
		put(in, [3]*model.Signal{sum, count, bucket}, w.Sum, w.Histogram, append([]string{w.Name}, w.Labels()...))
		put(in, [3]*model.Signal{firstSum, firstCount, firstBucket}, w.First, w.Firsts, []string{w.Name, w.Port})
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}

func put(out model.Sink, signals [3]*model.Signal, sum time.Duration, h trace.Histogram, labels []string) {
	n := h.Count()
	if n == 0 {
		return
	}
	out.Put(signals[0], sum.Seconds(), labels...)
	out.Put(signals[1], float64(n), labels...)
	h.Put(out, signals[2], labels...)
}
