package load

import (
	"errors"
	"fmt"

	"plimsoll/internal/model"
)

// maxRate is the highest rate that a plan may ask for, in requests per second.
const maxRate = 1e8

// maxConnections is how many connections a load may have.
const maxConnections = 10_000_000

// checkConnects says what is wrong with how connections are opened.
func checkConnects(p model.LoadPlan) error {
	most := p.Rate
	for _, s := range p.Stages {
		most = max(most, s.Rate)
	}
	switch {
	case !(p.ConnectRate >= 0 && p.ConnectRate <= maxRate): // written so that NaN is refused
		return fmt.Errorf("connect rate: %g/s: want 0 to %g", p.ConnectRate, maxRate)
	case p.ConnectRate > 0 && p.ConnectRate < leastConnectRate:
		return fmt.Errorf("connect rate: %g/s: want at least %g", p.ConnectRate, leastConnectRate)
	case p.ConnectRate > 0 && !p.KeepAlive && most > p.ConnectRate:
		return fmt.Errorf("connect rate: %g/s, and with a new connection for each request %g requests/s need as many connects: ask for fewer requests, or for more connects", p.ConnectRate, most)
	case p.MaxConnections != 0 && p.Rate == 0:
		return errors.New("max connections: those of a closed loop are always in use, so it would have them all: ask for more (-c), or give a rate (-R)")
	case p.MaxConnections != 0 && (p.MaxConnections <= p.Connections || p.MaxConnections > maxConnections):
		return fmt.Errorf("max connections: %d: want more than the %d that there are to begin with, and at most %d", p.MaxConnections, p.Connections, maxConnections)
	case len(p.Sources) > 0 && p.UnixSocket != "":
		return errors.New("source addresses: a connection to a Unix socket has none")
	}
	return nil
}

// leastConnectRate is one connection in a day.
const leastConnectRate = 1.0 / (24 * 3600)

// attemptGap is the time between two attempts of one thread.
func attemptGap(p model.LoadPlan) int64 {
	if p.ConnectRate == 0 {
		return 0
	}
	return max(int64(float64(p.Threads*p.Part.Workers())*1e9/p.ConnectRate), 1)
}
