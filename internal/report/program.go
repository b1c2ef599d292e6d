package report

import (
	"fmt"
	"math"
	"net"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

const (
	// mostParts is how many parts of a program's time a screen shows, leastPart the share that each has at least.
	mostParts = 5
	leastPart = 0.01
)

// leastTold is the share of its time that a program computes at least for it to be told where.
const leastTold = 0.1

// ProgramIs says which processes a report on one program is about, and what they used.
func ProgramIs(r model.Report) string { return programIs(r.Program, layout.Line(r.Plan.Program)) }

// spends is the share of its time that a program does something.
func spends(p *model.ProgramTime, doing string) (share float64) {
	for _, part := range p.Parts {
		if part.Doing == doing {
			share += part.Share
		}
	}
	return share
}

// offBy is by how much a share that rests on so many looks is off at most in 19 of 20 cases: that of one half, which is off by most.
func offBy(looks int64) float64 {
	if looks <= 0 {
		return 1
	}
	return min(1, 1.96*0.5/math.Sqrt(float64(looks)))
}

// programIs says which processes it is about, and what they used.
func programIs(p *model.ProgramTime, word string) string {
	name := strings.Join(p.Names[:min(len(p.Names), 3)], ", ")
	if len(p.Names) > 3 {
		name += fmt.Sprintf(" and %d more", len(p.Names)-3)
	}
	text := layout.Line(name)
	if text != word {
		text += " (--of " + word + ")"
	}
	there := layout.Micros(p.Seconds * 1e6)
	if p.Seconds < 0.98*p.WindowSeconds {
		there += " of " + layout.Micros(p.WindowSeconds*1e6)
	}
	many := func(n float64, one, more string) string { return plural(max(1, int(math.Round(n))), one, more) }
	return fmt.Sprintf("%s on %s, there for %s; on average %s, %s, %.2f CPUs%s",
		text, layout.Line(p.Host), there, many(p.Processes, "process", "processes"), many(p.Threads, "thread", "threads"), p.CPUs, inKernel(p))
}

// inKernel says how much of its CPU time is the kernel's, "" of a program that hardly computes.
func inKernel(p *model.ProgramTime) string {
	if p.CPUs < 0.05 || p.SystemShare == 0 {
		return ""
	}
	return " (" + percent(p.SystemShare) + " of that in the kernel)"
}

// programParts lists the parts that are large enough, the largest first, and what is left.
func programParts(out *paper, p *model.ProgramTime, most int, least float64) {
	label, rest := "its time", 1.0
	for i, part := range p.Parts {
		if i >= most || part.Share < least {
			break
		}
		rest -= part.Share
		lines := 1
		if i == 0 {
			lines = 2
		}
		out.short(label, lines, before(percent(part.Share), 6)+"  "+layout.Line(part.Text)+inThread(p, part))
		label = ""
	}
	if rest >= 0.001 {
		out.short("", 1, before(percent(rest), 6)+"  other things")
	}
}

// inThread names the threads that did something, where the program has others.
func inThread(p *model.ProgramTime, part model.ProgramPart) string {
	if part.Thread == "" || p.Threads < 1.5 || part.Thread == "short-lived processes" {
		return ""
	}
	return " [" + layout.Line(part.Thread) + "]"
}

// functionsIn names the functions that it computes in, "" where no stacks tell.
func functionsIn(p *model.ProgramTime) string {
	var list []string
	for _, f := range p.Functions {
		list = append(list, BillFunction(f))
	}
	if len(list) == 0 {
		return ""
	}
	return "in " + strings.Join(list, "; ")
}

// doingTitle is a part's kind in two or three words.
func doingTitle(doing string) string {
	if title, known := map[string]string{
		"running": "it computes", "queued": "it waits for a CPU", "throttled": "its CPU limit", "page_fault": "it waits for memory", "reclaim": "it waits for memory",
		"lock": "it waits for a lock or for work", "child": "it waits for its children", "sleep": "it sleeps", "stopped": "it is stopped", "poll": "it waits for events",
		"disk": "it waits for the disk", "file_lock": "it waits for a file's lock", "file_system": "it waits for a file system", "socket_read": "it waits for an answer",
		"socket_write": "it waits for a slow reader", "connect": "it waits to be connected", "pipe": "it waits for a pipe", "pipe_write": "it waits for a slow reader",
		"uninterruptible_other": "it waits in the kernel", "terminal": "it waits for its terminal",
	}[doing]; known {
		return title
	}
	return "where its time goes"
}

// faster is what would make a program faster, by what it spends most of its time on: a command that shows it, its price, and the way back.
type faster struct{ text, command, cost, back string }

// fasterBy says what would make a program faster. What its largest part is cannot bring more than that part.
func fasterBy(p *model.ProgramTime, run string) faster {
	most := p.Parts[0]
	how := fasterIn(p, most, run)
	switch {
	case how.text == "" && most.Doing == "poll":
		return faster{text: "nothing was found that holds it up: it waits until there is something to do", cost: "nothing", back: noSetting}
	case how.text == "":
		return faster{text: "what it waits for was not seen; the stacks of its waits tell more", command: "plimsoll trace offcpu -d 10s", cost: "some percent of a CPU for 10 s", back: nothingBack}
	}
	how.text = fmt.Sprintf("by %s at most (%s of its time): %s", timesFaster(most.Share), percent(most.Share), how.text)
	return how
}

// timesFaster words how much faster a program is without a part of its time.
func timesFaster(share float64) string {
	if share >= 0.99 {
		return "a hundred times and more"
	}
	return fmt.Sprintf("%.2g times", 1/(1-share))
}

const (
	personsTime   = "a person's time, for a change of the program"
	versionBefore = "the program's version before, and a restart of it"
)

func fasterIn(p *model.ProgramTime, most model.ProgramPart, run string) faster {
	switch most.Doing {
	case "running":
		return computesLess(p, most, run)
	case "queued":
		return faster{"it shares the CPUs with others that want them: end or move these, give it weight (nice -n -5, systemctl set-property UNIT CPUWeight=500), or more CPUs", "ps -eo pid,comm,pcpu,ni --sort=-pcpu | head -8", "whoever gives way becomes slower", "the value before"}
	case "throttled":
		return faster{"raise the CPU limit of its control group: systemctl set-property UNIT CPUQuota=200% (docker update --cpus 2; Kubernetes: limits.cpu)", "systemd-cgtop -n 1 --cpu=percentage | head", "it may take more from its neighbours", "the value before, which the check of its unit shows"}
	case "disk":
		return lessDisk(most)
	case "page_fault", "reclaim":
		return faster{"it has less memory than it uses: give it more (its control group's memory.max, or the machine's), or have it touch less at a time", "vmstat 1 5", "the memory itself", "the value before"}
	case "file_lock":
		return faster{"whoever holds the lock has to hold it for less time, or for fewer files; the check names the holder (PID, command)", "lslocks", lookingAlone, nothingBack}
	case "file_system":
		return faster{"ask it less often or for more at once (larger reads, a cache of attributes: mount options attr_timeout, entry_timeout, actimeo), or copy what is read to a local disk first", "findmnt -t fuse,fuse.sshfs,nfs,nfs4", "a cache shows changes later", "mounting as before"}
	case "socket_read", "connect":
		return askLess(most)
	case "socket_write", "pipe_write":
		return faster{"whoever reads what it writes is slower than it: look at that program next, with --of", "ss -tnpo state established", lookingAlone, nothingBack}
	case "pipe":
		return faster{"whoever writes into the pipe is slower than it: look at that program next, with --of; or at both, with --of command -- COMMAND", "ls -l /proc/PID/fd", lookingAlone, nothingBack}
	case "sleep":
		return faster{"it waits of its own will (a pause between tries, a limit of its rate, a timer): shorten or drop that pause in its settings or its code, if nothing else wants it", "grep -rnE 'sleep|interval|delay|backoff|rate' ITS-CODE-OR-SETTINGS", personsTime, versionBefore}
	case "terminal":
		if most.Call == "read" {
			return faster{"it waits for somebody to type: give it the answer (-y, --batch, a file in place of the terminal: </dev/null)", "ls -l /proc/PID/fd/0", "it then takes what nobody was asked for", "leaving that out"}
		}
		return faster{"whoever shows its terminal takes what it writes slowly (a serial console, a slow line, a terminal that is stopped by Ctrl-S): let it say less (no -v, --quiet), or write into a file", "ls -l /proc/PID/fd/1", "its messages then stand elsewhere", "leaving that out"}
	case "lock":
		return faster{"see who wakes it, and from which code: if others compute or wait meanwhile, that is what to look at; a pool of threads without work looks the same", "plimsoll trace offcpu -d 10s", "some percent of a CPU for 10 s", nothingBack}
	case "stopped":
		return faster{"let it go on: kill -CONT PID; detach the debugger; thaw its control group", "ps -eo pid,stat,wchan:20,comm | awk '$2 ~ /^[Tt]/ || $3 ~ /freez/'", "nothing", "kill -STOP PID stops it again"}
	case "uninterruptible_other":
		return faster{"see in which function of the kernel it waits; most often it is a lock that others of its own threads, or of the same file or memory, hold", "plimsoll trace offcpu -d 10s", "some percent of a CPU for 10 s", nothingBack}
	}
	return faster{}
}

const (
	// manyFaults is how many pages that are new to it a program touches in a second of CPU time for these to be what it spends
	// much of that on: one costs some 0.5 µs, and 0.1 to 1 µs more to be made empty (facts: page faults).
	manyFaults = 200_000
	// faultsSystem is the share of its CPU time that it is in the kernel then, at least.
	faultsSystem = 0.3
)

// computesLess is for a program that computes.
func computesLess(p *model.ProgramTime, most model.ProgramPart, run string) faster {
	if most.Thread == "short-lived processes" {
		return faster{"it starts many short processes: do their work in one (a built-in in place of a program, one call for many files: xargs, find -exec … +)", "plimsoll trace exec -d 5s", personsTime, versionBefore}
	}
	if p.CPUs > 0 && p.SystemShare >= faultsSystem && p.MinorFaults/p.CPUs >= manyFaults {
		return faster{fmt.Sprintf("it takes memory from the kernel and gives it back all the time (%s pages a second are new to it): use what it has again, or keep the allocator from giving it back (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ in its environment)", layout.Count(int64(p.MinorFaults))),
			"perf stat -e minor-faults,dTLB-load-misses -p PID sleep 5", "it keeps more memory than it needs at the moment; a restart of it", "its environment before, and a restart of it"}
	}
	text := "less work in the functions that take it"
	if len(p.Functions) > 0 {
		text += " (first " + strings.TrimSpace(layout.InModule(layout.Line(p.Functions[0].Function), layout.Line(p.Functions[0].Module))) + ")"
	}
	if p.AtOnce > 0 && p.AtOnce < 1.2 {
		text += "; or its work spread over several CPUs: it computes on one at a time"
	}
	return faster{text, "plimsoll flame " + run, personsTime, versionBefore}
}

// lessDisk is for a program that waits for a disk.
func lessDisk(most model.ProgramPart) faster {
	const check = "iostat -xd 1 3"
	switch most.Call {
	case "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync":
		return faster{"make it wait for the disk once for many records (one transaction or one " + most.Call + " for a batch), or give it a disk that confirms faster", check, "what is not confirmed yet is lost when the power fails", "a batch of one"}
	case "write":
		return faster{"it writes faster than the disk takes it: write less (compress, leave out), or to a faster disk", check, personsTime, versionBefore}
	case "read":
		return faster{"read what is read again from memory (more memory for the page cache), in larger pieces, ahead, or several at once; or from a faster disk", check, "memory, or a person's time", versionBefore}
	}
	return faster{"do less that needs the disk, several at once, or on a faster one", check, personsTime, versionBefore}
}

// askLess is for a program that waits for answers of a peer.
func askLess(most model.ProgramPart) faster {
	var c layout.Command
	c.Ours("ss -tnpi")
	if at, found := strings.CutPrefix(most.Towards, "unix:"); found {
		c = layout.Command{}
		c.Ours("ss -xp src ")
		c.Outside(at)
	} else if _, _, err := net.SplitHostPort(most.Towards); err == nil {
		c.Ours(" dst ")
		c.Outside(most.Towards)
	}
	who := "whoever answers"
	if most.Towards != "" {
		who = layout.Line(most.Towards)
	}
	return faster{"ask for more at once (a batch, a pipeline, several connections), or see why " + who + " takes its time: watch there, too (--host)", c.String(), lookingAlone, nothingBack}
}

// fullProgram writes all parts of a program's time.
func fullProgram(out *paper, r model.Report) {
	p := r.Program
	if p == nil {
		return
	}
	out.heading(bold, "WHERE THE PROGRAM'S TIME GOES")
	if p.Missing != "" {
		out.para(0, plain, layout.Line(r.Plan.Program)+": nothing is known: "+layout.Line(p.Missing))
		return
	}
	out.para(0, plain, programIs(p, layout.Line(r.Plan.Program)))
	programParts(out, p, len(p.Parts), 0.001)
	if text := functionsIn(p); text != "" {
		out.item("computes", text)
	}
	if p.MajorFaults >= 1 {
		out.item("faults", fmt.Sprintf("%.3g pages a second had to come from a disk", p.MajorFaults))
	}
	out.item("how", fmt.Sprintf("how long it ran and waited for a CPU is counted by the kernel; the rest is by %s, which is off by %s at most in 19 of 20 cases", plural(int(p.Looks), "look", "looks"), percent(offBy(p.Looks))))
}
