package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// reachTries is how often silence is taken for bad luck: a service in trouble
// drops a connect now and then, and is then just what Plimsoll is for.
const reachTries = 3

// reach makes sure that the load fits onto this machine (see preflight), and that
// there is something at the target to drive load at: a
// run against nothing would only measure the waiting. may says that the user may load whom it
// hits, a stranger included; watched says that the
// user named hosts to observe: silence may then be the very fault (a full
// table, a full queue), which a run can find. What is short on our own side (a
// port, a descriptor) is also for the run to find.
func reach(ctx context.Context, w *world, plan model.LoadPlan, may, watched bool) error {
	if !may {
		if err := spareStrangers(ctx, plan); err != nil {
			return err
		}
	}
	if err := preflight(ctx, w, plan); err != nil {
		return err
	}
	network, address, err := addressOf(plan)
	if err != nil {
		return err // load.Check said it better, before
	}
	dialer := net.Dialer{Timeout: time.Duration(plan.TimeoutMS) * time.Millisecond}
	if from, err := load.ParseSources(plan.Sources); err == nil && len(from) > 0 {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from[0], 0))
	}
	for range reachTries {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, network, address); err == nil {
			return conn.Close()
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout net.Error
	silent := errors.As(err, &timeout) && timeout.Timeout()
	if silent && watched || isAny(err, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE) {
		return nil
	}
	if network == "unix" {
		return unreachableSocket(address, err)
	}
	return unreachable(address, err)
}

// addressOf is where a plan's connections go, for a dialer.
func addressOf(plan model.LoadPlan) (network, address string, err error) {
	if plan.UnixSocket != "" {
		return "unix", plan.UnixSocket, nil
	}
	name, port, err := load.Address(plan)
	return "tcp", net.JoinHostPort(name, port), err
}

// unreachableSocket is unreachable for a Unix socket.
func unreachableSocket(path string, err error) error {
	advice := "does the service listen there? ss -lx shows the sockets that somebody listens on"
	switch {
	case isAny(err, syscall.ENOENT):
		advice = "there is no such file: is the service running, and in the same mount namespace? ss -lx shows the sockets that somebody listens on"
	case isAny(err, syscall.EACCES, syscall.EPERM):
		advice = "to connect takes the right to write to the socket's file, and to pass its directories (ls -l, namei -l)"
	case isAny(err, syscall.EAGAIN):
		return nil // its queue is full, which is for the run to find
	}
	return fail(exitUnreachable, fmt.Errorf("cannot reach the Unix socket %s: %s: %w", path, advice, err))
}

// unreachable words why nothing answered, and what to look at.
func unreachable(address string, err error) error {
	var dns *net.DNSError
	var timeout net.Error
	advice := "is the service running, and is that its port? ss -ltn shows what listens there"
	switch {
	case errors.As(err, &dns):
		advice = "is the name right? An address works too"
	case errors.As(err, &timeout) && timeout.Timeout():
		advice = fmt.Sprintf("none of %d connects was answered; is the address right, and no firewall between? With --host for the machine it runs on, the run goes on and looks there", reachTries)
	}
	return fail(exitUnreachable, fmt.Errorf("cannot reach %s: %s: %w", address, advice, err))
}
