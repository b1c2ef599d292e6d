package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// loadEngine is the process that drives the load: apart from the one that
// watches, so that neither delays the other. It reads a plan from standard
// input, prints a record a line, and ends when its input is closed, before the load's end as well.
func loadEngine(w *world) *cobra.Command {
	return &cobra.Command{Use: engineName, Short: "drive the load (Plimsoll's own child)", Hidden: true, Args: cobra.MaximumNArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			// So that the generator has a name of its own in ps, top and our own
			// process table. Without it the load is the same.
			_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-load"), 0)
			if len(args) == 2 && args[0] == workerName {
				return serveWorker(c.Context(), w, args[1])
			}
			if len(args) == 3 && args[0] == podName {
				return servePod(c.Context(), w, args[1], args[2])
			}
			debug.SetGCPercent(-1)
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
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), in))
		close(closed)
		cancel()
	}()
	buf := bufio.NewWriter(out)
	enc := json.NewEncoder(buf)
	err := load.Run(ctx, plan, func(r load.Record) error {
		if err := enc.Encode(r); err != nil {
			return err
		}
		return buf.Flush()
	})
	if err == nil {
		<-ctx.Done()
		select { // what this process used is read once more, and of a process that is gone nothing is
		case <-closed:
		case <-time.After(mostLinger):
		}
	}
	return err
}

// mostLinger is how long the engine stays after its last record when it was interrupted and its input does not end, as at a terminal.
const mostLinger = 10 * time.Second
