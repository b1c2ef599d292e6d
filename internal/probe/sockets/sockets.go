// Package sockets reads a host's TCP and Unix sockets over sock_diag netlink:
// every listener's queue, limit, drops and owner, and for every destination the
// local ports that are taken towards it.
//
// A BPF iterator over TCP sockets that adds up in the kernel is no cheaper: in
// turns with this, on Linux 6.18 with 30,000 sockets, it took 5.4 to 5.8 ms of CPU
// time, and the dump 3.8 to 4.3. Where the sockets do not fit the CPU's cache, as
// in an hour with busy neighbours, the dump took 22 ms, 28 with tcp_info, and a
// walk that a filter left without a row 4: the iterator was not measured then. Nine
// tenths of a dump are the kernel's, one is ours, and all dumps together are a
// quarter of what such a watch costs: no other way of reading them could save more.
package sockets

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/host/unixdiag"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
)

const (
	// pollTimeout bounds a dump of listeners between two rounds.
	pollTimeout = 200 * time.Millisecond
	// share is the part of one core that dumps of all connections may use: 7.5 ms a second.
	share = 0.0075
)

// All returns the probe of sockets.
func All() []probe.Probe {
	return []probe.Probe{{
		Name:    "sockets",
		Scope:   probe.PerHost,
		Signals: append([]*model.Signal{listenQueue, listenQueueMean, listenLimit, listenLimitBy, listenAbsent, listenDrops, listenDefers, asideThreads, datagramPlaces}, connectionSignals...),
		Cost: "2 CPUs, Linux 6.18: a look at all listeners 0.04 ms (ten a second, four while nothing waited for five seconds); all connections 0.3 ms with 90 sockets, 1.5 ms with 3,000, " +
			"17 ms with 28,500 (beyond 7.5 ms a second they are read less often, which is noted); 20 µs for each thread of a process that has but the name of a service's, 512 at most; the search for a new listener's owner 3-10 ms among 100-230 processes, later ones without those that held no socket and have not run",
		Blind: []string{
			"a port range of a socket's own (the option IP_LOCAL_PORT_RANGE) is not visible; usable ports are the namespace's",
			"an accept queue that fills and empties within 100 ms (250 ms where none was seen to hold anything for five seconds) can be missed; the drops are not",
			"a limit that equals somaxconn may also be the application's own choice; one taken from a somaxconn that has changed since reads as the application's",
			"ports taken by bind() without connect() are not counted",
			"connections redirected to a listener on another address or port (TPROXY) are not counted as accepted",
			"a congestion window that is kept at ten segments or more (a route's ssthresh, a clamp) is not told from one that grows; one that shrinks for congestion marks (ECN) or, for a moment, to measure (BBR) counts as small",
			"a congestion window that starts anew after a pause is seen of cubic and reno, and where a look met the connection in a pause before",
			"before Linux 6.2, which tells the receive window itself, one that is smaller than it may be at present is not seen to be full",
			"a process that listens nowhere and was started beside a service of the same name, though it works for that, counts as one that only shares its name; with more than 512 threads of these a part stands for all of its name, and of further names nothing is known",
			"a listener whose process runs in another host (or is the kernel) is owned by \"" + unknownOwner + "\"",
		},
		CanRun: canRun,
		Open:   open,
	}}
}

func canRun(h *host.Host) error {
	if h.Recorded() {
		return fmt.Errorf("a recorded tree has no sockets: %w", fs.ErrNotExist)
	}
	c, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return fmt.Errorf("list sockets; the kernel needs CONFIG_INET_DIAG: %w", err)
	}
	defer c.Close()
	err = c.Dump(tcpDiagGetSock, tcpRequest(listening, inetDiagSKMemInfo), readTimeout, func([]byte) error { return nil })
	if err != nil {
		return fmt.Errorf("list TCP listeners; the kernel needs CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG (modprobe tcp_diag): %w", err)
	}
	return nil
}

func open(h *host.Host) (probe.Reader, error) {
	conn, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	without := map[int]uint64{}
	return &reader{
		host: h, conn: conn, table: newTable(), owners: newOwners(h, searchShare, without), clients: newClients(h, without),
		aside:     aside{host: h, pace: pace.Pace{Share: asideShare}, sums: map[asideKey]float64{}},
		datagrams: newDatagrams(h, without),
		pace:      pace.Pace{Share: share}, reported: reported{},
		unixListeners:   unixdiag.Request(listening, unixdiag.ShowName|unixdiag.ShowQueueLen),
		unixEstablished: unixdiag.Request(1<<tcpEstablished, unixdiag.ShowName),
		tcpListeners:    tcpRequest(listening, inetDiagSKMemInfo),
		tcpConnections:  tcpRequest(notListening, inetDiagInfo, inetDiagCong, inetDiagSKMemInfo),
	}, nil
}

type reader struct {
	host   *host.Host
	conn   *netlink.Conn
	table  *table
	owners *owners
	// clients are the processes that connect to destinations.
	clients *clients
	aside   aside
	// datagrams are the Unix sockets that others send datagrams to.
	datagrams datagrams
	reads     int

	flows    flows
	progress progress
	peers    peers
	fetching progress // of the connecting side, so that neither crowds out the other
	carried  map[endpoint]carried
	// restarted are the connections to a destination whose window starts anew after a pause, of the dump under way.
	restarted map[endpoint]int
	noInfo    bool // this kernel does not divide a connection's time
	noWindow  bool // this kernel does not tell the peer's window
	pace      pace.Pace
	reported  reported

	tcpListeners, tcpConnections   []byte // requests
	unixListeners, unixEstablished []byte
	unixMissing                    error // why Unix sockets cannot be listed
}

// Poll looks at the listeners, and says whether a connection waits at one of them. A
// look that fails is one look fewer; the next Read will tell.
func (r *reader) Poll() bool {
	err := r.lookAtListeners(pollTimeout)
	return err != nil || slices.ContainsFunc(r.table.order, func(l *listener) bool { return l.here && (l.queue > 0 || l.dropsSince > 0) })
}

func (r *reader) Read(out *probe.Out) error {
	if err := r.lookAtListeners(readTimeout); err != nil {
		return err
	}
	r.reads++
	if err := r.nameOwners(out.Now()); err != nil {
		out.Note(fmt.Sprintf("host %s: the owners of listeners are not known: %v", r.host.Name, err))
	}
	r.reportListeners(out)
	if err := r.aside.report(out, r.owners.holders()); err != nil {
		out.Mark(asideThreads, err)
	}
	if err := r.datagrams.report(out, r.conn); err != nil {
		out.Mark(datagramPlaces, err)
	}
	if r.pace.Due(out.Now(), out.Forced()) {
		r.reportConnections(out)
	} else {
		out.Keep(connectionSignals...)
	}
	return nil
}

func (r *reader) Close() error { return r.conn.Close() }

// lookAtListeners dumps all listeners into the table.
func (r *reader) lookAtListeners(timeout time.Duration) error {
	r.table.begin()
	var s inetSock
	err := r.conn.Dump(tcpDiagGetSock, r.tcpListeners, timeout, func(b []byte) error {
		if err := parseInet(b, &s); err != nil {
			return err
		}
		r.table.addTCP(&s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list TCP listeners: %w", err)
	}
	if err := r.lookAtUnix(timeout); err != nil {
		return fmt.Errorf("list Unix listeners: %w", err)
	}
	r.table.end()
	return nil
}

func (r *reader) lookAtUnix(timeout time.Duration) error {
	if r.unixMissing != nil {
		return nil
	}
	var s unixdiag.Sock
	err := r.conn.Dump(sockDiagByFamily, r.unixListeners, timeout, func(b []byte) error {
		if err := s.Parse(b); err != nil {
			return err
		}
		if s.Kind == unix.SOCK_STREAM && len(s.Name) > 0 {
			r.table.addUnix(&s)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		r.unixMissing = err
		return nil
	}
	return err
}

// nameOwners looks for the processes of listeners that have none yet.
func (r *reader) nameOwners(now time.Time) error {
	var inodes []uint32
	for _, l := range r.table.order {
		if l.here {
			inodes = append(inodes, l.inode)
		}
	}
	if err := r.owners.find(inodes, now); err != nil {
		return err
	}
	hidden := false
	for _, l := range r.table.order {
		if !l.here || slices.Contains(r.host.Ours, l.inode) { // what has no owner is not reported
			continue
		}
		if comm := r.owners.comm(l.inode); comm != "" {
			l.own(strings.ToValidUTF8(comm, "\uFFFD"))
		} else if l.owner == "" && (r.reads == 1 || r.owners.settled(l.inode)) {
			l.own(unknownOwner)
		}
		hidden = hidden || l.owner == unknownOwner && r.owners.refused
	}
	if hidden {
		return fmt.Errorf("not of all of them, since some processes may not be looked into; run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", fs.ErrPermission)
	}
	return nil
}

// own gives the listener to a process. Its drops and times so far stay with the
// owner under whom they were reported.
func (l *listener) own(comm string) {
	if l.owner != comm {
		l.owner, l.drops, l.held, l.sent, l.to = comm, 0, [heldCount]float64{}, 0, sentTo{}
	}
}

// reportListeners puts what was seen since the last report. A listener that is
// newer than the search for its owner waits for that: it keeps what was seen.
func (r *reader) reportListeners(out *probe.Out) {
	somaxconn, err := readNumber(r.host.Path("proc/sys/net/core/somaxconn"))
	if err != nil {
		out.Mark(listenLimitBy, fmt.Errorf("read net.core.somaxconn: %w", err))
	}
	for _, l := range r.table.order {
		if looks := l.looks + l.missed; !l.unix && l.owner != "" && looks > 0 {
			out.Put(listenAbsent, float64(l.missed)/float64(looks), l.name, l.owner)
			l.missed = 0
		}
		if !l.seen || l.owner == "" {
			continue
		}
		out.Put(listenQueue, float64(l.peak), l.name, l.owner)
		out.Put(listenQueueMean, float64(l.queued)/float64(l.looks), l.name, l.owner)
		out.Put(listenLimit, float64(l.limitSum), l.name, l.owner)
		if err == nil {
			out.Put(listenLimitBy, 1, l.name, l.owner, limitBy(l.limitEach, somaxconn))
		}
		if !l.unix {
			if seconds, known := r.owners.defers(l.inode); known {
				out.Put(listenDefers, seconds, l.name, l.owner)
			}
		}
		if l.hasDrops {
			l.drops += l.dropsSince
			out.Put(listenDrops, float64(l.drops), l.name, l.owner)
		} else if !l.unix {
			out.Mark(listenDrops, host.Absent("this kernel does not tell what a listener dropped (Linux 4.9 does)"))
		}
		l.peak, l.queued, l.looks, l.seen, l.dropsSince = 0, 0, 0, false, 0
	}
	if r.unixMissing != nil {
		out.Note(fmt.Sprintf("host %s: Unix sockets are not listed; the kernel needs CONFIG_UNIX_DIAG (modprobe unix_diag): %v", r.host.Name, r.unixMissing))
	}
	if r.table.cut {
		out.Note(fmt.Sprintf("host %s has more than %d listeners; the others are not reported", r.host.Name, maxListeners))
	}
}

// limitBy says what set a listener's limit: listen() takes the smaller of the
// application's backlog and somaxconn.
func limitBy(limit, somaxconn uint32) string {
	if limit == somaxconn {
		return "somaxconn"
	}
	return "backlog"
}

// reportConnections dumps all connections, at the pace that their number allows.
func (r *reader) reportConnections(out *probe.Out) {
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	start := pace.CPUTime()
	portsErr := r.flows.usable.read(r.host)
	err := r.dumpConnections(out.Now())
	destinations := r.flows.destinations()
	cost := pace.CPUTime() - start
	if every := r.pace.Took(cost, out.Rhythm()); every > 0 {
		out.Note(fmt.Sprintf("host %s: listing %d TCP sockets takes %d ms of CPU time, so destinations and accepted connections are read every %v",
			r.host.Name, r.flows.total, cost.Milliseconds(), every))
	}
	if err != nil {
		for _, s := range connectionSignals {
			out.Mark(s, err)
		}
		return
	}
	if portsErr != nil {
		out.Mark(portsUsed, portsErr)
		out.Mark(portsTimeWait, portsErr)
		out.Mark(portsUsable, portsErr)
	}
	r.putAccepted(out)
	r.putDestinations(out, destinations, portsErr == nil)
}

// dumpConnections adds up all TCP connections and accepted Unix ones.
func (r *reader) dumpConnections(now time.Time) error {
	r.flows.reset()
	r.progress.begin(now)
	r.fetching.begin(now)
	r.peers.begin()
	clear(r.restarted)
	for _, l := range r.table.order {
		l.connections = connections{}
	}
	var s inetSock
	asked := askedEnds(r.host)
	err := r.conn.Dump(tcpDiagGetSock, r.tcpConnections, readTimeout, func(b []byte) error {
		if err := parseInet(b, &s); err != nil {
			return err
		}
		if len(asked) == 0 || !asked[[2]endpoint{s.src, s.dst}] {
			r.addConnection(&s)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list TCP connections: %w", err)
	}
	r.progress.end()
	r.fetching.end()
	r.peers.end()
	if r.unixMissing != nil {
		return nil
	}
	var u unixdiag.Sock
	err = r.conn.Dump(sockDiagByFamily, r.unixEstablished, readTimeout, func(b []byte) error {
		if err := u.Parse(b); err != nil {
			return err
		}
		// An accepted socket bears its listener's name, its peer none. One that is
		// not accepted yet has no inode, and the kernel does not list it.
		if l := r.table.unix[string(u.Name)]; l != nil && u.Kind == unix.SOCK_STREAM && u.Inode != 0 {
			l.accepted++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list Unix connections: %w", err)
	}
	return nil
}

// askedEnds are the sockets, at both ends, over which we ask services ourselves: they are nobody's use of these.
func askedEnds(h *host.Host) map[[2]endpoint]bool {
	ends := map[[2]endpoint]bool{}
	for _, c := range h.Asked() {
		ours, theirs := endpoint{c[0].Addr().As16(), c[0].Port()}, endpoint{c[1].Addr().As16(), c[1].Port()}
		ends[[2]endpoint{ours, theirs}], ends[[2]endpoint{theirs, ours}] = true, true
	}
	return ends
}

func (r *reader) addConnection(s *inetSock) {
	r.flows.total++
	l := r.table.of(s.src)
	if l == nil {
		r.flows.add(s)
		if s.inode != 0 {
			r.carry(s)
		}
		return
	}
	switch s.state {
	case tcpEstablished, tcpCloseWait:
		if s.inode != 0 {
			l.accept(s)
			r.follow(l, s)
		} else if s.state == tcpCloseWait && s.queue <= closing {
			l.left++
		}
	case tcpSynRecv:
		l.synRecv++
	case tcpFinWait1, tcpClosing, tcpLastAck: // closed by its process, and not yet all acknowledged
		if s.hasInfo {
			r.advance(l, s)
		}
	}
}

// closing is what the kernel counts as unread where a client closed without having sent a byte: its FIN takes a number.
const closing = 1

// accept counts an accepted connection, and what lies in its buffers.
func (l *listener) accept(s *inetSock) {
	l.accepted++
	if s.queue > 0 {
		l.unread++
	}
	if s.gap() {
		l.gaps++
	}
	if s.limit > 0 {
		l.unacked++
		l.roundTrips += uint64(s.info.rtt)
		l.shortestTrips += uint64(min(s.info.rtt, s.info.shortest)) // noRTT is the largest number
	}
	if s.timer == timerProbe {
		l.shut++
	} else if s.hasInfo && s.info.heldBack() {
		l.heldBack++
	}
	if s.hasInfo && s.info.windowSmall() {
		l.small++
	}
	if s.hasInfo && s.info.segmentsSmall() {
		l.smallSegments++
	}
	if s.timer == timerRetransmit && s.retries >= 2 {
		l.repeated++
		if s.hasInfo && s.limit >= s.info.mss {
			l.large++
		}
	}
}

// follow adds what held an accepted connection's bytes since the last dump.
func (r *reader) follow(l *listener, s *inetSock) {
	if !s.hasInfo {
		r.noInfo = true
		return
	}
	r.noWindow = r.noWindow || !s.info.hasPeerWindow
	added := r.advance(l, s)
	for by := range l.held {
		l.held[by] += float64(added[by]) / 1e6
	}
	l.sent += float64(added[bytesMoved])
	if r.progress.startsAnew(s) {
		l.restarted++
	}
	if s.windowFilled(added[bytesCame], r.progress.took) {
		l.filled.connections++
		l.filled.windows += uint64(s.info.ownWindow)
		l.filled.buffers += uint64(s.buffer)
		l.filled.trips += uint64(s.info.shortest)
	}
}

// advance is what an accepted connection has come forward since the last dump. The segments are counted here,
// since they are sent also after a process has closed it.
func (r *reader) advance(l *listener, s *inetSock) heldFor {
	now := s.info.held
	now[bytesMoved], now[bytesCame] = s.info.acked, s.info.received
	now[segmentsSent], now[segmentsAgain], now[segmentsCame] = uint64(s.info.dataOut), uint64(s.info.resent), uint64(s.info.dataIn)
	added := r.progress.since(s.cookie, now)
	if !onOneMachine(s) {
		r.peers.add(&l.to, s.dst.addr, segments{added[segmentsSent], added[segmentsAgain], added[segmentsCame]})
	}
	return added
}

// carried is what went to a destination and came from it, in bytes, and for how many seconds what held what was to go.
type carried struct {
	sent, received float64
	held           [heldCount]float64
}

// carry adds what connections to a destination that is reported have carried since the last dump.
func (r *reader) carry(s *inetSock) {
	if !s.hasInfo {
		r.noInfo = true
		return
	}
	if _, ok := r.reported[s.dst]; !ok && len(r.reported) >= maxEverReported {
		return
	}
	if r.carried == nil {
		r.carried, r.restarted = map[endpoint]carried{}, map[endpoint]int{}
	}
	if c, ok := r.carried[s.dst]; ok || len(r.carried) < maxEverReported {
		now := s.info.held
		now[bytesMoved], now[bytesCame] = s.info.acked, s.info.received
		added := r.fetching.since(s.cookie, now)
		for by := range c.held {
			c.held[by] += float64(added[by]) / 1e6
		}
		c.sent += float64(added[bytesMoved])
		c.received += float64(added[bytesCame])
		r.carried[s.dst] = c
		if r.fetching.startsAnew(s) {
			r.restarted[s.dst]++
		}
	}
}

func (r *reader) putAccepted(out *probe.Out) {
	for _, l := range r.table.order {
		if !l.here || l.owner == "" {
			continue
		}
		out.Put(listenAccepted, float64(l.accepted), l.name, l.owner)
		if !l.unix {
			out.Put(listenSynRecv, float64(l.synRecv), l.name, l.owner)
			out.Put(listenLeft, float64(l.left), l.name, l.owner)
			out.Put(listenUnread, float64(l.unread), l.name, l.owner)
			out.Put(listenGaps, float64(l.gaps), l.name, l.owner)
			out.Put(listenUnacked, float64(l.unacked), l.name, l.owner)
			out.Put(listenShut, float64(l.shut), l.name, l.owner)
			out.Put(listenRepeated, float64(l.repeated), l.name, l.owner)
			r.putInfo(out, l)
		}
	}
}

// putInfo puts what only a connection's tcp_info tells.
func (r *reader) putInfo(out *probe.Out, l *listener) {
	if r.noInfo {
		for _, s := range []*model.Signal{listenRepeatedLarge, listenRoundTrip, listenShortestTrip, listenHeldBack, listenWindowSmall, listenRestarted, listenSegmentsSmall, listenFilled, listenWindow, listenBuffer, listenWay, listenHeld, listenSent, listenSegments, listenAgain, listenCame,
			destinationRestarted, destinationRoundTrip, destinationSmoothed, destinationReceived, destinationSent, destinationHeld} {
			out.Mark(s, host.Absent("this kernel does not tell what held a connection (Linux 4.10 does)"))
		}
		return
	}
	out.Put(listenRepeatedLarge, float64(l.large), l.name, l.owner)
	out.Put(listenHeldBack, float64(l.heldBack), l.name, l.owner)
	out.Put(listenWindowSmall, float64(l.small), l.name, l.owner)
	out.Put(listenRestarted, float64(l.restarted), l.name, l.owner)
	if r.noWindow {
		out.Mark(listenSegmentsSmall, host.Absent("this kernel does not tell the peer's window (Linux 5.4 does)"))
	} else {
		out.Put(listenSegmentsSmall, float64(l.smallSegments), l.name, l.owner)
	}
	if l.unacked > 0 {
		out.Put(listenRoundTrip, float64(l.roundTrips)/float64(l.unacked)/1e6, l.name, l.owner)
		out.Put(listenShortestTrip, float64(l.shortestTrips)/float64(l.unacked)/1e6, l.name, l.owner)
	}
	r.putFilled(out, l)
	out.Put(listenSent, l.sent, l.name, l.owner)
	for by, name := range heldNames {
		out.Put(listenHeld, l.held[by], l.name, l.owner, name)
	}
	for to, name := range toNames {
		out.Put(listenSegments, float64(l.to.by[to].sent), l.name, l.owner, name)
		out.Put(listenAgain, float64(l.to.by[to].again), l.name, l.owner, name)
		out.Put(listenCame, float64(l.to.by[to].came), l.name, l.owner, name)
	}
}

// putFilled puts the receive windows that were full. In the first dump, and right after another, nobody knows.
func (r *reader) putFilled(out *probe.Out, l *listener) {
	if r.progress.took < shortLook {
		return
	}
	n := float64(l.filled.connections)
	out.Put(listenFilled, n, l.name, l.owner)
	if n > 0 {
		out.Put(listenWindow, float64(l.filled.windows)/n, l.name, l.owner)
		out.Put(listenBuffer, float64(l.filled.buffers)/n, l.name, l.owner)
		out.Put(listenWay, float64(l.filled.trips)/n/1e6, l.name, l.owner)
	}
}

func (r *reader) putDestinations(out *probe.Out, all []destination, portsKnown bool) {
	chosen, cut := r.reported.choose(all)
	for i := range chosen {
		d := &chosen[i]
		dst := r.reported[d.dst]
		if portsKnown {
			out.Put(portsUsed, float64(d.ports), dst)
			out.Put(portsTimeWait, float64(d.held), dst)
			out.Put(portsUsable, float64(r.flows.usable.size), dst)
		}
		out.Put(destinationUnacked, float64(d.unacked), dst)
		out.Put(destinationSilent, float64(d.silent), dst)
		out.Put(destinationResending, float64(d.resending), dst)
		out.Put(destinationGaps, float64(d.gaps), dst)
		if !r.noInfo {
			out.Put(destinationReceived, r.carried[d.dst].received, dst)
			out.Put(destinationSent, r.carried[d.dst].sent, dst)
			out.Put(destinationRestarted, float64(r.restarted[d.dst]), dst)
			for by, name := range heldNames {
				out.Put(destinationHeld, r.carried[d.dst].held[by], dst, name)
			}
			if d.unacked > 0 {
				out.Put(destinationSmoothed, float64(d.smoothed)/float64(d.unacked)/1e6, dst)
			}
		}
		if d.measured > 0 {
			out.Put(destinationRoundTrip, float64(d.trips)/float64(d.measured)/1e6, dst)
		}
		for s, n := range d.states {
			out.Put(destinationSockets, float64(n), dst, stateNames[s])
		}
	}
	if err := r.clients.find(chosen, out.Now()); err != nil {
		out.Mark(destinationOwner, fmt.Errorf("find who connects to destinations: %w", err))
	}
	for i := range chosen {
		for _, owner := range r.clients.of(chosen[i].dst) {
			out.Put(destinationOwner, 1, r.reported[chosen[i].dst], owner)
		}
	}
	if cut && len(r.reported) >= maxEverReported {
		out.Full()
	}
	if cut || r.flows.beyond > 0 {
		out.Note(fmt.Sprintf("host %s connects to more destinations than are reported: the %d that use most ports in each reading, %d in a run",
			r.host.Name, maxDestinations, maxEverReported))
	}
}
