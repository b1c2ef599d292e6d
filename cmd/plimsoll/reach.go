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

// How often a connect that fails is taken for bad luck: a service in trouble drops or refuses one now and then, and is then just
// what Plimsoll is for. Behind a balancer that still knows an instance which is gone, every second or third connect is refused.
const (
	reachTries   = 3  // in silence, each as long as the load's time limit
	refusedTries = 20 // refused or reset, which is told at once
	refusedPause = 25 * time.Millisecond
)

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
	err = knock(ctx, &dialer, network, address)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if isSilence(err) && watched || isAny(err, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE) {
		return nil
	}
	if network == "unix" {
		return unreachableSocket(address, err)
	}
	return unreachable(address, err)
}

// knock connects to an address until one connect gets in; its error is that of the last one.
func knock(ctx context.Context, dialer *net.Dialer, network, address string) error {
	silent, refused := 0, 0
	for {
		conn, err := dialer.DialContext(ctx, network, address)
		switch {
		case err == nil:
			return conn.Close()
		case isSilence(err):
			silent++
		case isAny(err, syscall.ECONNREFUSED, syscall.ECONNRESET):
			refused++
		default:
			return err
		}
		if silent == reachTries || refused == refusedTries || ctx.Err() != nil {
			return err
		}
		if refused > 0 {
			time.Sleep(refusedPause)
		}
	}
}

func isSilence(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
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
	advice := "is the service running, and is that its port? ss -ltn shows what listens there"
	switch {
	case errors.As(err, &dns):
		advice = "is the name right? An address works too"
	case isSilence(err):
		advice = fmt.Sprintf("none of %d connects was answered; is the address right, and no firewall between? With --host for the machine it runs on, the run goes on and looks there", reachTries)
	}
	return fail(exitUnreachable, fmt.Errorf("cannot reach %s: %s: %w", address, advice, err))
}
