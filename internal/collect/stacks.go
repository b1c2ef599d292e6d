package collect

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"plimsoll/internal/trace"
)

// keepStacks takes the stacks of the hold window, which is over.
func (t *tracing) keepStacks() {
	for _, one := range t.all() {
		if one.Profile == "" {
			continue
		}
		one.stacks = t.stacksOf(one)
		if one.stacks != nil && one.before != nil {
			one.stacks = since(one.stacks, one.before)
		}
	}
}

func (t *tracing) stacksOf(one *tracer) *profile.Profile {
	p, err := one.running.(trace.Profiler).Profile()
	if err != nil {
		t.rec.Note(fmt.Sprintf("the stacks of tracer %s could not be read: %v", one.Name, err))
		return nil
	}
	return p
}

// write keeps the stacks of a tracer with the run.
func (t *tracing) write(one *tracer) error {
	var data bytes.Buffer
	if err := one.stacks.Write(&data); err != nil {
		return err
	}
	return t.rec.Profile(one.Profile, data.Bytes())
}

// since is what came to a profile since before.
func since(p, before *profile.Profile) *profile.Profile {
	start, length := before.TimeNanos+before.DurationNanos, p.DurationNanos-before.DurationNanos
	before.Scale(-1)
	both, err := profile.Merge([]*profile.Profile{p, before})
	if err != nil {
		return p // they are not of one tracer, which cannot be
	}
	both.Sample = slices.DeleteFunc(both.Sample, func(s *profile.Sample) bool {
		return !slices.ContainsFunc(s.Value, func(v int64) bool { return v > 0 })
	})
	both.TimeNanos, both.DurationNanos = start, length
	return both.Compact()
}
