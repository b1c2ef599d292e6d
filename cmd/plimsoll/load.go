package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

const loadLong = `Drives the load and says what came back, and nothing else: no host is watched, no
run directory is made, there is no verdict. The flags are those of "plimsoll run",
but nothing is sent beside what was asked for: --calm and --ramp are 0.

With --find-limit it searches for the highest rate that keeps --slo: it holds
one rate after the other (open loop, from -R or 100/s on) for 5 s each, doubles
until one is missed, goes between, and tries what it found once more. A miss is
tried again, since a hiccup is no limit. It says whether the service was in the
way, or the generator, or too few connections (-c). Where --slo bounds no errors,
errors<1% is added: who refuses quickly keeps any latency.

With --find-knee it holds 1, 2, 4 … connections, up to -c and down again (closed
loop), for 2 s each, and draws throughput and latency against them. The knee is
where throughput over latency is the highest: up to there more connections add
more to throughput than to the wait, beyond it more to the wait. It is told as
between two of the numbers that were tried, and not told where it may lie beyond
the last. Nor is the most more than was measured. What equal loads differ by is
taken from each number's two turns. The Universal Scalability Law is fitted, too:
what share of the work only one can do at a time, and what they cost each other;
where it is off by more than equal loads are, that is said.`

func loadCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "load URL", Short: "the load alone", Long: loadLong, Args: oneArgument("the URL of the service"),
		Example: "  plimsoll load http://127.0.0.1/ -c 50 -d 5s\n  plimsoll load http://127.0.0.1/ -R 2000 --json\n  plimsoll load http://127.0.0.1/ --find-limit --slo 'p99<50ms,errors<0.1%'\n  plimsoll load http://127.0.0.1/ --find-knee -c 200\n  plimsoll load http://shop/ -R 20k -c 600 --kubernetes 6 > load.yaml"}
	var what loadFlags
	what.add(c, 0, 0)
	var out loadOutput
	out.add(c)
	from := fromFlag(c)
	var pods kubernetesFlags
	pods.add(c)
	drive := func(c *cobra.Command, args []string) error {
		plan, err := what.plan(c.CommandPath(), args[0], c.Flags().Changed)
		if err != nil {
			return err
		}
		what.tell(w)
		if out.limit {
			if plan, err = limitPlan(c.CommandPath(), plan, c.Flags().Changed); err != nil {
				return err
			}
		}
		if out.knee {
			if plan, err = kneePlan(c.CommandPath(), plan, c.Flags().Changed); err != nil {
				return err
			}
			if pods.workers > 0 || len(*from) > 0 {
				return usage(c.CommandPath(), "--find-knee begins with one connection, so it is one generator's; leave out --from and --kubernetes")
			}
		}
		if pods.workers > 0 {
			return pods.manifest(c, w, plan, &out, what.may)
		}
		crew, err := crewOf(c, w, *from, nil, &plan)
		if err != nil {
			return err
		}
		defer crew.close()
		if crew == nil && !out.limit && !c.Flags().Changed("engine") {
			plan, out.note = cheaper(plan)
		}
		return playLoad(c, w, crew, plan, &out, what.may)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := pods.check(c, &out, *from); err != nil {
			return err
		}
		return out.around(c, args, w, drive, pods.workers == 0)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitInterrupted)
}

// cheaper has the plan go by io_uring where that is for it, and may be had here. Nobody judges this load, so nobody
// misses how long connects took. Where each has a new connection, requests with a body stay with epoll: by io_uring a reply is then read
// when the whole request is sent, so one that refuses a long body would not be seen. Where only the number of connections, or this machine, is in the way, a sentence says so.
func cheaper(plan model.LoadPlan) (model.LoadPlan, string) {
	if !plan.KeepAlive && (len(plan.Body) > 0 || slices.ContainsFunc(plan.Targets, func(t model.Target) bool { return len(t.Body) > 0 })) {
		return plan, ""
	}
	by, most := plan, load.MostByIOURing(plan)
	by.Engine = model.IOURing
	if !plan.KeepAlive {
		by.Connections = min(plan.Connections, most)
	}
	if load.Check(by) != nil {
		return plan, ""
	}
	switch refused := load.TryIOURing(); {
	case refused != nil:
		return plan, fmt.Sprintf("connections went by epoll: io_uring, which takes less CPU for each request, was refused here: %v", refused)
	case by.Connections < plan.Connections:
		return plan, fmt.Sprintf("connections went by epoll: io_uring, which takes less CPU for each, is for up to %s of %s, and %s were asked for: ask for fewer (-c), or for more threads (-t)",
			layout.Count(int64(most)), plural(plan.Threads, "thread"), layout.Count(int64(plan.Connections)))
	}
	return by, ""
}
