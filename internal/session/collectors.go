package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// OwnProcess is the way to a collector in a process of its own on this machine.
const OwnProcess = "process"

// collector observes hosts: in this process, or at the far end of a pipe.
type collector interface {
	Hosts() []collect.Host
	Here() string
	Start(context.Context, collect.Log) error
	Settle() time.Time
	Edge(context.Context, collect.Edge) (time.Time, error)
	Ignore(pid int) error
	Command(pid int) error
	Err() error
	Cost() (collect.Cost, error)
	About() model.Collector
	Close() error
}

// collectors are all of a run.
type collectors []member

// member is one of them, and the way to it.
type member struct {
	collector
	via  string
	wire meter // nil where nothing goes over a network
}

// meter is a way that knows how many bytes went over it.
type meter interface {
	Bytes() (sent, received int64)
}

// near says whether it is on this machine.
func (m member) near() bool { return near(m.via) }

func near(via string) bool { return via == "" || via == OwnProcess }

// each has all of them do something at once.
func (all collectors) each(do func(member) error) error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, one := range all {
		done.Go(func() { errs[i] = do(one) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// hosts lists those that were named, in that order, and then what was added.
func (all collectors) hosts(named []HostSpec) (list []collect.Host) {
	for _, one := range all {
		list = append(list, one.Hosts()...)
	}
	place := func(h collect.Host) int {
		i := slices.IndexFunc(named, func(spec HostSpec) bool { return spec.Name == h.Name })
		return (i + len(named) + 1) % (len(named) + 1) // -1 is the last
	}
	slices.SortStableFunc(list, func(a, b collect.Host) int { return place(a) - place(b) })
	return list
}

// here is the name of the host on which we run, "" if it was not asked for.
func (all collectors) here() string {
	for _, one := range all {
		if name := one.Here(); name != "" && one.near() {
			return name
		}
	}
	return ""
}

// apart makes sure that no two of them observe one machine: a process belongs to one
// host, and only a collector of all hosts there knows to which.
func (all collectors) apart() error {
	type place struct{ host, via string }
	of := map[string]place{}
	for _, one := range all {
		for _, h := range one.Hosts() {
			if other, ok := of[h.Machine]; ok && other.via != one.via {
				return fmt.Errorf("hosts %s and %s are on one machine, but named in two ways; have one way for both", other.host, h.Name)
			}
			of[h.Machine] = place{h.Name, one.via}
		}
	}
	return nil
}

// start has all begin to observe. Where there are several, the files of each have its
// first host's name.
func (all collectors) start(ctx context.Context, log collect.Log) error {
	observing := 0
	for _, one := range all {
		if len(one.Hosts()) > 0 {
			observing++
		}
	}
	for _, one := range all {
		to := log
		if hosts := one.Hosts(); observing > 1 && len(hosts) > 0 {
			to = named{log, "-" + hosts[0].Name}
		}
		if err := one.Start(ctx, to); err != nil {
			return err
		}
		if one.via == OwnProcess {
			if err := one.Ignore(os.Getpid()); err != nil {
				log.Note(fmt.Sprintf("this Plimsoll is traced with all others: %v", err))
			}
		}
	}
	return nil
}

// named is a Log in which the names of files end with something.
type named struct {
	collect.Log
	end string
}

func (n named) Profile(name string, data []byte) error { return n.Log.Profile(name+n.end, data) }

func (n named) Traced(t model.Tracing) {
	t.Profiles = slices.Clone(t.Profiles)
	for i := range t.Profiles {
		t.Profiles[i] += n.end
	}
	n.Log.Traced(t)
}

// settle settles all, and returns a time after all that they recorded.
func (all collectors) settle() (last time.Time) {
	var mu sync.Mutex
	_ = all.each(func(one member) error {
		at := one.Settle()
		mu.Lock()
		defer mu.Unlock()
		if at.After(last) {
			last = at
		}
		return nil
	})
	return last
}

func (all collectors) edge(ctx context.Context, e collect.Edge) error {
	return all.each(func(one member) error {
		_, err := one.Edge(ctx, e)
		return err
	})
}

// ignore leaves a process of ours out of what is traced on this machine.
func (all collectors) ignore(pid int) error {
	return all.near(func(one member) error { return one.Ignore(pid) })
}

// ignoreAt is ignore on the machine to which a way leads, if anybody observes it.
func (all collectors) ignoreAt(via string, pid int) error {
	return all.each(func(one member) error {
		if one.via != via && !(near(via) && one.near()) {
			return nil
		}
		return one.Ignore(pid)
	})
}

// command names the root of the process tree of the command that is watched.
func (all collectors) command(pid int) error {
	return all.near(func(one member) error { return one.Command(pid) })
}

func (all collectors) near(do func(member) error) error {
	return all.each(func(one member) error {
		if !one.near() {
			return nil
		}
		return do(one)
	})
}

// err is why there can be no further round, nil while there can.
func (all collectors) err() error {
	for _, one := range all {
		if err := one.Err(); err != nil {
			return err
		}
	}
	return nil
}

// blind says whether nothing is observed any more, since every pipe was cut.
func (all collectors) blind() bool {
	cut := 0
	for _, c := range all.about() {
		if c.Cut == "" {
			return false
		}
		cut++
	}
	return cut > 0
}

// about describes those that observe anything.
func (all collectors) about() (list []model.Collector) {
	for _, one := range all {
		if len(one.Hosts()) > 0 {
			c := one.About()
			c.Via = one.via
			if one.wire != nil {
				c.SentBytes, c.ReceivedBytes = one.wire.Bytes()
			}
			list = append(list, c)
		}
	}
	return list
}

// cost is what all of them have used.
func (all collectors) cost() (sum collect.Cost, err error) {
	for _, one := range all {
		c, e := one.Cost()
		err = errors.Join(err, e)
		sum.CPUSeconds += c.CPUSeconds
		sum.MaxRSS += c.MaxRSS
	}
	return sum, err
}

func (all collectors) close() error { return all.each(func(one member) error { return one.Close() }) }
