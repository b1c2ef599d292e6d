package load

// flightList holds the requests in flight, oldest first. Since all have the
// same timeout, the oldest is always the next to expire.
type flightList struct {
	oldest, newest *conn
}

func (l *flightList) push(c *conn) {
	c.older, c.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

func (l *flightList) remove(c *conn) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
	c.older, c.newer = nil, nil
}

// sleepers is a heap of connections, the next to wake on top. (container/heap
// would box every element.)
type sleepers []*conn

func (s *sleepers) push(c *conn) {
	*s = append(*s, c)
	h := *s
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].wakes <= h[i].wakes {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (s *sleepers) pop() *conn {
	h := *s
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*s = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].wakes < h[least].wakes {
				least = child
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// connsIn is a queue of free connections: first in, first out, so that all of
// them take their turn.
type connsIn struct {
	ring     []*conn
	first, n int
}

func (q *connsIn) push(c *conn) {
	i := q.first + q.n
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	q.ring[i] = c
	q.n++
}

// front is the first one, which stays; nil where there is none.
func (q *connsIn) front() *conn {
	if q.n == 0 {
		return nil
	}
	return q.ring[q.first]
}

func (q *connsIn) pop() *conn {
	c := q.ring[q.first]
	if q.first++; q.first == len(q.ring) {
		q.first = 0
	}
	q.n--
	return c
}
