package trace

import (
	"slices"
	"sync"

	"plimsoll/internal/model"
)

// tried is what the kernel said to each tracer's programs, by the tracer's name: it
// is asked once, for it takes the verifier some ten milliseconds.
var tried struct {
	sync.Mutex
	answers map[string]answer
}

type answer struct {
	programs []Program
	err      error // that of what they all rest on
}

// Try asks the kernel, by loading each program once, which signals can be read here.
// The error is what MayRun says, or that of what all programs rest on.
func (t Tracer) Try() (map[string]model.Status, error) {
	if err := t.MayRun(); err != nil {
		return nil, err
	}
	s := &Set{needs: t.Needs}
	if t.Programs != nil {
		a := t.ask()
		if a.err != nil {
			return nil, a.err
		}
		s.programs = a.programs
	}
	return s.Status(), nil
}

// CanRun returns nil if the kernel takes, as Try asks it, all programs that the tracer
// cannot do without; else an error like MayRun's. In a run, signals that rest on other
// programs are read all the same.
func (t Tracer) CanRun() error {
	if _, err := t.Try(); err != nil || t.Programs == nil {
		return err
	}
	return t.Lacks(t.ask().programs)
}

// Lacks returns the error of a program without which the tracer's report would show
// zeros for what was not seen: one on a tracepoint or a function that it cannot do
// without; nil if none is missing.
func (t Tracer) Lacks(programs []Program) error {
	refused := 0
	for _, p := range programs {
		if p.Err == nil {
			continue
		}
		if slices.Contains(t.Tracepoints, p.Tracepoint) || slices.Contains(t.Functions, p.Tracepoint) {
			return p.Err
		}
		if refused++; refused == len(programs) {
			return p.Err
		}
	}
	return nil
}

func (t Tracer) ask() answer {
	tried.Lock()
	defer tried.Unlock()
	if a, known := tried.answers[t.Name]; known {
		return a
	}
	if tried.answers == nil {
		tried.answers = map[string]answer{}
	}
	var a answer
	spec, err := t.Programs()
	if a.err = err; err == nil {
		a.programs, a.err = Try(spec, t.FirstKernel)
	}
	tried.answers[t.Name] = a
	return a
}
