package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

const engineName = "load-engine"

// tlsMemory is what a connection over TLS may take in our process, in bytes: some 10 KiB
// it keeps, with long replies more (a record's most, twice), and as much its handshake leaves as garbage.
const tlsMemory = 64 << 10

// connMemory is what a connection takes in our process, in bytes.
const connMemory = 700

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

// loadEngine is the process that drives the load: apart from the one that
// watches, so that neither delays the other. It reads a plan from standard
// input, prints a record a line, and ends early when its input is closed.
func loadEngine(w *world) *cobra.Command {
	return &cobra.Command{Use: engineName, Short: "drive the load (Plimsoll's own child)", Hidden: true, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			debug.SetGCPercent(-1)
			// So that the generator has a name of its own in ps, top and our own
			// process table. Without it the load is the same.
			_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-load"), 0)
			return driveLoad(c.Context(), w.stdin, w.commandOut)
		}}
}

func driveLoad(ctx context.Context, in io.Reader, out io.Writer) error {
	var plan model.LoadPlan
	dec := json.NewDecoder(in)
	if err := dec.Decode(&plan); err != nil {
		return fmt.Errorf("read the plan of the load from standard input: %w", err)
	}
	debug.SetMemoryLimit(engineMemory(plan))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), in))
		cancel()
	}()
	buf := bufio.NewWriter(out)
	enc := json.NewEncoder(buf)
	return load.Run(ctx, plan, func(r load.Record) error {
		if err := enc.Encode(r); err != nil {
			return err
		}
		return buf.Flush()
	})
}
