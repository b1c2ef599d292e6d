package load

import (
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

var (
	requestsTotal = &model.Signal{
		Name: "plimsoll_load_requests_total", Kind: model.Counter, Unit: "requests",
		Help:   "Requests begun by the load, by the phase in which they began; in an open loop at their planned time.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "wrk -t1 -c100 -d10s URL   (\"requests in\")",
	}
	outcomesTotal = &model.Signal{
		Name: "plimsoll_load_outcomes_total", Kind: model.Counter, Unit: "requests",
		Help:   "How the load's requests ended: status class (2xx), step and errno (connect:ECONNREFUSED, read:timeout, read:eof), tls:reason, or protocol:fault; exactly one for each request, by the phase in which it began.",
		Labels: []string{"phase", "outcome"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "strace -f -e trace=connect,sendto,recvfrom -p $(pidof plimsoll-load)",
	}
	repliesTotal = &model.Signal{
		Name: "plimsoll_load_replies_total", Kind: model.Counter, Unit: "replies",
		Help:   "Complete replies to the load's requests by their exact status, those included that a file of targets did not expect; by the phase in which the request began.",
		Labels: []string{"phase", "status"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "curl -so /dev/null -w '%{http_code}\\n' URL",
	}
	waitSecondsTotal = &model.Signal{
		Name: "plimsoll_load_wait_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help:   "How long the load's users waited, summed by what they got in the end; from the intended time of the request to its outcome.",
		Labels: []string{"phase", "outcome"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "curl -so /dev/null -w '%{time_total}\\n' URL",
	}
	partSecondsTotal = &model.Signal{
		Name: "plimsoll_load_request_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help:   "Where the requests' time went, by the phase in which they began. Parts do not overlap and add up to the waits: queue (no connection was free), late (the generator was behind), connect, tls (the TLS handshake), first_byte (until the reply's first bytes), body (until its last); connect_lag, tls_lag and reply_lag: the generator had been told and handled other connections first.",
		Labels: []string{"phase", "part"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "curl -so /dev/null -w '%{time_connect} %{time_starttransfer} %{time_total}\\n' URL",
	}
	attemptsTotal = &model.Signal{
		Name: "plimsoll_load_connect_attempts_total", Kind: model.Counter, Unit: "attempts",
		Help:   "Connections that the load tried for, by the phase in which they were wanted. Those that failed are outcomes, too (connect:ERRNO).",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "strace -f -c -e trace=socket -p $(pidof plimsoll-load)",
	}
	receivedBytesTotal = &model.Signal{
		Name: "plimsoll_load_received_bytes_total", Kind: model.Counter, Unit: "bytes",
		Help:   "What the load received, as HTTP has it: heads, bodies and frames, over TLS before it was sealed, by the phase of the request.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "curl -so /dev/null -w '%{size_header} %{size_download}\\n' URL",
	}
	sentBytesTotal = &model.Signal{
		Name: "plimsoll_load_sent_bytes_total", Kind: model.Counter, Unit: "bytes",
		Help:   "What the load sent, as HTTP has it: heads, bodies and frames, over TLS before it was sealed, by the phase of the request.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "curl -so /dev/null -w '%{size_request} %{size_upload}\\n' URL",
	}
	connectionsMissing = &model.Signal{
		Name: "plimsoll_load_connections_missing", Kind: model.Gauge, Unit: "connections",
		Help:   "Connections of the plan that never stood, once the load is over: failed, each attempt at them did; untried, none was made in time (closed loop).",
		Labels: []string{"why"},
		Source: "counted by the load generator",
		ByHand: "ss -tn state established dst ADDRESS | wc -l   (while the load lasts)",
	}
	connectionsStood = &model.Signal{
		Name: "plimsoll_load_connections_stood", Kind: model.Gauge, Unit: "connections",
		Help:   "Connections that stood at one time or another, once the load is over, where an open loop may open more of them than it begins with (--max-connections).",
		Source: "counted by the load generator",
		ByHand: "ss -tn state established dst ADDRESS | wc -l   (while the load lasts)",
	}
	connectCallSum = &model.Signal{
		Name: "plimsoll_load_connect_call_seconds_sum", Kind: model.Counter, Unit: "seconds",
		Help:   "Time inside the load's connect() calls, which do not wait for the server: the kernel looks for a free local port in them, and sends the SYN.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "strace -f -T -e trace=connect -p $(pidof plimsoll-load)",
	}
	connectCallCount = &model.Signal{
		Name: "plimsoll_load_connect_call_seconds_count", Kind: model.Counter, Unit: "calls",
		Help:   "connect() calls of the load, failed ones too, whose time is in the sum.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "strace -f -c -e trace=connect -p $(pidof plimsoll-load)",
	}
	replyUnreadSum = &model.Signal{
		Name: "plimsoll_load_reply_unread_seconds_sum", Kind: model.Counter, Unit: "seconds",
		Help:   "How long bytes of replies lay in the kernel before the generator turned to them, all reads of a request added up; the requests of one connection of eight.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "SO_TIMESTAMPING software receive time stamps against the generator's clock",
		ByHand: "ss -tnp | grep plimsoll-load   (column Recv-Q)",
	}
	replyUnreadCount = &model.Signal{
		Name: "plimsoll_load_reply_unread_seconds_count", Kind: model.Counter, Unit: "requests",
		Help:   "Requests whose time is in the sum.",
		Labels: []string{"phase"}, StartsAtZero: true,
		Source: "SO_TIMESTAMPING software receive time stamps",
		ByHand: "ss -tnp | grep plimsoll-load   (column Recv-Q)",
	}
	latencySeconds = &model.Signal{
		Name: "plimsoll_load_latency_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "Latency quantiles since the phase began: response (replies, from the intended time), service (replies, from the begin), connect, first_byte (replies, from when the request was sent to their first bytes), transfer (from there to their last), waited (all requests, failed ones too). 1 is the maximum.",
		Labels: []string{"phase", "kind", "quantile"},
		Source: "HDR histograms of the load generator, 1 µs to 60 s, 3 digits",
		ByHand: "curl -so /dev/null -w '%{time_connect} %{time_total}\\n' URL",
	}
	connections = &model.Signal{
		Name: "plimsoll_load_connections", Kind: model.Gauge, Unit: "sockets",
		Help:   "Sockets of the load: connecting; open, which is established; idle, which is those of the open without a request in flight; closed, which is those that an open loop has places for, and no request.",
		Labels: []string{"state"},
		Source: "counted by the load generator",
		ByHand: "ss -tnp state all | grep plimsoll-load",
	}
	cpuSeconds = &model.Signal{
		Name: "plimsoll_load_cpu_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help:   "Processor time of the load generator's own threads; rest is its threads that send nothing.",
		Labels: []string{"thread", "mode"}, StartsAtZero: true,
		Source: "getrusage(RUSAGE_THREAD), getrusage(RUSAGE_SELF)",
		ByHand: "pidstat -t -p $(pidof plimsoll-load) 1",
	}
	sendDelaySeconds = &model.Signal{
		Name: "plimsoll_load_send_delay_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How late requests were sent: against their intended time (open loop) or against the moment the thread woke with leave to send them (closed loop). 1 is the maximum.",
		Labels: []string{"phase", "quantile"},
		Source: "HDR histogram of the load generator",
		ByHand: "perf sched timehist -p $(pidof plimsoll-load)",
	}
	scheduleLagSeconds = &model.Signal{
		Name: "plimsoll_load_schedule_lag_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How late an open loop's requests were sent although a connection was free: by how much the generator was behind its own schedule. 1 is the maximum.",
		Labels: []string{"phase", "quantile"},
		Source: "HDR histogram of the load generator",
		ByHand: "perf sched timehist -p $(pidof plimsoll-load)",
	}
	tlsHandshakesTotal = &model.Signal{
		Name: "plimsoll_load_tls_handshakes_total", Kind: model.Counter, Unit: "handshakes",
		Help:   "TLS handshakes of the load that were done, by what was agreed upon (OpenTelemetry's attributes tls.protocol.version, tls.cipher, tls.resumed). Those that failed are outcomes (tls:REASON).",
		Labels: []string{"phase", "tls_protocol_version", "tls_cipher", "tls_resumed"}, StartsAtZero: true,
		Source: "crypto/tls in the load generator",
		ByHand: "openssl s_client -connect ADDRESS -reconnect </dev/null   (New, Reused)",
	}
	tlsHandshakeSeconds = &model.Signal{
		Name: "plimsoll_load_tls_handshake_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How long the load's TLS handshakes took that were done, from the connection's standing to their end, since the load began; the generator's own signatures and its wait for a CPU are in it. 1 is the maximum.",
		Labels: []string{"tls_resumed", "quantile"},
		Source: "HDR histograms of the load generator",
		ByHand: "curl -so /dev/null -w '%{time_connect} %{time_appconnect}\n' URL",
	}
	tlsCryptoSum = &model.Signal{
		Name: "plimsoll_load_tls_crypto_seconds_sum", Kind: model.Counter, Unit: "seconds",
		Help:         "What sealing requests and opening their replies took of the load generator's threads (TLS in user space, without the handshakes); the requests of one connection of eight, in an open loop all.",
		StartsAtZero: true,
		Source:       "the load generator's clock around crypto/tls",
		ByHand:       "perf top -p $(pidof plimsoll-load)   (crypto/…)",
	}
	tlsCryptoCount = &model.Signal{
		Name: "plimsoll_load_tls_crypto_seconds_count", Kind: model.Counter, Unit: "requests",
		Help:         "Requests whose sealing and opening is in the sum.",
		StartsAtZero: true,
		Source:       "counted by the load generator",
		ByHand:       "perf top -p $(pidof plimsoll-load)   (crypto/…)",
	}
	dnsSeconds = &model.Signal{
		Name: "plimsoll_load_dns_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How long it took to find the address of the load's URL, once, before the load; not there where the URL has an address.",
		Source: "the load generator's clock around the resolver",
		ByHand: "curl -so /dev/null -w '%{time_namelookup}\\n' URL",
	}
	targetOutcomesTotal = &model.Signal{
		Name: "plimsoll_load_target_outcomes_total", Kind: model.Counter, Unit: "requests",
		Help:   "How the hold phase's requests ended, by the name of their target (--targets).",
		Labels: []string{"target", "outcome"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "awk '{n[$7\" \"$9]++} END {for (k in n) print n[k], k}' /var/log/nginx/access.log",
	}
	targetLatencySeconds = &model.Signal{
		Name: "plimsoll_load_target_latency_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "Latency of replies in the hold phase, by the name of their target, since the phase began, within 1 %. From the intended send time. 1 is the maximum.",
		Labels: []string{"target", "quantile"},
		Source: "HDR histograms of the load generator",
		ByHand: "awk '{print $7, $NF}' /var/log/nginx/access.log | sort -k1,1 -k2,2n   (with $request_time last in log_format)",
	}
	stageOutcomesTotal = &model.Signal{
		Name: "plimsoll_load_stage_outcomes_total", Kind: model.Counter, Unit: "requests",
		Help:   "How the hold phase's requests ended, by the number of the stage (--stage) in which they were due, from 0 on.",
		Labels: []string{"stage", "outcome"}, StartsAtZero: true,
		Source: "counted by the load generator",
		ByHand: "awk '{n[$4\" \"$9]++} END {for (k in n) print n[k], k}' /var/log/nginx/access.log",
	}
	stageLatencySeconds = &model.Signal{
		Name: "plimsoll_load_stage_latency_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "Latency of replies in the hold phase, by the number of the stage in which their requests were due, within 1 %. From the intended send time. 1 is the maximum.",
		Labels: []string{"stage", "quantile"},
		Source: "HDR histograms of the load generator",
		ByHand: "awk '{print $4, $NF}' /var/log/nginx/access.log   (with $request_time last in log_format)",
	}
	stageLagSeconds = &model.Signal{
		Name: "plimsoll_load_stage_schedule_lag_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How late the requests of a stage (--stage, numbered from 0 on) were sent although a connection was free, within 1 %: by how much the generator was behind its own schedule. 1 is the maximum.",
		Labels: []string{"stage", "quantile"},
		Source: "HDR histograms of the load generator",
		ByHand: "perf sched timehist -p $(pidof plimsoll-load)",
	}
	unreadSeconds = &model.Signal{
		Name: "plimsoll_load_unread_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "How long what the server sent lay in the kernel before the load generator read it: in a closed loop its own share of the measured latency. One connection of eight is watched there, each in an open loop. 1 is the maximum.",
		Labels: []string{"phase", "quantile"},
		Source: "SO_TIMESTAMPING software receive time stamps against the time of recvmsg",
		ByHand: "ss -tnp | grep plimsoll-load   (column Recv-Q)",
	}
)

// Signals are all that the load says about itself.
var Signals = []*model.Signal{
	requestsTotal, outcomesTotal, repliesTotal, waitSecondsTotal, partSecondsTotal, attemptsTotal, receivedBytesTotal, sentBytesTotal, connectCallSum, connectCallCount, replyUnreadSum, replyUnreadCount,
	latencySeconds, connections, connectionsMissing, connectionsStood, cpuSeconds, sendDelaySeconds, scheduleLagSeconds, unreadSeconds,
	tlsHandshakesTotal, tlsHandshakeSeconds, tlsCryptoSum, tlsCryptoCount, targetOutcomesTotal, targetLatencySeconds, stageOutcomesTotal, stageLatencySeconds, stageLagSeconds, dnsSeconds,
}

// unknownToIOURing are those that no load by io_uring tells with a connection for each request.
var unknownToIOURing = []*model.Signal{connectCallSum, connectCallCount, replyUnreadSum, replyUnreadCount, unreadSeconds}

// StatusOf says whether a load of this plan tells a signal.
func StatusOf(plan *model.LoadPlan, s *model.Signal) model.Status {
	if plan.Engine == model.IOURing && !plan.KeepAlive && slices.Contains(unknownToIOURing, s) {
		return model.Status{State: model.Absent, Why: "a load by io_uring with a connection for each request does not tell it: --engine epoll does"}
	}
	return model.Status{State: model.Read}
}

// ofWhole are what is one number of the whole load, also where several workers play it: quantiles of all its requests. All else can be
// added up, or is about a worker itself: by how much it was behind.
var ofWhole = []*model.Signal{latencySeconds, tlsHandshakeSeconds, targetLatencySeconds, stageLatencySeconds, stageLagSeconds, dnsSeconds}

// SamplesBy puts everything that r holds with the host of which it is: of a sum of workers, each one's under the
// worker's, and what is of the whole under first; of a worker that told nothing new, nothing.
func (r *Record) SamplesBy(first string, put func(host string, s *model.Signal, v float64, labels ...string)) {
	r.Samples(func(s *model.Signal, v float64, labels ...string) {
		if len(r.Workers) == 0 || slices.Contains(ofWhole, s) {
			put(first, s, v, labels...)
		}
	})
	hosts := map[string][]WorkerRecord{}
	for _, w := range r.Workers {
		hosts[w.Host] = append(hosts[w.Host], w)
	}
	for host, list := range hosts {
		if slices.ContainsFunc(list, func(w WorkerRecord) bool { return w.Fresh }) {
			together(list, func(s *model.Signal, v float64, labels ...string) { put(host, s, v, labels...) })
		}
	}
}

// behind are those of which the worst of a host's workers tells.
var behind = []*model.Signal{sendDelaySeconds, scheduleLagSeconds, unreadSeconds}

// together puts what the workers of one host told, each series once: what they counted is added up, and threads have their
// worker's name before their own.
func together(list []WorkerRecord, put func(s *model.Signal, v float64, labels ...string)) {
	type series struct {
		signal *model.Signal
		labels string
	}
	values, labelsOf := map[series]float64{}, map[series][]string{}
	for _, w := range list {
		if w.Record == nil {
			continue
		}
		w.Record.Samples(func(s *model.Signal, v float64, labels ...string) {
			if slices.Contains(ofWhole, s) {
				return
			}
			if s == cpuSeconds && len(list) > 1 && labels[0] != restOfThreads {
				labels[0] = w.Name + "/" + labels[0]
			}
			key := series{s, strings.Join(labels, "\x00")}
			labelsOf[key] = labels
			if slices.Contains(behind, s) {
				values[key] = max(values[key], v)
			} else {
				values[key] += v
			}
		})
	}
	for key, v := range values {
		put(key.signal, v, labelsOf[key]...)
	}
}

// Samples puts everything that r holds. A quantile of nothing is not put.
func (r *Record) Samples(put func(s *model.Signal, v float64, labels ...string)) {
	for i := range r.Phases {
		p := &r.Phases[i]
		put(requestsTotal, float64(p.Requests), p.Phase)
		for outcome, n := range p.Outcomes {
			put(outcomesTotal, float64(n), p.Phase, outcome)
		}
		for status, n := range p.Statuses {
			put(repliesTotal, float64(n), p.Phase, status)
		}
		for outcome, s := range p.Waits {
			put(waitSecondsTotal, s, p.Phase, outcome)
		}
		for part, s := range p.Parts {
			put(partSecondsTotal, s, p.Phase, part)
		}
		put(attemptsTotal, float64(p.Attempts), p.Phase)
		put(receivedBytesTotal, float64(p.Received), p.Phase)
		put(sentBytesTotal, float64(p.Sent), p.Phase)
		putDurations(put, connectCallSum, connectCallCount, p.ConnectCalls, p.Phase)
		putDurations(put, replyUnreadSum, replyUnreadCount, p.ReplyUnread, p.Phase)
		putQuantiles(put, latencySeconds, p.Response, p.Phase, "response")
		putQuantiles(put, latencySeconds, p.Service, p.Phase, "service")
		putQuantiles(put, latencySeconds, p.Connect, p.Phase, "connect")
		putQuantiles(put, latencySeconds, p.FirstByte, p.Phase, "first_byte")
		putQuantiles(put, latencySeconds, p.Transfer, p.Phase, "transfer")
		putQuantiles(put, latencySeconds, p.Waited, p.Phase, "waited")
		putQuantiles(put, sendDelaySeconds, p.SendDelay, p.Phase)
		putQuantiles(put, scheduleLagSeconds, p.Lag, p.Phase)
		putQuantiles(put, unreadSeconds, p.Unread, p.Phase)
	}
	if r.TLS != nil {
		r.TLS.samples(put)
	}
	if r.DNS != nil {
		put(dnsSeconds, *r.DNS)
	}
	for _, t := range r.Targets {
		for outcome, n := range t.Outcomes {
			put(targetOutcomesTotal, float64(n), t.Name, outcome)
		}
		putQuantiles(put, targetLatencySeconds, t.Response, t.Name)
	}
	for _, s := range r.Stages {
		for outcome, n := range s.Outcomes {
			put(stageOutcomesTotal, float64(n), strconv.Itoa(s.Stage), outcome)
		}
		putQuantiles(put, stageLatencySeconds, s.Response, strconv.Itoa(s.Stage))
		putQuantiles(put, stageLagSeconds, s.Lag, strconv.Itoa(s.Stage))
	}
	put(connections, float64(r.Connections.Connecting), "connecting")
	put(connections, float64(r.Connections.Open), "open")
	put(connections, float64(r.Connections.Idle), "idle")
	put(connections, float64(r.Connections.Closed), "closed")
	if r.Final {
		put(connectionsMissing, float64(r.Connections.Failed), "failed")
		put(connectionsMissing, float64(r.Connections.Untried), "untried")
		if r.Connections.Stood > 0 {
			put(connectionsStood, float64(r.Connections.Stood))
		}
	}
	for _, t := range r.Threads {
		put(cpuSeconds, t.User, t.Thread, "user")
		put(cpuSeconds, t.System, t.Thread, "system")
	}
}

func (r *TLSRecord) samples(put func(s *model.Signal, v float64, labels ...string)) {
	for _, h := range r.Handshakes {
		put(tlsHandshakesTotal, float64(h.Count), h.Phase, h.Version, h.Cipher, strconv.FormatBool(h.Resumed))
	}
	putQuantiles(put, tlsHandshakeSeconds, r.Full, "false")
	putQuantiles(put, tlsHandshakeSeconds, r.Resumed, "true")
	put(tlsCryptoSum, r.Crypto.Seconds)
	put(tlsCryptoCount, float64(r.Crypto.Count))
}

// putDurations puts what was measured: of nothing there is no sum.
func putDurations(put func(*model.Signal, float64, ...string), sum, count *model.Signal, d Durations, phase string) {
	if d.Count > 0 {
		put(sum, d.Seconds, phase)
		put(count, float64(d.Count), phase)
	}
}

func putQuantiles(put func(*model.Signal, float64, ...string), s *model.Signal, q model.Quantiles, labels ...string) {
	if q.Count == 0 {
		return
	}
	for _, v := range []struct {
		quantile string
		micros   float64
	}{{"0.5", q.P50}, {"0.9", q.P90}, {"0.95", q.P95}, {"0.99", q.P99}, {"0.999", q.P999}, {"1", q.Max}} {
		put(s, v.micros/1e6, append(labels[:len(labels):len(labels)], v.quantile)...)
	}
}
