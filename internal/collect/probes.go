package collect

import (
	"context"

	"plimsoll/internal/probe"
)

// probes are all probes of the hosts, as a source.
type probes struct{ sampler *probe.Sampler }

func (p probes) Start(ctx context.Context) error { return p.sampler.Start(ctx) }
func (p probes) Settle()                         {}
func (p probes) Phase(string)                    {}
func (p probes) Close() error                    { return p.sampler.Close() }

func (p probes) Round(ctx context.Context, r Round) error {
	return p.sampler.Round(ctx, r.Time, r.Edge)
}
