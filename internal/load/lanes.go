package load

// lanes are a connection that several requests share, and the places for these: what HTTP/2's streams and HTTP/1.1's
// pipelining have in common, which is who waits for the connection, and who goes on when.
type lanes struct {
	carrier *conn   // its socket
	places  []conn  // each is a place for one request at a time
	parked  []*conn // lanes that want to begin a request when one can
	spare   []*conn // what parked was before
	done    []*conn // lanes that have their replies and are yet to go on; undone is what they were before
	undone  []*conn
	// opener is the lane whose request the connection is opened for, until it stands.
	opener *conn
	owed   outcome // of the next request: something came that nobody asked for

	heardAt int64 // when anything came
	batched bool  // lanes that have their replies wait for others, since that moment
	since   int64
}

// lay makes places of a thread's connection number i, and lets them wait for their time.
func (w *lanes) lay(t *thread, i int, places []conn) {
	w.carrier, w.places = &t.conns[i], places
	w.carrier.carries = true
	for j := range places {
		c := &places[j]
		c.fd, c.name, c.state, c.place = -1, int32(i), idle, int32(j)
		wakes := w.carrier.wakes
		if j > 0 {
			wakes = max(wakes, t.shared.timeline.calm) // one request after another until then
		}
		t.place(c, wakes)
	}
}

// takes says whether a request could begin at c: that opens the connection, or it stands and there is room. If not, c waits.
func (w *lanes) takes(c *conn, room bool) bool {
	switch none := w.carrier.state == closed; {
	case w.opener == nil && (none || room), w.opener == c && none:
		return true
	}
	w.parked = append(w.parked, c)
	return false
}

// ready says whether the connection stands on which c's request, which has just begun, is to be sent. Else it is opened for it,
// and an outcome says that this failed at once; or the request has ended, by what came before it was sent.
func (t *thread) ready(w *lanes, c *conn) (bool, outcome) {
	switch k := w.carrier; {
	case w.owed != 0:
		t.pay(w, c)
		return false, 0
	case k.state == closed:
		w.opener, c.state = c, connecting
		k.phase, k.start, k.booked = c.phase, c.start, c.booked // until it stands, its time is the opener's
		return false, t.open(k)
	}
	return true, 0
}

// pay ends c's request by what nobody asked for.
func (t *thread) pay(w *lanes, c *conn) {
	o := w.owed
	w.owed = 0
	opens := w.opener == c // which it does not need to for that
	if opens {
		w.opener = nil
	}
	t.protocol.fail(c, o)
	if opens {
		t.unpark(w)
	}
}

// stands is called when the connection does; it returns the lane that it was opened for.
func (w *lanes) stands() *conn {
	k, c := w.carrier, w.opener
	w.opener, c.booked, c.early = nil, k.booked, k.early
	k.state, k.booked, k.lost = idle, 0, 0
	return c
}

// unpark lets lanes begin that could not.
func (t *thread) unpark(w *lanes) {
	waiting := w.parked
	w.parked, w.spare = w.spare[:0], waiting
	for _, c := range waiting {
		t.next(c, t.woke)
	}
}

// goOn gives the lanes that have their replies something to do.
func (t *thread) goOn(w *lanes) {
	done := w.done
	w.done, w.undone = w.undone[:0], done
	for _, c := range done {
		t.next(c, t.woke)
	}
}

// longestBatch is how long lanes that have their replies wait for others of their connection.
const longestBatch = 240_000

// batches are the connections whose next requests wait for more replies. A server sends its replies in pieces; who answers
// each at once gets ever smaller ones, for which both sides pay. So in a closed loop lanes wait for those whose replies are
// about to come, and all begin together: while each look finds more, and no longer than longestBatch.
type batches []*lanes

// takes says whether the lanes of w go on later, of which others are in flight if so said.
func (b *batches) takes(t *thread, w *lanes, others bool) bool {
	if len(w.done) == 0 || !others || t.paced() {
		return false
	}
	if !w.batched {
		w.batched, w.since = true, t.now
		*b = append(*b, w)
	}
	return true
}

// waits says whether w's lanes wait on, at the end of a turn.
func (w *lanes) waits(t *thread, others bool) bool {
	w.batched = w.heardAt >= t.woke && others && t.now-w.since < longestBatch
	return w.batched
}

// drop closes a connection, of which its protocol knows nothing any more. The requests on it end with an outcome.
func (t *thread) drop(w *lanes, o outcome) {
	if c := w.opener; c != nil {
		c.booked = max(c.booked, w.carrier.booked)
		if o.kind() != connectFailed && o.kind() != tlsFailed && o.kind() != tlsAlert {
			w.opener = nil
		}
	}
	t.hangUp(w.carrier)
	var open []*conn
	for i := range w.places {
		if c := &w.places[i]; c.state != idle {
			t.unanswered(c, o)
			c.state = idle
			open = append(open, c)
		}
	}
	for _, c := range open {
		t.after(c, o)
	}
	t.goOn(w)
	t.unpark(w)
}
