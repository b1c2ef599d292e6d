package main

import (
	"strings"

	"plimsoll/internal/model"
)

const engineName = "load-engine"

// tlsMemory is what a connection over TLS may take in our process, in bytes: some 10 KiB
// it keeps, with long replies more (a record's most, twice), and as much its handshake leaves as garbage.
const tlsMemory = 64 << 10

// connMemory is what a connection takes in our process, in bytes; ringMemory is what it takes besides by io_uring, where it is for one
// request: its reply is received there.
const (
	connMemory = 700
	ringMemory = 16 << 10
)

// engineMemory is when the engine collects garbage after all, in bytes. It allocates
// next to nothing while it runs, and a collection would delay requests.
func engineMemory(plan model.LoadPlan) int64 {
	if overTLS(plan) {
		return 128<<20 + int64(plan.MostConnections())*tlsMemory
	}
	return 1<<30 + int64(plan.MostConnections())*connMemory
}

func overTLS(plan model.LoadPlan) bool { return strings.HasPrefix(plan.URL, "https:") }

// engineCommand is the command line of the process that drives the load.
func engineCommand(w *world) []string { return []string{w.executable, engineName} }

// workerName begins the words of an engine that is one of several.
const workerName = "worker"
