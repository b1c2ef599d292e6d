// Package all lists every tracer there is. A tracer that is not listed here does
// not exist; nothing registers itself.
package all

import (
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/exec"
	"plimsoll/internal/trace/runqueue"
)

// All returns all tracers, in the order of the handbook.
func All() []trace.Tracer {
	return []trace.Tracer{exec.Tracer(), runqueue.Tracer()}
}
