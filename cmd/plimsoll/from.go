package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/collect"
	"plimsoll/internal/load"
	"plimsoll/internal/load/workers"
	"plimsoll/internal/model"
	"plimsoll/internal/session"
)

// fromFlag adds --from, the places from which several workers play one load.
func fromFlag(c *cobra.Command) *[]string {
	return c.Flags().StringArray("from", nil, "have a worker at this `NAME=SPEC` play its share of the load: every so manyth request of -R, its part of the connections. SPEC is as that of --host: ssh:HOST (your ssh takes this program there for as long as it lasts), netns:NAME, container:NAME, local. May be given again: all begin at one moment (docs/elsewhere.md)")
}

// crew are the workers that --from names; nil is a load from this process' own machine alone.
type crew struct {
	fleet *workers.Fleet
	hosts []string // the names under which they are observed, each once
	more  []string // --host values of those that the user did not name
}

// crewOf makes one of --from, and has the plan say so. hosts are the values of --host.
func crewOf(c *cobra.Command, w *world, from, hosts []string, plan *model.LoadPlan) (*crew, error) {
	if len(from) == 0 {
		return nil, nil
	}
	no := func(format string, args ...any) (*crew, error) { return nil, usage(c.CommandPath(), format, args...) }
	list, err := parseAnywhere(from)
	if err != nil {
		return no("%s", strings.ReplaceAll(err.Error(), "--host", "--from"))
	}
	if len(plan.Sources) > 0 || plan.UnixSocket != "" {
		return no("--from: --source and --unix-socket name what one machine has; leave out one of both")
	}
	if !c.Flags().Changed("threads") {
		plan.Threads = 0 // each worker has as many as its machine has CPUs
	}
	plan.From = from
	first := *plan
	first.Part = &model.Part{All: len(list)}
	if err := load.Check(first); err != nil {
		return no("--from: %v", err)
	}
	var places []workers.Place
	crew := &crew{}
	for i, h := range list {
		if h.Via == session.OwnProcess {
			return no("--from %q: %s/ is for --host; each worker is a process of its own", from[i], session.OwnProcess)
		}
		name, spec, _ := strings.Cut(from[i], "=")
		at := slices.IndexFunc(hosts, func(v string) bool { _, s, _ := strings.Cut(v, "="); return s == spec })
		if at >= 0 {
			name, _, _ = strings.Cut(hosts[at], "=")
		} else {
			hosts, crew.more = append(slices.Clone(hosts), from[i]), append(crew.more, from[i])
		}
		if !slices.Contains(crew.hosts, name) {
			crew.hosts = append(crew.hosts, name)
		}
		places = append(places, workers.Place{Name: h.Name, Spec: spec, Host: name, Via: h.Via, Dial: workerAt(w, h)})
	}
	crew.fleet = fleetOf(w, places)
	return crew, nil
}

// fleetOf are the workers of these places.
func fleetOf(w *world, places []workers.Place) *workers.Fleet {
	f := workers.New(places)
	f.Version = version
	f.Say = func(text string) { fmt.Fprintln(w.stderr, "plimsoll:", text) }
	return f
}

// engines is what plays the load.
func (c *crew) engines(w *world) collect.Engines {
	if c == nil {
		return collect.OneProcess(engineCommand(w))
	}
	return collect.Fleet(c.fleet)
}

// close ends the workers.
func (c *crew) close() {
	if c != nil {
		c.fleet.Close()
	}
}

// ready makes sure that the load can be driven: from here, or by the workers, who look for themselves.
func (c *crew) ready(ctx context.Context, w *world, plan model.LoadPlan, may, watched bool) error {
	if c == nil {
		return reach(ctx, w, plan, may, watched)
	}
	c.fleet.May, c.fleet.Watched = may, watched
	return nil
}

// options are a session's, whose load comes from the crew; it has made sure that it can.
func (c *crew) options(of *cobra.Command, w *world, watch *watchFlags, plan model.LoadPlan, may bool) (session.Options, error) {
	watched := len(watch.hosts) > 0 || watch.file != ""
	if c != nil {
		watch.hosts = append(watch.hosts, c.more...)
	}
	opt, err := watch.options(of.CommandPath(), w, time.Now())
	if err != nil {
		return opt, err
	}
	opt.Engine = c.engines(w)
	if c != nil {
		opt.From = c.hosts
	}
	return opt, c.ready(of.Context(), w, plan, may, watched)
}

// roomOf is what this machine has for a load; of workers nothing is known here.
func (c *crew) roomOf(ctx context.Context, plan model.LoadPlan) room {
	if c == nil {
		return roomFor(ctx, plan)
	}
	return room{}
}

// workerAt starts a worker's process.
func workerAt(w *world, h session.HostSpec) func(context.Context) (io.ReadWriteCloser, error) {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		if !isFar(h) {
			return spawn(w, engineName, workerName, h.Spec)
		}
		g, err := send(ctx, w, h.Via, engineName, workerName, h.Spec)
		if err != nil {
			return nil, fail(exitUnreachable, err)
		}
		return g, nil
	}
}
