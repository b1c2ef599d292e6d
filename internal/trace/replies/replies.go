// Package replies is the tracer of what replies say of themselves: the status of
// HTTP, and the response code of name servers. How long a reply took does not tell
// whether it was a good one.
package replies

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/trace"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 6, Minor: 12}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "replies",
		Short:       "what replies say: HTTP status, DNS response code",
		About:       "what replies say of themselves: the status of HTTP by port and process, and the response code of the name servers that processes ask",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    loadBpf,
		Needs:       needs,
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 12, Replies: "0.982 (0.974–0.988)", CPU: "1.021 (1.014–1.028)"},
		Blind:       blind,
		ByHand:      "the service's access log; tcpdump -A; dig",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `A reply that comes at once may say that all has failed: its time does not tell.
Of a packet that leaves it reads the first twelve bytes of what is carried, of
what a process reads from whom it connected to the first twelve of each read, of
a name server's datagram the first four, and keeps numbers: a status, a code.
What is encrypted, HTTP/2 and what is no HTTP is not counted.`

const cost = "some 0.1 µs at each packet that leaves, arrives at a socket or is read from one, most of which is being called (Linux 6.18, 2 CPUs, a shared machine)"

var blind = []string{
	"of AMQP what does not begin a packet: a broker that confirms many messages at once says several things in one, the first of which counts",
	"TLS, HTTP/2, FastCGI, HTTP over Unix sockets, and whatever is no HTTP/1 in plain text",
	"what a reply says in its body, behind a status of 200",
	"of replies that are read those that another call than read() or recv() takes, as readv(), recvmsg() and io_uring do, that a program of 32 bits reads, or that come in pieces of less than twelve bytes",
	"of what is read a body that happens to have a status line where a read begins counts as a reply",
	"a reply that does not begin a packet, as one of several that were asked for together (pipelining)",
	"before Linux 6.12, which lets no program at a tracepoint read what lies in a packet's pages, no status of a reply that leaves is seen; those that are read are",
	"where more than some 1,000 packets a second leave on a CPU, one in 2, 4, 8 … of them is looked at, and stands for so many: the counts are estimates then",
	"where its programs are called more than 20,000 times a second on a CPU, a run has it watch in bursts (run.json says for which share), and what it counts is an estimate",
	"ports and statuses, or commands and name servers, beyond the first 1,024, which short-lived network namespaces, forged datagrams from port 53 or three ports of a server that says every status there is can fill: plimsoll_replies_lost_total counts what is missing, and no rule reads it",
	"answers on a socket that held eight which nobody had read (counted as lost)",
	"how long an answer takes that never comes",
	"name servers that are asked over TCP, TLS or HTTPS, or at another port than 53",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Replies are those that leave a port.
type Replies struct {
	// Netns is the inode of the network namespace.
	Netns  uint32 `json:"netns"`
	Port   uint16 `json:"port"`
	Status uint16 `json:"status"`
	N      uint64 `json:"replies"`
}

// Confirmed is what a broker said of messages that were published to a port of it.
type Confirmed struct {
	Netns uint32 `json:"netns"`
	Port  uint16 `json:"port"`
	Says  string `json:"says"`
	N     uint64 `json:"replies"`
}

// Heard are the replies that one command's processes read from whom they connected to.
type Heard struct {
	Netns  uint32 `json:"netns"`
	Name   string `json:"groupname"`
	Server string `json:"dst"`
	Status uint16 `json:"status"`
	N      uint64 `json:"replies"`
}

// Answers are those of a name server to one command's processes.
type Answers struct {
	Netns  uint32 `json:"netns"`
	Name   string `json:"groupname"`
	Server string `json:"dst"`
	Code   string `json:"code"`
	N      uint64 `json:"replies"`
}

// Times is how long a name server took to answer one command's processes.
type Times struct {
	Netns  uint32 `json:"netns"`
	Name   string `json:"groupname"`
	Server string `json:"dst"`
	// N is how many of the answers are to questions that were seen to leave.
	N uint64 `json:"replies"`
	// Took is how long these took together.
	Took time.Duration `json:"took_ns"`
}

// Snapshot is everything since the start, what came most often first.
type Snapshot struct {
	HTTP []Replies   `json:"http"`
	AMQP []Confirmed `json:"amqp"`
	Read []Heard     `json:"http_read"`
	DNS  []Answers   `json:"dns"`
	// Times are in no order of their own.
	Times []Times `json:"dns_times"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct{ *trace.Set }

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set}, nil
}

// Calls is how often the programs were called since the start, by CPU.
func (t *Trace) Calls() ([]uint64, error) {
	var calls []uint64
	if err := t.Maps.Maps[bpfMapCalls].Lookup(uint32(0), &calls); err != nil {
		return nil, fmt.Errorf("read how often the programs were called: %w", err)
	}
	return calls, nil
}

// Finish has it count nothing new until Resume, but who reads the answers that came.
func (t *Trace) Finish() error { return t.Maps.Variables[bpfVarFinishing].Set(true) }

// Resume switches the programs on again.
func (t *Trace) Resume() error {
	return errors.Join(t.Maps.Variables[bpfVarFinishing].Set(false), t.Set.Resume())
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapReplies], func(r *bpfReply, cpus []uint64) {
		if says, is := confirmations[r.Status]; is {
			s.AMQP = append(s.AMQP, Confirmed{r.Netns, r.Port, says, total(cpus)})
			return
		}
		s.HTTP = append(s.HTTP, Replies{r.Netns, r.Port, r.Status, total(cpus)})
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the statuses of replies: %w", err)
	}
	err = trace.EachPerCPU(t.Maps.Maps[bpfMapAnswers], func(a *bpfAnswer, cpus []uint64) {
		s.DNS = append(s.DNS, Answers{a.Netns, trace.Comm(a.Comm[:]), serverOf(a), codeName(a.Code), total(cpus)})
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the answers of name servers: %w", err)
	}
	err = trace.EachPerCPU(t.Maps.Maps[bpfMapHeards], func(h *bpfHeard, cpus []uint64) {
		server := netip.AddrPortFrom(netip.AddrFrom16(h.Server).Unmap(), h.Port).String()
		s.Read = append(s.Read, Heard{h.Netns, trace.Comm(h.Comm[:]), server, h.Status, total(cpus)})
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the statuses of replies that were read: %w", err)
	}
	if s.Times, err = t.times(); err != nil {
		return Snapshot{}, fmt.Errorf("read how long name servers took: %w", err)
	}
	slices.SortFunc(s.HTTP, func(a, b Replies) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Netns, b.Netns))
	})
	slices.SortFunc(s.AMQP, func(a, b Confirmed) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Port, b.Port), strings.Compare(a.Says, b.Says), cmp.Compare(a.Netns, b.Netns))
	})
	slices.SortFunc(s.Read, func(a, b Heard) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name), strings.Compare(a.Server, b.Server), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Netns, b.Netns))
	})
	slices.SortFunc(s.DNS, func(a, b Answers) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name), strings.Compare(a.Server, b.Server), strings.Compare(a.Code, b.Code), cmp.Compare(a.Netns, b.Netns))
	})
	s.Lost, err = t.Lost()
	return s, err
}

// confirmations are what frames of AMQP say, by the status that the program counts them under.
var confirmations = map[uint16]string{60050: "return", 60080: "ack", 60120: "nack"}

func (t *Trace) times() ([]Times, error) {
	took := map[bpfAnswer]uint64{}
	if err := trace.EachPerCPU(t.Maps.Maps[bpfMapTook], func(a *bpfAnswer, cpus []uint64) { took[*a] = total(cpus) }); err != nil {
		return nil, err
	}
	var list []Times
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapTimed], func(a *bpfAnswer, cpus []uint64) {
		if ns, both := took[*a]; both { // one of the two may have had no room
			list = append(list, Times{a.Netns, trace.Comm(a.Comm[:]), serverOf(a), total(cpus), time.Duration(ns)})
		}
	})
	return list, err
}

func serverOf(a *bpfAnswer) string {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Server).Unmap(), 53).String()
}

func total(cpus []uint64) uint64 {
	var n uint64
	for _, v := range cpus {
		n += v
	}
	return n
}

// codes are the response codes as dig prints them.
var codes = []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE"}

func codeName(n uint32) string {
	if int(n) < len(codes) {
		return codes[n]
	}
	return "code " + strconv.Itoa(int(n))
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, r := range s.HTTP {
		if t.Has(statuses) {
			out.Net(r.Netns).Put(statuses, float64(r.N), strconv.Itoa(int(r.Port)), strconv.Itoa(int(r.Status)))
		}
	}
	for _, c := range s.AMQP {
		if t.Has(confirmed) {
			out.Net(c.Netns).Put(confirmed, float64(c.N), strconv.Itoa(int(c.Port)), c.Says)
		}
	}
	for _, h := range s.Read {
		if t.Has(heard) {
			out.Net(h.Netns).Put(heard, float64(h.N), h.Name, h.Server, strconv.Itoa(int(h.Status)))
		}
	}
	for _, a := range s.DNS {
		if t.Has(answered) {
			out.Net(a.Netns).Put(answered, float64(a.N), a.Name, a.Server, a.Code)
		}
	}
	for _, a := range s.Times {
		if t.Has(answerSum) {
			out.Net(a.Netns).Put(answerSum, a.Took.Seconds(), a.Name, a.Server)
			out.Net(a.Netns).Put(answerCount, float64(a.N), a.Name, a.Server)
		}
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}
