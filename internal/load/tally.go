package load

import (
	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
	"plimsoll/internal/secret"
)

// kinds of duration that are measured
const (
	response      = iota // replies: from the intended time (open loop) or the begin
	service              // replies: from the begin, connect included
	connect              // connects that succeeded
	failed               // requests without a reply: from the intended time to the failure
	delay                // how late requests were sent
	lag                  // open loop: the same for want of us, a connection being free
	unread               // how long replies lay in the kernel (sampled)
	firstWait            // replies: from when the request was sent to their first bytes
	transfer             // replies: from their first bytes to their last
	fullHandshake        // of TLS
	resumedHandshake

	durations
)

const (
	maxMicros = 60_000_000 // the histograms end at 60 s; longer is counted as that
	digits    = 3
)

func newHistogram() *hdr.Histogram { return hdr.New(1, maxMicros, digits) }

// tally is what a thread counted since it last handed one over. A thread owns
// two: while the collector reads one, the thread counts in the other, so
// neither ever waits or copies.
type tally struct {
	phases [counted]phaseTally
	// The rest is set at the moment of handing over.
	connecting, open, idle int64
	closed                 int64   // of an open loop
	missing, untried       int64   // connections that never stood
	stood                  int64   // those that did
	user, system           float64 // CPU seconds of the thread since its start
	// causes are what the first failure of an outcome said, where there is more to say; what gives access is masked.
	causes map[outcome]string
	// targets and stages have, by name and by number, the requests that began in hold; none where the plan has none.
	targets, stages []groupTally
	grouped         bool // it has some
}

// groupTally is what became of the requests of a target, or of a stage. Its histogram is of the replies, from the intended
// time on, with two digits, so that many have room.
type groupTally struct {
	outcomes map[outcome]int64
	response *hdr.Histogram
	lag      *hdr.Histogram // of a stage: by how much the generator was behind
}

func newGroups(n int) []groupTally {
	list := make([]groupTally, n)
	for i := range list {
		list[i] = groupTally{outcomes: map[outcome]int64{}, response: hdr.New(1, maxMicros, 2), lag: hdr.New(1, maxMicros, 2)}
	}
	return list
}

// apart counts what became of a request under its target and its stage, after ns nanoseconds of waiting.
func (t *tally) apart(p phase, asked *request, stage uint8, o outcome, ns int64) {
	if !t.grouped || p != hold {
		return
	}
	if len(t.targets) > 0 {
		t.targets[asked.name].end(o, ns)
	}
	if len(t.stages) > 0 {
		t.stages[stage].end(o, ns)
	}
}

// behind counts how late a request of a stage was sent for want of us.
func (t *tally) behind(p phase, stage uint8, ns int64) {
	t.phases[p].add(lag, ns)
	if len(t.stages) > 0 && p == hold {
		_ = t.stages[stage].lag.RecordValue(min(max(ns, 0)/1000, maxMicros))
	}
}

// end counts a request that ended.
func (t *groupTally) end(o outcome, ns int64) {
	t.outcomes[o]++
	if o.isReply() {
		_ = t.response.RecordValue(min(max(ns, 0)/1000, maxMicros))
	}
}

// known are the outcomes by their names, and the latency.
func (t *groupTally) known() (map[string]int64, model.Quantiles) {
	named := map[string]int64{}
	for o, n := range t.outcomes {
		named[o.String()] = n
	}
	return named, quantiles(t.response)
}

// moveTo adds everything in t to sum and leaves t empty.
func (t *groupTally) moveTo(sum *groupTally) {
	for o, n := range t.outcomes {
		sum.outcomes[o] += n
	}
	clear(t.outcomes)
	for from, to := range map[*hdr.Histogram]*hdr.Histogram{t.response: sum.response, t.lag: sum.lag} {
		if from.TotalCount() > 0 {
			to.Merge(from)
			from.Reset()
		}
	}
}

// agreement is what a TLS handshake came to.
type agreement struct {
	version, cipher uint16
	resumed         bool
}

// cause keeps what the first failure of an outcome says of itself. It may be the server's words.
func (t *tally) cause(o outcome, err error) {
	if _, known := t.causes[o]; !known {
		t.causes[o] = secret.Text(err.Error())
	}
}

// phaseTally is what a thread counted of the requests that began in one phase.
type phaseTally struct {
	phaseCounts
	took [durations]counts
}

// phaseSum is the same of all threads, since the load began.
type phaseSum struct {
	phaseCounts
	hist [durations]*hdr.Histogram
}

// phaseCounts are those of both, but for how long things took.
type phaseCounts struct {
	begun int64
	ended endings
	// statuses has the replies, those that were not wanted included.
	statuses statuses
	// parts is what the waits of those that have ended, and of the ones that have not, consist of, in nanoseconds.
	parts [partKinds]int64
	// attempts is how often a connection was tried for; those that failed are outcomes.
	attempts int64
	// received and sent are bytes, as HTTP has them: over TLS what was opened, and what is to be sealed.
	received, sent int64
	// connectCalls are the connect() calls themselves: the kernel looks for a port in them.
	connectCalls summed
	// unread has a request of every stamped connection: how long its reply lay in the kernel.
	unread summed
	// handshakes are those of TLS that were done.
	handshakes map[agreement]int64
	// crypto has the requests of every stamped connection: what sealing them and opening their replies took.
	crypto summed
}

// newTally is an empty one, with room for so many targets and stages.
func newTally(targets, stages int) *tally {
	t := &tally{causes: map[outcome]string{}, targets: newGroups(targets), stages: newGroups(stages), grouped: targets+stages > 0}
	for p := range t.phases {
		t.phases[p].handshakes = map[agreement]int64{}
	}
	return t
}

// add records a duration in nanoseconds.
func (t *phaseTally) add(kind int, ns int64) {
	t.took[kind].add(min(max(ns, 0)/1000, maxMicros))
}

// end counts a request that ended, after ns nanoseconds of waiting.
func (t *phaseTally) end(o outcome, ns int64) { t.ended.of(o).add(max(ns, 0)) }

// moveTo adds everything in t to sum, and responses and services to recent too, and leaves t empty.
func (t *phaseTally) moveTo(sum *phaseSum, recent *[2]counts) {
	t.phaseCounts.moveTo(&sum.phaseCounts)
	for kind := range t.took {
		took := &t.took[kind]
		took.addTo(sum.hist[kind])
		if kind < len(recent) {
			took.addCounts(&recent[kind])
		}
		took.clear()
	}
}

// moveTo adds everything in t to sum and leaves t empty.
func (t *phaseCounts) moveTo(sum *phaseCounts) {
	sum.begun += t.begun
	t.begun = 0
	t.ended.moveTo(&sum.ended)
	t.statuses.moveTo(&sum.statuses)
	for p, ns := range t.parts {
		sum.parts[p] += ns
	}
	clear(t.parts[:])
	sum.attempts += t.attempts
	sum.received += t.received
	sum.sent += t.sent
	t.attempts, t.received, t.sent = 0, 0, 0
	t.connectCalls.moveTo(&sum.connectCalls)
	t.unread.moveTo(&sum.unread)
	t.crypto.moveTo(&sum.crypto)
	for a, n := range t.handshakes {
		sum.handshakes[a] += n
	}
	clear(t.handshakes)
}
