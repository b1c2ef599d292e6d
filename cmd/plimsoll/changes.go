package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll/internal/change"
	"plimsoll/internal/change/far"
	"plimsoll/internal/session"
)

// changer makes changes on this machine for a Plimsoll on another one, in the journal here.
func changer(w *world) *cobra.Command {
	c := &cobra.Command{Use: changesName, Short: "make changes for a Plimsoll on another machine", Hidden: true, Args: noArguments}
	var dir string
	addJournal(c.Flags(), w, &dir)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return far.Serve(c.Context(), w.stdin, w.commandOut, func() (*change.Journal, error) { return takeJournal(w, dir) })
	}
	return c
}

// changesThere are the processes that look at changes, or make them, on other machines.
type changesThere struct {
	w       *world
	changes bool                    // the journals there are taken
	by      map[string]*far.Journal // the way there
}

// at is the one to which a way leads; it is started when it is first asked for.
func (t *changesThere) at(ctx context.Context, via string) (*far.Journal, error) {
	if j := t.by[via]; j != nil {
		return j, nil
	}
	g, err := send(ctx, t.w, via, changesName)
	if err != nil {
		return nil, fail(exitUnreachable, fmt.Errorf("%s: %w", via, err))
	}
	j, err := far.Open(g, via, t.changes)
	if err != nil {
		return nil, fail(exitMissing, err)
	}
	j.Door = func(ctx context.Context) error { return letsIn(ctx, via) }
	if g.Note != "" && t.changes {
		fmt.Fprintf(t.w.stderr, "%s: changes are made as %s\n", via, g.Note)
	}
	if j.Standing > 0 {
		fmt.Fprintf(t.w.stderr, "%s: %d changes of an earlier time stand there; plimsoll tune --status --host there=%[1]s lists them\n", via, j.Standing)
	}
	for _, s := range j.Skipped {
		fmt.Fprintf(t.w.stderr, "%s: journal: %s\n", via, s)
	}
	if t.by == nil {
		t.by = map[string]*far.Journal{}
	}
	t.by[via] = j
	return j, nil
}

// close ends them; what they made stays. It may be called again.
func (t *changesThere) close() {
	for via, j := range t.by {
		if err := j.Close(); err != nil {
			fmt.Fprintf(t.w.stderr, "%s: %v\n", via, err)
		}
	}
	t.by = nil
}

// journals are those of all machines of a run. A change has a number by the order in which
// all were made: that in its journal, while that grows.
type journals struct {
	here  *change.Journal
	there *changesThere
	hosts []session.HostSpec
	made  map[int]entryAt
	last  int
}

// entryAt is a change by the way to its machine, and its number there.
type entryAt struct {
	via string
	id  int
}

// openJournals takes the journals of this machine and of all others with hosts, so that who
// else is changing one is known before a load. That of this machine ends with the process.
func openJournals(ctx context.Context, there *changesThere, dir string, hosts []session.HostSpec) (_ *journals, err error) {
	j := &journals{there: there, hosts: hosts, made: map[int]entryAt{}}
	if j.here, err = openJournal(there.w, dir); err != nil {
		return nil, err
	}
	there.changes = true
	for _, h := range hosts {
		if !isFar(h) {
			continue
		}
		if _, err := there.at(ctx, h.Via); err != nil {
			there.close()
			return nil, errors.Join(err, j.here.Close())
		}
	}
	return j, nil
}

// number gives a change its own.
func (j *journals) number(via string, e change.Entry) change.Entry {
	if e.ID == 0 {
		return e
	}
	at := entryAt{via, e.ID}
	e.ID = max(e.ID, j.last+1)
	j.last, j.made[e.ID] = e.ID, at
	return e
}

// Apply is change.Journal.Apply on the machine of a step's host.
func (j *journals) Apply(ctx context.Context, s change.Step) (change.Entry, error) {
	spec, err := hostNamed(s.Host, j.hosts)
	if err != nil {
		return change.Entry{}, err
	}
	if !isFar(spec) {
		e, err := j.here.Apply(ctx, s)
		return j.number("", e), err
	}
	there, err := j.there.at(ctx, spec.Via)
	if err != nil {
		return change.Entry{}, err
	}
	e, err := there.Apply(ctx, s)
	return j.number(spec.Via, e), err
}

// LeaveOut is change.Journal.LeaveOut on the machine of a change.
func (j *journals) LeaveOut(ctx context.Context, id int) (map[int]change.Entry, error) {
	at, ok := j.made[id]
	if !ok {
		return nil, fmt.Errorf("change %d: %w", id, change.ErrNoEntry)
	}
	leaveOut := j.here.LeaveOut
	if at.via != "" {
		leaveOut = j.there.by[at.via].LeaveOut
	}
	again, err := leaveOut(ctx, at.id)
	numbered := map[int]change.Entry{}
	for _, old := range slices.Sorted(maps.Keys(j.made)) { // they are made anew in their order
		is := j.made[old]
		if e, ok := again[is.id]; ok && is.via == at.via {
			delete(j.made, old)
			numbered[old] = j.number(at.via, e)
		}
	}
	return numbered, err
}

// undo takes changes back, machine by machine.
func (j *journals) undo(ctx context.Context, ids []int) error {
	var here []int
	there := map[string][]int{}
	for _, id := range ids {
		switch at, ok := j.made[id]; {
		case ok && at.via != "":
			there[at.via] = append(there[at.via], at.id)
		case ok:
			here = append(here, at.id)
		}
	}
	_, err := j.here.UndoThese(ctx, here, false)
	for via, ids := range there {
		err = errors.Join(err, j.there.by[via].Undo(ids))
	}
	return err
}

// close gives all of them up; the changes stay.
func (j *journals) close() {
	if err := j.here.Close(); err != nil {
		fmt.Fprintln(j.there.w.stderr, err)
	}
	j.there.close()
}
