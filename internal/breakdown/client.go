package breakdown

import (
	"strings"

	"plimsoll/internal/model"
)

const (
	partsSignal       = "plimsoll_load_request_seconds_total"
	connectCallSignal = "plimsoll_load_connect_call_seconds_sum"
	unreadSumSignal   = "plimsoll_load_reply_unread_seconds_sum"
	unreadCountSignal = "plimsoll_load_reply_unread_seconds_count"
	stampedSignal     = "plimsoll_load_unread_seconds"
)

// engine is the process group of our load generator.
const engine = "plimsoll-load"

// clientParts is what the generator tells of the mean request.
type clientParts struct {
	before, after []part // before and after the server's
	// served is from the last byte of the request sent to the last of the reply
	// received: the time of the server and of the way to it.
	served   measured
	warnings []string
}

// perRequest is one of the generator's sums over the requests that began in
// hold, whenever they ended, divided by them.
func (r *reader) perRequest(n float64, signal string, pairs ...string) measured {
	sum := 0.0
	for _, host := range r.meta.Plan.From() {
		if why := r.unseen(host, signal); why != "" {
			return measured{why: why}
		}
		for _, l := range r.series(signal, append([]string{"host", host, "phase", model.Hold}, pairs...)...) {
			sum += l.Last()
		}
	}
	return measured{value: sum / n}
}

// client computes the generator's parts; n requests began in hold, and the
// share replied of them had a reply.
func (r *reader) client(n, replied float64) clientParts {
	spent := func(name string) measured { return r.perRequest(n, partsSignal, "part", name) }
	var c clientParts
	if r.meta.Plan.Load.Rate > 0 {
		c.before = append(c.before,
			fromMeasured("queue", "no connection was free", spent("queue"), model.Exact, partsSignal),
			fromMeasured("late", "sent late", spent("late"), model.Exact, partsSignal))
	}
	c.before = append(c.before, r.connecting(n, spent("connect")),
		fromMeasured("connect_lag", "connect seen late", spent("connect_lag"), model.Exact, partsSignal))
	if strings.HasPrefix(r.meta.Plan.Load.URL, "https:") {
		c.before = append(c.before,
			fromMeasured("tls", "TLS handshake", spent("tls"), model.Exact, partsSignal),
			fromMeasured("tls_lag", "TLS handshake's end seen late", spent("tls_lag"), model.Exact, partsSignal))
	}
	lag := r.replyUnread(n, replied, spent("reply_lag"))
	lag.Parts = r.generatorsReasons(lag)
	c.after = []part{lag}
	c.served = spent("first_byte")
	if c.served.known() {
		c.served.value += spent("body").value + spent("reply_lag").value - *lag.Seconds
		if c.served.value < 0 {
			c.warnings = append(c.warnings, "the replies whose time was stamped were left unread for longer than the mean request waited for its reply")
			c.served.value = 0
		}
	}
	where := r.meta.Plan.Generator
	if len(r.meta.Plan.Generators) > 1 {
		where = "" // at all of them
	}
	at(where, engine, c.before...)
	at(where, engine, c.after...)
	return c
}

// connecting tells what connect() itself burnt from the wait for the server's answer.
func (r *reader) connecting(n float64, all measured) part {
	p := fromMeasured("connect", "connecting", all, model.Exact, partsSignal)
	call := r.perRequest(n, connectCallSignal)
	if !all.known() || !call.known() || all.value == 0 {
		return p
	}
	call.value = min(call.value, all.value)
	p.Parts = []part{
		known("connect_call", "in connect()", call.value, model.Exact, connectCallSignal),
		known("syn_wait", "until SYN was answered", all.value-call.value, model.Exact, partsSignal, connectCallSignal),
	}
	return p
}

// generatorsReasons says why the generator did not read replies at once.
func (r *reader) generatorsReasons(lag part) []part {
	spent := func(signal string, pairs ...string) (sum measured) {
		for _, host := range r.meta.Plan.From() {
			one := r.increase(host, signal, append([]string{"groupname", engine}, pairs...)...)
			if !one.known() {
				return one
			}
			sum.value += one.value
		}
		return sum
	}
	a := &activity{wait: spent(runDelaySignal), waitSignal: runDelaySignal}
	a.user, a.system = spent(cpuSignal, "mode", "user"), spent(cpuSignal, "mode", "system")
	if lag.Seconds == nil || *lag.Seconds == 0 || !a.user.known() || !a.wait.known() || a.user.value+a.system.value+a.wait.value == 0 {
		return nil
	}
	return reasons(a, *lag.Seconds)
}

// replyUnread is how long replies lay unread: by the kernel's stamps on some
// connections; without them, what the generator knows it made them wait.
func (r *reader) replyUnread(n, replied float64, lag measured) part {
	const text = "reply waits to be read"
	sum, count := r.perRequest(n, unreadSumSignal), r.perRequest(n, unreadCountSignal)
	if sum.known() && count.known() && count.value > 0 {
		p := known("reply_unread", text, replied*sum.value/count.value, model.Estimate, unreadSumSignal, unreadCountSignal)
		p.Why = "measured on one connection of eight"
		return p
	}
	p := fromMeasured("reply_unread", text, lag, model.Estimate, partsSignal)
	switch {
	case !lag.known():
	case r.meta.Plan.Load.Rate > 0 && len(r.series(stampedSignal, "phase", model.Hold)) > 0:
		p.Why = "at a fixed rate a reply's time ends when it came, by the kernel's stamp"
	default:
		p.Why = "the least that it may be: no reply's arrival was stamped"
	}
	return p
}
