package change

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// part is one value that a change sets.
type part struct {
	Target target `json:"place"`
	// Old and New are bytes, not text: a file may be in any encoding.
	Old []byte `json:"old"`
	New []byte `json:"new"`
	// Between are values that our own steps may leave in between.
	Between []string `json:"between,omitempty"`
	// File is what is to be known of a file besides its bytes.
	File *meta `json:"file,omitempty"`
}

// ours says whether a value is one that we wrote or found.
func (p part) ours(now string) bool {
	if now == string(p.Old) || now == string(p.New) || slices.Contains(p.Between, now) {
		return true
	}
	// Threads are set one by one, so a crash may leave some of each.
	return p.Target.threadsOf(now, string(p.Old)+";0="+string(p.New))
}

// write sets a value and looks whether it took. What it was taken for instead is
// noted: that is no change of somebody else's.
func (p *part) write(v string) error {
	now, err := p.Target.get()
	if err != nil || now == v {
		return err
	}
	if err := p.Target.set(v); err != nil {
		return noValue(err)
	}
	if now, err = p.Target.get(); err != nil {
		return err
	}
	if now != v && !p.Target.threadsOf(now, v) {
		p.between(now)
		return fmt.Errorf("set %s to %q: it took it for %q: %w", p.Target, v, now, ErrNotPossible)
	}
	return nil
}

// noValue marks the error of a value that the kernel refuses.
func noValue(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE) || errors.Is(err, unix.EOVERFLOW) {
		return fmt.Errorf("%w: %w", err, ErrValue)
	}
	return err
}

// between notes a value that our own steps leave on the way.
func (p *part) between(v string) bool {
	if slices.Contains(p.Between, v) {
		return false
	}
	p.Between = append(slices.Clone(p.Between), v)
	return true
}
