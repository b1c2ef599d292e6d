package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture/tally"
	"plimsoll/internal/judge"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/remote"
	"plimsoll/internal/ruleset"
)

// remoteFlags say which series of a Prometheus-compatible server to judge.
type remoteFlags struct {
	url, at, tokenFile string
	tenant             string
	window, baseline   time.Duration
	match              []string
	all                bool
	page               string
}

func (f *remoteFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.url, "prometheus", "", "judge the series of the Prometheus-compatible server at this `URL`, and no run directory")
	fs.StringVar(&f.at, "at", "now", "end of the window that is judged: now, a `TIME` like 2026-01-02T15:04:05Z, or Unix seconds")
	durationFlag(fs, &f.window, "window", "", 5*time.Minute, "length of the window that is judged")
	durationFlag(fs, &f.baseline, "baseline", "", 0, "how long before the window all was well; what tells by comparison needs it")
	fs.StringArrayVar(&f.match, "match", nil, "take only series with this label, as `LABEL=VALUE` (or != =~ !~); host is the address without its port. May be given again")
	fs.BoolVar(&f.all, "all", false, "judge each host that the server knows by itself, and print a line of each; those whose users lose most stand first")
	fs.StringVar(&f.page, "report", "", "with --all: write the table as a page, too: one HTML `FILE`")
	fs.StringVar(&f.tenant, "tenant", "", "ask for the series of this tenant (`NAME`), where the server has several: the header X-Scope-OrgID of Mimir and its kin")
	fs.StringVar(&f.tokenFile, "token-file", "", "`FILE` with a bearer token for the server")
}

// remoteOnly are the flags that only make sense with --prometheus.
var remoteOnly = []string{"at", "window", "baseline", "match", "token-file", "all", "report", "tenant"}

// query checks the flags and makes a query of them.
func (f *remoteFlags) query(command string, now time.Time) (remote.Query, error) {
	q := remote.Query{URL: f.url, Window: f.window, Baseline: f.baseline, Match: f.match, Tenant: f.tenant}
	var err error
	if q.At, err = parseMoment(f.at, now); err != nil {
		return q, usage(command, "--at %s: %v", f.at, err)
	}
	if strings.ContainsFunc(f.tenant, func(r rune) bool { return r < ' ' || r > '~' }) {
		return q, usage(command, "--tenant %q: want what can stand in a header", f.tenant)
	}
	if f.page != "" && !f.all {
		return q, usage(command, "--report goes with --all; plimsoll report writes the page of a run")
	}
	if f.window <= 0 {
		return q, usage(command, "--window 0: want more than 0")
	}
	if err := q.Check(); err != nil {
		return q, usage(command, "%v", err)
	}
	if f.tokenFile != "" {
		q.Token, err = readToken(f.tokenFile)
		if isAny(err, fs.ErrNotExist, fs.ErrPermission) {
			return q, fmt.Errorf("--token-file: %w", err)
		}
		if err != nil {
			return q, usage(command, "--token-file: %v", err)
		}
	}
	return q, nil
}

// parseMoment reads a moment: now, RFC 3339, or Unix seconds.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now.Truncate(time.Millisecond), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e11 {
		return time.UnixMilli(int64(s * 1000)), nil
	}
	return time.Time{}, fmt.Errorf("want now, a time like 2026-01-02T15:04:05Z, or Unix seconds")
}

// judgeRemote makes the report of a server's series.
func judgeRemote(ctx context.Context, w *world, q remote.Query, site *siteFlags) (model.Report, error) {
	set, err := site.set(w)
	if err != nil {
		return model.Report{}, err
	}
	readsAnybodys()
	run, err := remote.Fetch(ctx, q, signalsOf(w, set))
	if err != nil {
		return model.Report{}, fail(exitUnreachable, err)
	}
	return reportRemote(run, set)
}

func reportRemote(run *record.Run, set ruleset.Rules) (model.Report, error) {
	r, err := judge.Run(run, set)
	r.Version = version
	return r, fail(exitUnreachable, err)
}

// signalsOf returns the declarations of what the rules look at, but for what a
// capture gives, which no server has. A site's rule
// may name series that no probe of ours reads; they have no declared labels.
func signalsOf(w *world, set ruleset.Rules) []*model.Signal {
	declared := map[string]*model.Signal{}
	for _, s := range allSignals(w) {
		declared[s.Name] = s
	}
	var list []*model.Signal
	for _, name := range set.Signals() {
		if s, ok := declared[name]; ok && !slices.Contains(tally.Signals, s) {
			list = append(list, s)
		}
	}
	return list
}
