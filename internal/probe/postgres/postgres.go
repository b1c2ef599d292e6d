// Package postgres asks PostgreSQL servers what their sessions do and wait for. It finds
// them by looking at the processes of a host, and asks over the server's own Unix socket as
// the server's own user, whom it lets in without a password (peer authentication).
package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	answers "plimsoll/internal/probe/asker"
)

const (
	// findEvery is the least time between two looks for servers, connectEvery that between two tries to be let in.
	findEvery    = 2 * time.Second
	connectEvery = 5 * time.Second
	// wholeOften and wholeSeldom bound how often all is asked between the edges of windows: as often as what it takes beyond
	// a question about sessions stays within serverShare of a core on the server's side.
	wholeOften, wholeSeldom = time.Second, 5 * time.Second
	serverShare             = 0.0005
	// atOnce and atEdge are how long a round waits for an answer that most likely comes at once.
	atOnce = 3 * time.Millisecond
	atEdge = 25 * time.Millisecond
	// maxServers bounds how many servers of a host are asked, maxKinds how many kinds of waits and holders of
	// locks are told of each.
	maxServers = 8
	maxKinds   = 100
	// maxStatements bounds how many kinds of statements are told of each.
	maxStatements = 30
)

// All lists the package's probes.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "postgres",
		Scope:   probe.PerHost,
		Signals: signals(),
		Cost:    "on the server's side 1.6 ms of CPU for a question about everything (PostgreSQL 15, 90 sessions, 50 tables), asked every 1 to 5 s so that what it takes beyond sessions and locks, which are asked each second, stays below 0.05 % of a CPU; 0.2 ms of ours for a question",
		Blind: []string{
			"it takes one of the server's connections for as long as it watches",
			"what sessions wait for is looked at once a second: of short waits it tells the share, not the length",
			"sessions tell what they counted once a second at most, and later while a query lasts; between the edges of windows that is read every 1 to 5 s",
			"tables are those of one database, the one that was busiest when the server was first asked",
			"statements are told by their shape, without any value; the server keeps the first 1,024 bytes of each (track_activity_query_size), and of more than 100 texts that differ 100 are read",
			"a server without a Unix socket, or that wants a password of its own user, is not asked; connections in a pool before it (PgBouncer) are not seen",
		},
		Open: open,
	}}
}

// reader reads all PostgreSQL servers of one host.
type reader struct {
	host    *host.Host
	looked  time.Time
	servers []*asker
	err     error // looking for them failed
}

func open(h *host.Host) (probe.Reader, error) { return &reader{host: h}, nil }

// Read reports the answers that came since the last Read, and asks anew.
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
	until := time.Now().Add(wait)
	for _, a := range r.servers {
		a.fresh = false
		a.collect(time.Time{}) // what came since the last round, so that the next question need not wait for another one
		a.begin(out.Now(), out.Forced())
	}
	var failed error
	for _, a := range r.servers {
		a.collect(until)
		if a.err != nil {
			failed = a.err
			if !errors.Is(a.err, fs.ErrNotExist) && !errors.Is(a.err, fs.ErrPermission) {
				out.Put(up, 0, a.port)
			}
			var said *answerError
			if errors.As(a.err, &said) && said.code == "53300" { // too_many_connections
				out.Put(full, 1, a.port)
			}
			continue
		}
		if a.fresh {
			a.put(out)
		}
	}
	if failed != nil {
		mark(out, failed)
	}
	return nil
}

// mark says of all signals what became of one server's: silence about it is no fact.
func mark(out *probe.Out, err error) {
	for _, s := range signals() {
		if s != up && s != full || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			out.Mark(s, err)
		}
	}
}

// Close ends the connections.
func (r *reader) Close() error {
	for _, a := range r.servers {
		a.end()
	}
	return nil
}

// find looks for servers that came or went.
func (r *reader) find() {
	procs, err := r.host.Services()
	if r.err = err; err != nil {
		return
	}
	found := masters(procs)
	known := r.servers
	r.servers = nil
	for _, m := range found[:min(len(found), maxServers)] {
		i := slices.IndexFunc(known, func(a *asker) bool { return a.master.PID == m.PID && a.master.Start == m.Start })
		if i >= 0 {
			r.servers = append(r.servers, known[i])
			known = slices.Delete(known, i, i+1)
			continue
		}
		r.servers = append(r.servers, newAsker(r.host, m))
	}
	for _, a := range known {
		a.end()
	}
}

// asker asks one server in the background, one question at a time.
type asker struct {
	host    *host.Host
	master  host.Proc
	port    string
	tried   time.Time // when a connection was last asked for
	whole   time.Time // when all was last asked
	cost    costs
	session *session // owned by the question on its way
	reply   chan reply

	answer   answer
	database string
	err      error
	fresh    bool // the answer came since the last Read
	// What was told before is told as 0 when there is none of it any more.
	waits      probe.Told[[2]string]
	holders    probe.Told[holder]
	statements probe.Told[doing]
	holdings   probe.Told[holding]
	noTexts    error // why statements are not asked for any more
	oldest     owner // who had the oldest snapshot
}

func newAsker(h *host.Host, master host.Proc) *asker {
	return &asker{
		host: h, master: master, err: fmt.Errorf("PostgreSQL (process %d) has not answered yet", master.PID),
		waits: probe.Told[[2]string]{Most: maxKinds}, holders: probe.Told[holder]{Most: maxKinds, Rest: func(h holder) holder { return holder{h.state, "other", "other"} }},
		statements: probe.Told[doing]{Most: maxStatements, Rest: func(d doing) doing { return doing{"other", d.state, d.waits} }},
		holdings:   probe.Told[holding]{Most: maxStatements, Rest: func(h holding) holding { return holding{"other", h.state} }},
	}
}

// costs are how long the server takes for a question about sessions alone, and for one about all, at the least, which is
// about what it computes for that; 0 where none was answered yet.
type costs struct{ sessions, all time.Duration }

// took learns from an answer. One that came late, since the server stood in line, tells little; of several the quickest counts, and what
// costs more from now on is believed after a few.
func (c *costs) took(d time.Duration, whole bool) {
	of := &c.sessions
	if whole {
		of = &c.all
	}
	if *of == 0 || d < *of {
		*of = d
	} else {
		*of = min(d, *of+*of/4)
	}
}

// every is the time between two questions about all.
func (c *costs) every() time.Duration {
	if c.all == 0 || c.sessions == 0 {
		return wholeSeldom
	}
	return min(max(time.Duration(float64(c.all-c.sessions)/serverShare), wholeOften), wholeSeldom)
}

// reply is what became of a question.
type reply struct {
	session *session // nil when the connection is gone
	port    string
	answer  answer
	took    time.Duration // to answer the question alone
	err     error
}

// begin asks, unless a question is on its way or it is too soon to ask for another connection.
func (a *asker) begin(now time.Time, edge bool) {
	if a.reply != nil || a.session == nil && !a.tried.IsZero() && now.Sub(a.tried) < connectEvery {
		return
	}
	if a.session == nil {
		a.tried = now
	}
	whole := edge || a.session == nil || now.Sub(a.whole) >= a.cost.every()-wholeOften/10
	if whole {
		a.whole = now
	}
	to := make(chan reply, 1)
	a.reply = to
	h, master, session, port := a.host, a.master, a.session, a.port
	texts := a.noTexts == nil
	go func() { to <- ask(h, master, session, port, whole, texts) }()
}

// ask asks a server, over a new connection where there is none.
func ask(h *host.Host, master host.Proc, s *session, port string, whole, texts bool) (r reply) {
	r = reply{session: s, port: port}
	if s == nil {
		var sv *server
		if sv, r.err = look(h, master); r.err != nil {
			return r
		}
		r.port = sv.port
		if r.session, r.err = sv.enter(); r.err != nil {
			return r
		}
	}
	var sets []rows
	began := time.Now()
	sets, r.err = r.session.ask(question(r.session.version, whole, texts))
	r.took = time.Since(began)
	if r.err == nil {
		r.answer, r.err = parse(sets, whole, texts)
	}
	if r.err != nil {
		r.session.conn.Close()
		r.session = nil
	}
	return r
}

// enter connects to the database that is busiest.
func (s *server) enter() (*session, error) {
	first, err := s.connect("postgres")
	var said *answerError
	if errors.As(err, &said) && said.code == "3D000" { // there is no such database
		first, err = s.connect("template1")
	}
	if err != nil {
		return nil, err
	}
	sets, err := first.ask(busiestQuery)
	if err != nil || len(sets) != 1 || len(sets[0]) != 1 || sets[0][0][0] == first.database {
		return first, nil
	}
	second, err := s.connect(sets[0][0][0])
	if err != nil {
		return first, nil
	}
	first.conn.Close()
	return second, nil
}

// collect takes an answer that is there, or comes by until.
func (a *asker) collect(until time.Time) {
	if r, ok := answers.Await(a.reply, until); ok {
		a.take(r)
	}
}

func (a *asker) take(r reply) {
	whole := a.fresh && a.answer.whole && !r.answer.whole && r.err == nil
	before := a.answer
	a.reply, a.session, a.port, a.answer, a.err = nil, r.session, r.port, r.answer, r.err
	if whole { // two answers in one round: what only counts up is in the one before
		a.answer.keep(before)
	}
	a.fresh = r.err == nil
	if a.fresh {
		a.cost.took(r.took, r.answer.whole)
	}
	a.refuseTexts(r.err)
	if r.session != nil {
		a.database = r.session.database
	}
}

// badText is the code of a text that cannot be told in UTF-8: in a database of another encoding, any client can send one.
const badText = "22021"

// refuseTexts leaves the texts of statements out from now on, where these are what a question failed for.
func (a *asker) refuseTexts(err error) {
	var said *answerError
	if errors.As(err, &said) && said.code == badText {
		a.noTexts = err
	}
}

// end closes the connection, that of a question on its way when it is answered.
func (a *asker) end() {
	if a.session != nil && a.reply == nil {
		a.session.conn.Close()
	}
	if to := a.reply; to != nil {
		go func() {
			if r := <-to; r.session != nil {
				r.session.conn.Close()
			}
		}()
	}
	a.reply, a.session = nil, nil
}

// errNoDelay says why a server's commit_delay is not told.
var errNoDelay = errors.New("PostgreSQL has no commit_delay, or a role or a database has one of its own")

// states are those of pg_stat_activity that are told also when no session is in them.
var states = []string{"active", "idle", "idle in transaction", "idle in transaction (aborted)"}

// put records an answer.
func (a *asker) put(out *probe.Out) {
	v := &a.answer
	out.Put(up, 1, a.port)
	out.Put(full, 0, a.port)
	out.Put(maxConnections, v.maxConnections, a.port)
	if v.delays {
		out.Put(commitDelay, v.delay, a.port)
		out.Put(commitSiblings, v.siblings, a.port)
	} else {
		out.Mark(commitDelay, errNoDelay)
		out.Mark(commitSiblings, errNoDelay)
	}
	out.Put(wroteTx, v.wrote, a.port)
	out.Put(writing, v.writing, a.port)
	out.Put(reserved, v.reserved, a.port)
	forced := 0.0
	if v.forced {
		forced = 1
	}
	out.Put(forceParallel, forced, a.port)
	out.Put(parallelCost, v.setupCost, a.port)
	out.Put(parallelBytes, v.scanBytes, a.port)
	for _, state := range states {
		v.states[state] += 0
	}
	for state, n := range v.states {
		out.Put(activity, n, a.port, state)
		out.Put(maxTx, v.oldest[state], a.port, state)
	}
	a.putSessions(out)
	a.putSnapshot(out)
	out.Put(longestBlocked, v.longest, a.port)
	out.Put(blockerAge, v.holderAge, a.port)
	if v.whole {
		a.putCounters(out)
	}
}

func (a *asker) putCounters(out *probe.Out) {
	v := &a.answer
	for _, d := range v.databases {
		for i, s := range databaseSignals {
			out.Put(s, d.values[i], a.port, d.names[0])
		}
	}
	for _, t := range v.tables {
		out.Put(seqScans, t.values[0], a.port, a.database, t.names[0], t.names[1])
		out.Put(seqRows, t.values[1], a.port, a.database, t.names[0], t.names[1])
	}
	for _, t := range v.dead {
		out.Put(deadRows, t.values[0], a.port, a.database, t.names[0], t.names[1])
		out.Put(liveRows, t.values[1], a.port, a.database, t.names[0], t.names[1])
	}
	for _, t := range v.lookups {
		out.Put(lookups, t.values[0], a.port, a.database, t.names[0], t.names[1])
		out.Put(lookedUp, t.values[1], a.port, a.database, t.names[0], t.names[1])
	}
	for _, f := range v.policies {
		out.Put(policyFunction, 1, a.port, a.database, f.names[0], f.names[1], f.names[2])
	}
	for _, t := range v.planner {
		out.Put(plannerTold, t.values[0], a.port, t.names[0], t.names[1], t.names[2], t.names[3])
	}
	out.Put(timed, v.timed, a.port)
	out.Put(requested, v.requested, a.port)
	a.putLog(out)
}

// errNoLog says why it is not told what is written to a server's log.
var errNoLog = host.Absent("PostgreSQL tells since version 14 what it writes to its log")

func (a *asker) putLog(out *probe.Out) {
	l := a.answer.log
	if l == nil {
		for _, s := range logSignals {
			out.Mark(s, errNoLog)
		}
		return
	}
	out.Put(logBytes, l.bytes, a.port)
	out.Put(logPages, l.pages, a.port)
	out.Put(maxLog, l.most, a.port)
}

// putSessions records who waits, for whom, and in which statement. What was there once is 0 when it is not there now.
func (a *asker) putSessions(out *probe.Out) {
	v := &a.answer
	a.waits.Each(v.waits, func(w [2]string, n float64) { out.Put(waiting, n, a.port, w[0], w[1]) })
	a.holders.Each(v.blocked, func(h holder, n float64) { out.Put(blocked, n, a.port, h.state, h.user, h.application) })
	if a.noTexts != nil {
		out.Mark(statement, a.noTexts)
		out.Mark(blockedFor, a.noTexts)
		return
	}
	a.holdings.Each(v.holding, func(h holding, n float64) { out.Put(blockedFor, n, a.port, h.statement, h.state) })
	a.statements.Each(v.statements, func(d doing, n float64) { out.Put(statement, n, a.port, d.statement, d.state, d.waits) })
}

// putSnapshot records whose snapshot is the oldest; one that was told before is told as gone.
func (a *asker) putSnapshot(out *probe.Out) {
	now := a.answer.oldestSnapshot
	if a.oldest != now.of {
		a.putOne(out, snapshot{of: a.oldest})
	}
	a.putOne(out, now)
	a.oldest = now.of
}

func (a *asker) putOne(out *probe.Out, s snapshot) {
	if o := s.of; o.pid != "" {
		out.Put(snapshotAge, s.seconds, a.port, o.pid, o.state, o.user, o.application)
		out.Put(snapshotSince, s.transactions, a.port, o.pid, o.state, o.user, o.application)
	}
}
