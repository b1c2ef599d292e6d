// Package tcp is the tracer of TCP connections: how they begin and how long that
// takes, what is sent again, and who resets them and why.
package tcp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "tcp",
		Short:       "connects, accepts, retransmits, resets with reasons",
		About:       "how TCP connections begin and how long that takes, what is sent again, who resets them and why",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"inet_sock_set_state", "tcp_retransmit_skb", "tcp_retransmit_synack", "tcp_send_reset", "tcp_receive_reset"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 7, Replies: "0.999 (0.992–1.007)", CPU: "1.001 (0.990–1.006)"},
		Blind:       blind,
		ByHand:      "tcpconnlat-bpfcc, tcpretrans-bpfcc, tcpstates-bpfcc; perf trace -a -e 'tcp:*'; nstat; ss -ti",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches how TCP connections begin and end, by the listener's port (":80") or by
the destination ("to 10.0.0.2:9000"). "own work" is what connect() does before
its SYN goes out, mostly the search for a free local port: tens of microseconds,
until half of the ports towards one destination are taken; then milliseconds.
"ahead" is how many connections one that arrives finds waiting in the accept
queue. Times are counted by powers of two: 99 % < 4 ms means that it lies
between 2 and 4.`

const cost = "0.3 µs of BPF run time a change of state, 0.2 µs a reset; a connection on loopback, opened, used once and reset (33 µs), " +
	"took 1 to 2 µs longer, both its ends together; a request on a connection that stands takes no longer (Linux 6.18, 2 CPUs, a " +
	"shared machine)"

var blind = []string{
	"how long a connection waits in the accept queue: no tracepoint tells when it is accepted. The queue's length is known; the tracer unread measures the wait until the first read",
	"the kernel gives no reason for a reset that it received; the state in which it found the socket tells some of it",
	"before Linux 6.10 resets that answer a packet for which there is no socket are not told to tracers, and no reset has a reason",
	"a connect that sends its SYN with data only later (TCP_FASTOPEN_CONNECT) has the time until then counted as its own work",
	"before Linux 6.17 segments that this host itself dropped when it sent them again (its firewall, a full queue) are not told to tracers: TcpRetransSegs is larger, by TcpExtTCPRetransFail",
	"where CPUs are scarce the kernel passes programs over: on two CPUs with a load of 15 about one retransmit in 700 was in its counter and not told to any BPF program, and it counted none of these as missed (Linux 6.18)",
	"connect()'s own work is not known where the SYN was sent again",
	"a port that was never seen to be listened on is taken for a client's when a socket is seen only at its sudden end",
	"what softirqs do for a socket is in nobody's name: leaving out or singling out processes applies to connects alone",
	"a port's number stands for all listeners on it, whatever their address; of several that share it (SO_REUSEPORT) each has a queue of its own, and an arrival sees that one",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Connects is what one command's processes did towards one destination.
type Connects struct {
	Netns       uint32 `json:"netns"`
	Name        string `json:"groupname"`
	Destination string `json:"dst"`
	// Took is the sum over the connects that succeeded, from connect() to the
	// complete handshake.
	Took      time.Duration   `json:"took_ns"`
	Connected trace.Histogram `json:"connected"`
	// Setup is the sum of what connect() did before its SYN went out.
	Setup  time.Duration   `json:"setup_ns"`
	Setups trace.Histogram `json:"setups"`
	// Failures counts the others by error.
	Failures map[string]uint64 `json:"failures,omitempty"`
}

// Change is from one state to another.
type Change struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// MarshalText writes the change as a key of a document: "ESTABLISHED>FIN_WAIT1".
func (c Change) MarshalText() ([]byte, error) { return []byte(c.From + ">" + c.To), nil }

// Side is what happened at one endpoint.
type Side struct {
	Endpoint
	// Retransmits counts segments by kind: syn, synack, data.
	Retransmits map[string]uint64 `json:"retransmits,omitempty"`
	// ResetsSent is by the kernel's reason, ResetsReceived by the socket's state.
	ResetsSent     map[string]uint64 `json:"resets_sent,omitempty"`
	ResetsReceived map[string]uint64 `json:"resets_received,omitempty"`
	// Ahead is how many connections those that arrived found in the accept queue,
	// summed up.
	Ahead   uint64            `json:"ahead,omitempty"`
	Changes map[Change]uint64 `json:"changes,omitempty"`
}

var arrived = Change{"SYN_RECV", "ESTABLISHED"}

// Arrivals is how many connections came into the accept queue.
func (s Side) Arrivals() uint64 { return s.Changes[arrived] }

// Snapshot is everything since the start: the connects that took longest first,
// the sides by their endpoint.
type Snapshot struct {
	Connects []Connects `json:"connects"`
	Sides    []Side     `json:"sides"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	reasons     map[uint32]string // of resets; nil if this kernel tells none
	tellsFailed bool              // whether this kernel tells of retransmits that this host could not send
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs are fit for this kernel.
func programs() (*ebpf.CollectionSpec, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	for tracepoint, constant := range map[string]string{"tcp_retransmit_skb": bpfVarHasRetransmitError, "tcp_send_reset": bpfVarHasResetReason} {
		n, err := trace.Arguments(kernel, tracepoint)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // without it, its program alone is refused
			return nil, err
		}
		if err := trace.SetConstant(spec, constant, n >= 3); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	t := &Trace{}
	if err := spec.Variables[bpfVarHasRetransmitError].Get(&t.tellsFailed); err != nil {
		return nil, err
	}
	var told bool
	if err := spec.Variables[bpfVarHasResetReason].Get(&told); err != nil {
		return nil, err
	}
	if told {
		kernel, err := trace.KernelTypes()
		if err != nil {
			return nil, err
		}
		if t.reasons, err = EnumNames(kernel, "sk_rst_reason", "SK_RST_REASON_"); err != nil {
			return nil, err
		}
	}
	var err error
	t.Set, err = trace.Load(spec, since, needs)
	return t, err
}

// reason names a reset's reason: "" where the kernel tells none.
func (t *Trace) reason(n uint32) string {
	if t.reasons == nil {
		return ""
	}
	if name, ok := t.reasons[n]; ok {
		return name
	}
	return "reason " + strconv.Itoa(int(n))
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	var err error
	if s.Connects, err = t.connects(); err != nil {
		return Snapshot{}, err
	}
	if s.Sides, err = t.sides(); err != nil {
		return Snapshot{}, err
	}
	s.Lost, err = t.Lost()
	return s, err
}

func (t *Trace) connects() ([]Connects, error) {
	by := map[bpfRoute]*Connects{}
	of := func(r bpfRoute) *Connects {
		if by[r] == nil {
			to := MakeEndpoint(r.To.Netns, true, r.To.Addr, r.To.Port)
			by[r] = &Connects{Netns: to.Netns, Name: trace.Comm(r.Comm[:]), Destination: to.Destination,
				Connected: make(trace.Histogram, len(bpfConnects{}.Connected)), Setups: make(trace.Histogram, len(bpfConnects{}.Setup))}
		}
		return by[r]
	}
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapRoutes], func(route *bpfRoute, cpus []bpfConnects) {
		c := of(*route)
		for i := range cpus {
			c.add(&cpus[i])
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the connects: %w", err)
	}
	err = trace.Each(t.Maps.Maps[bpfMapFailures], func(f *bpfFailure, n *uint64) {
		c := of(f.Route)
		if c.Failures == nil {
			c.Failures = map[string]uint64{}
		}
		c.Failures[errorWord(f.Error)] += *n
	})
	if err != nil {
		return nil, fmt.Errorf("read the failures of connects: %w", err)
	}
	var list []Connects
	for _, c := range by {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Connects) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(b.failed(), a.failed()), cmp.Compare(a.Netns, b.Netns),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Destination, b.Destination))
	})
	return list, nil
}

func (c *Connects) add(cpu *bpfConnects) {
	c.Took += time.Duration(cpu.Ns)
	c.Setup += time.Duration(cpu.SetupNs)
	for slot, n := range cpu.Connected {
		c.Connected[slot] += n
	}
	for slot, n := range cpu.Setup {
		c.Setups[slot] += n
	}
}

func (c Connects) failed() uint64 {
	var sum uint64
	for _, n := range c.Failures {
		sum += n
	}
	return sum
}

// errorWord names an error as C does; that the process gave up is none.
func errorWord(n int32) string {
	if n == givenUp {
		return "given_up"
	}
	if name := unix.ErrnoName(unix.Errno(n)); name != "" {
		return name
	}
	return "error " + strconv.Itoa(int(n))
}

const givenUp = -1

func (t *Trace) sides() ([]Side, error) {
	by := map[Endpoint]*Side{}
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapEvents], func(key *bpfEvent, cpus []uint64) {
		var n uint64
		for _, c := range cpus {
			n += c
		}
		at := MakeEndpoint(key.At.Netns, key.At.IsClient != 0, key.At.Addr, key.At.Port)
		if by[at] == nil {
			by[at] = &Side{Endpoint: at, Retransmits: map[string]uint64{}, ResetsSent: map[string]uint64{},
				ResetsReceived: map[string]uint64{}, Changes: map[Change]uint64{}}
		}
		t.put(by[at], key, n)
	})
	if err != nil {
		return nil, fmt.Errorf("read the events of connections: %w", err)
	}
	var list []Side
	for _, s := range by {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Side) int { return a.Compare(b.Endpoint) })
	return list, nil
}

func (t *Trace) put(s *Side, key *bpfEvent, n uint64) {
	switch bpfKind(key.Kind) {
	case bpfKindRETRANSMIT:
		kind := "data"
		switch bpfRetransmit(key.Detail) {
		case bpfRetransmitSYN:
			kind = "syn"
		case bpfRetransmitSYNACK:
			kind = "synack"
		}
		s.Retransmits[kind] += n
	case bpfKindRESET_SENT:
		s.ResetsSent[t.reason(key.Detail)] += n
	case bpfKindRESET_RECEIVED:
		s.ResetsReceived[stateName(key.Detail)] += n
	case bpfKindAHEAD:
		s.Ahead += n
	case bpfKindCHANGE:
		s.Changes[Change{stateName(key.Detail >> 16), stateName(key.Detail & 0xffff)}] += n
	}
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, c := range s.Connects {
		t.putConnects(out.Net(c.Netns), c)
	}
	for _, side := range s.Sides {
		t.putSide(out.Net(side.Netns), side)
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}

func (t *Trace) putConnects(out model.Sink, c Connects) {
	if !t.Has(connectSum) {
		return
	}
	times := func(sum, count, bucket *model.Signal, took time.Duration, h trace.Histogram) {
		if n := h.Count(); n > 0 {
			out.Put(sum, took.Seconds(), c.Name, c.Destination)
			out.Put(count, float64(n), c.Name, c.Destination)
			h.Put(out, bucket, c.Name, c.Destination)
		}
	}
	times(connectSum, connectCount, connectBucket, c.Took, c.Connected)
	times(setupSum, setupCount, setupBucket, c.Setup, c.Setups)
	for e, n := range c.Failures {
		out.Put(connectFailures, float64(n), c.Name, c.Destination, e)
	}
}

func (t *Trace) putSide(out model.Sink, s Side) {
	each := func(signal *model.Signal, counts map[string]uint64) {
		for detail, n := range counts {
			if t.Has(signal) {
				out.Put(signal, float64(n), s.Labels(detail)...)
			}
		}
	}
	each(retransmits, s.Retransmits)
	each(resetsSent, s.ResetsSent)
	each(resetsReceived, s.ResetsReceived)
	if !t.Has(changes) {
		return
	}
	for c, n := range s.Changes {
		out.Put(changes, float64(n), s.Labels(c.From, c.To)...)
	}
	if n := s.Arrivals(); n > 0 && s.Role == "server" {
		out.Put(arrivals, float64(n), s.Port)
		out.Put(ahead, float64(s.Ahead), s.Port)
	}
}
