package main

import (
	"os"

	"github.com/spf13/cobra"

	"plimsoll/internal/collect/pipe"
)

const collectorName = "collector"

// collector is the process that observes hosts for a session at the other end of its
// standard input and output. It ends when its input is closed.
func collector(w *world) *cobra.Command {
	return &cobra.Command{Use: collectorName, Short: "observe hosts for another Plimsoll (its own child)", Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			// So that it has a name of its own in ps, top and our own process table.
			_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-hosts"), 0)
			return pipe.Serve(w.stdin, w.commandOut, version, allTracers(w))
		}}
}
