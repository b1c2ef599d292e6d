package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// timeWait is how long Linux keeps a connection that it closed first
	// (TCP_TIMEWAIT_LEN, include/net/tcp.h), and a second for its timer.
	timeWait = 61 * time.Second
	// fewPorts is the share of the ports that may be taken so when a load begins.
	fewPorts = 0.05
)

// portsFree waits until the connections of an earlier load have left TIME_WAIT on
// this host: connect() searches the longer for a port the more of them are taken,
// so that the next load would not be the same. What does not end by then is not
// ours; where the numbers cannot be read nothing is waited for.
func portsFree(ctx context.Context, w *world) error {
	line := w.progress()
	defer line.end()
	for begin := time.Now(); time.Since(begin) < timeWait; {
		taken, of := timeWaits()
		if float64(taken) <= fewPorts*float64(of) {
			return nil
		}
		if line != nil {
			line.say(fmt.Sprintf("waiting for the last load's ports: %d in TIME_WAIT", taken))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return nil
}

// timeWaits is how many connections of this network namespace are in TIME_WAIT, and
// how many ports connect() may choose from; zeros where that cannot be read.
func timeWaits() (taken, of int) {
	text, err := os.ReadFile("/proc/self/net/sockstat")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		for i := 1; i+1 < len(fields) && fields[0] == "TCP:"; i += 2 {
			if fields[i] == "tw" {
				taken, _ = strconv.Atoi(fields[i+1])
			}
		}
	}
	text, err = os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, 0
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil {
		return 0, 0
	}
	return taken, high - low + 1
}
