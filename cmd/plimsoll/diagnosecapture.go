package main

import (
	"context"
	"os"
	"runtime/debug"

	"plimsoll/internal/capture"
	"plimsoll/internal/judge"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/packets"
)

// captureMemory is what connections may take where captures are judged, in bytes.
const captureMemory = 1 << 30

// isCapture tells a capture file's name from a run directory's. A FIFO without a writer,
// or a device without an end, would hold us up: what comes by a pipe comes as "-".
func isCapture(name string) bool {
	info, err := os.Stat(name)
	return name == "-" || err == nil && info.Mode().IsRegular()
}

// judgeCapture makes the report of what packet captures show; they may not have been
// read to their ends (partial).
func judgeCapture(ctx context.Context, w *world, names []string, site *siteFlags) (model.Report, *capture.Reading, error) {
	set, err := site.set(w)
	if err != nil {
		return model.Report{}, nil, err
	}
	in, err := openCaptures(w, names)
	if err != nil {
		return model.Report{}, nil, err
	}
	defer in.close()
	debug.SetGCPercent(10) // as in capture
	line := w.progress()
	o := capture.Options{MaxMemory: captureMemory}
	if line != nil {
		o.Progress = func(packets int64) { line.say(in.progress(packets)) }
	}
	run, reading, err := packets.Read(ctx, in.sources, o)
	line.end()
	if err != nil {
		return model.Report{}, nil, captureError(err)
	}
	r, err := judge.Run(run, set)
	r.Version = version
	for i, name := range r.Plan.Capture.Files {
		r.Plan.Capture.Files[i] = layout.Line(name)
	}
	return r, reading, fail(exitRunDir, err)
}
