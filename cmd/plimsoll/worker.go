package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"plimsoll/internal/host"
	"plimsoll/internal/load/workers"
	"plimsoll/internal/model"
)

// serveWorker is a worker's process: in the namespaces of the host that spec names.
func serveWorker(ctx context.Context, w *world, spec string) error {
	if spec != "local" {
		return workerInside(w, spec)
	}
	return serveShares(ctx, w.stdin, w.commandOut)
}

// serveShares plays its share of what the other end of in and out says.
func serveShares(ctx context.Context, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(-1) // see loadEngine; what a load leaves goes before the next one
	return workers.Serve(ctx, in, out, workers.Worker{Version: version, PID: os.Getpid(), Code: codeOf, Prepare: prepareShare})
}

// workerInside runs the worker as a process that was started in a host's network namespace.
func workerInside(w *world, spec string) error {
	h, err := host.Open(workerName, spec)
	if err != nil {
		return err
	}
	cmd := exec.Command(w.executable, engineName, workerName, "local")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.stdin, w.commandOut, w.commandErr
	err = errors.Join(h.Do(cmd.Start), h.Close())
	if err != nil {
		return err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codePassed(128 + int(status.Signal())) // as a shell says it
	}
	return codePassed(exit.ExitCode())
}

// prepareShare completes what a worker is to do, and says what speaks against it on its machine.
func prepareShare(ctx context.Context, plan *model.LoadPlan, may, watched bool) (notes []string, err error) {
	share := *plan
	share.Connections, share.MaxConnections = int(plan.Part.Of(int64(plan.Connections))), int(plan.Part.Of(int64(plan.MaxConnections)))
	if plan.Threads == 0 {
		plan.Threads = min(runtime.NumCPU(), maxThreads, max(share.Connections, 1))
	}
	share.Threads, share.Part = plan.Threads, nil
	runtime.GC()
	debug.SetMemoryLimit(engineMemory(share))
	var said bytes.Buffer
	err = reach(ctx, &world{stderr: &said}, share, may, watched)
	for line := range strings.Lines(said.String()) {
		notes = append(notes, strings.TrimPrefix(strings.TrimSpace(line), "plimsoll: "))
	}
	return notes, err
}
