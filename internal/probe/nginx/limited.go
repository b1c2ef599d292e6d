package nginx

// maxClients bounds the clients that are told apart, some 100 bytes each.
const maxClients = 10000

// limited counts good responses from the first request on that limit_req refused or held back: all of them,
// and theirs, of the clients that it has done so to. Both only grow.
type limited struct {
	all, theirs uint64
	clients     map[string]*client // by address; nil as long as nobody was limited
	tooMany     bool               // which were left out cannot be told then
}

type client struct {
	good    uint64
	limited bool
}

// of is a client; nil where there is no room.
func (l *limited) of(address string) *client {
	c := l.clients[address]
	if c == nil && len(l.clients) >= maxClients {
		l.tooMany = true
		return nil
	}
	if c == nil {
		c = &client{}
		l.clients[address] = c
	}
	return c
}

// note takes a client of which a request was refused or held back.
func (l *limited) note(address string) {
	if l.clients == nil {
		l.clients = map[string]*client{}
	}
	if c := l.of(address); c != nil && !c.limited {
		c.limited = true
		l.theirs += c.good
	}
}

// served takes a good response to a client.
func (l *limited) served(address []byte) {
	if len(address) == 0 {
		return
	}
	l.all++
	c := l.clients[string(address)]
	if c == nil {
		c = l.of(string(address))
	}
	if c == nil {
		return
	}
	if c.good++; c.limited {
		l.theirs++
	}
}

// told tells whether somebody was limited, and all clients are known.
func (l *limited) told() bool { return l.clients != nil && !l.tooMany }
