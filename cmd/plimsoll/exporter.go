package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/collect"
	"plimsoll/internal/exporter"
	"plimsoll/internal/flight"
	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// exporterEvery is the time between two rounds of an exporter when nobody says: servers ask
// no more often than that.
const exporterEvery = 5 * time.Second

// exporterFlags are those of a watch that stays.
type exporterFlags struct {
	listen, webConfig string
	insecure          bool
	last              keepFlags
}

func (f *exporterFlags) add(c *cobra.Command, w *world) {
	fs := c.Flags()
	fs.StringVar(&f.listen, "listen", "", "stay, and show what is read to be scraped, at http://`HOST:PORT`/metrics; port 0 is one that is free. Rounds are 5s apart then")
	fs.StringVar(&f.webConfig, "web-config", "", "with --listen: TLS and users from this `FILE`, in the form of Prometheus' exporters")
	fs.BoolVar(&f.insecure, "insecure", false, "with --listen: listen for other machines without TLS, too")
	f.last.add(c, w)
}

// orElse is a watch that stays where the flags ask for one, and else what watch does.
func (f *exporterFlags) orElse(w *world, watch *watchFlags, d *time.Duration, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if !slices.ContainsFunc(stayOnly, c.Flags().Changed) {
			return run(c, args)
		}
		return stay(c, w, watch, f, *d, args)
	}
}

// stayOnly are the flags that only make sense with --listen.
var stayOnly = append([]string{"listen", "web-config", "insecure", "keep"}, keptOnly...)

// goWithListen are the flags of watch that an exporter has a use for.
var goWithListen = append(slices.Clone(stayOnly), "host", "hosts", "interval", "trace", "duration", "help")

// stay stays, and shows what is read.
func stay(c *cobra.Command, w *world, watch *watchFlags, f *exporterFlags, d time.Duration, args []string) error {
	if f.listen == "" {
		return usage(c.CommandPath(), "--web-config, --insecure and --keep go with --listen HOST:PORT")
	}
	if len(args) > 0 {
		return usage(c.CommandPath(), "--listen stays, and starts no command; leave one of both out")
	}
	var wrong error
	c.Flags().Visit(func(g *pflag.Flag) {
		if !slices.Contains(goWithListen, g.Name) {
			wrong = usage(c.CommandPath(), "--%s goes not with --listen, which makes no run", g.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	if err := f.last.check(c); err != nil {
		return err
	}
	if !c.Flags().Changed("interval") {
		watch.interval = exporterEvery
		if f.last.keep > 0 {
			watch.interval = keptEvery
		}
	}
	config, tracers, err := exported(c, w, watch)
	if err != nil {
		return err
	}
	opt := exporter.Options{Listen: f.listen, WebConfig: f.webConfig, Insecure: f.insecure, Collect: config, Tracers: tracers, Version: version, For: d,
		Ready: func(url string) {
			fmt.Fprintln(w.stdout, url)
			fmt.Fprintln(w.stderr, "plimsoll: shows what is read every", config.Interval, "at this address; ^C ends it")
		},
		Note: func(sentence string) { fmt.Fprintln(w.stderr, "plimsoll:", layout.Line(sentence)) },
	}
	if f.last.keep > 0 {
		opt.Beside = f.last.recorder(w, config, opt.Note)
	}
	err = exporter.Run(c.Context(), opt)
	var address exporter.AddressError
	var dir flight.DirError
	switch {
	case errors.As(err, &dir):
		return fail(exitRunDir, err)
	case errors.As(err, &address) && isAny(err, fs.ErrNotExist, fs.ErrPermission) && f.webConfig != "":
		return fail(exitMissing, err)
	case errors.As(err, &address):
		return usage(c.CommandPath(), "%v", err)
	}
	return err
}

// exported is what an exporter observes: hosts of this machine, by tracers that may watch all the time.
func exported(c *cobra.Command, w *world, watch *watchFlags) (collect.Config, []trace.Tracer, error) {
	if watch.trace == string(collect.TraceFull) {
		return collect.Config{}, nil, usage(c.CommandPath(), "--trace full is for runs: its tracers are too dear to stay; want light or off")
	}
	opt, err := watch.options(c.CommandPath(), w, time.Now())
	if err != nil {
		return collect.Config{}, nil, err
	}
	config := collect.Config{Interval: opt.Interval, Trace: opt.Trace}
	if config.Trace == collect.TraceAuto { // the memory of a whole second process is too much to stay for months
		config.Trace = collect.TraceLight
	}
	for _, h := range opt.Hosts {
		if h.Via != "" {
			return config, nil, usage(c.CommandPath(), "--host %s: an exporter observes its own machine; run one there", h.Name)
		}
		config.Hosts = append(config.Hosts, h)
	}
	if len(config.Hosts) == 0 {
		config.Hosts = []collect.HostSpec{{Name: machineName(), Spec: "local"}}
	}
	return config, opt.Tracers, nil
}
