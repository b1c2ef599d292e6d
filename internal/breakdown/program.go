package breakdown

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

const (
	programSeconds   = "plimsoll_program_seconds_total"
	programThreads   = "plimsoll_program_thread_seconds_total"
	programCPU       = "plimsoll_program_cpu_seconds_total"
	programFaults    = "plimsoll_program_page_faults_total"
	programProcesses = "plimsoll_program_processes"
	programLooks     = "plimsoll_program_looks_total"
)

// Program is where the time of the program went that a run was asked about; nil where it was asked about none.
func Program(run *record.Run) (*model.ProgramTime, error) {
	meta := run.Meta()
	hold, held := run.Window(model.Hold)
	if meta.Plan.Program == "" || !held || hold.End <= hold.Start {
		return nil, nil
	}
	first, last, err := run.Span()
	if err != nil {
		return nil, err
	}
	r := &reader{meta: meta, run: run, first: first, last: last, from: hold.Start, to: hold.End}
	p := r.program()
	if r.failed != nil {
		return nil, fmt.Errorf("read where the time of %s went: %w", meta.Plan.Program, r.failed)
	}
	return p, nil
}

func (r *reader) program() *model.ProgramTime {
	p := &model.ProgramTime{WindowSeconds: float64(r.to-r.from) / 1000, Names: []string{}, Parts: []model.ProgramPart{}, About: []string{}}
	p.Parts = append(p.Parts, r.programParts()...)
	for _, part := range p.Parts {
		p.Seconds += part.Seconds
	}
	if p.Seconds <= 0 {
		p.Missing = r.noProgram()
		return p
	}
	for i := range p.Parts {
		p.Parts[i].Share = p.Parts[i].Seconds / p.Seconds
	}
	p.Host = r.series(programSeconds)[0].Labels.Get("host")
	p.Names = r.programNames()
	there := p.WindowSeconds / p.Seconds // levels are means of the window
	p.Processes, p.Threads = r.sum(programProcesses, record.Series.Mean)*there, r.sum("plimsoll_program_threads", record.Series.Mean)*there
	cpu, system := r.sum(programCPU, record.Series.Increase), r.sum(programCPU, record.Series.Increase, "mode", "system")
	p.CPUs = max(cpu, r.sum(programThreads, record.Series.Increase, "doing", "running")) / p.Seconds // of what ends soon /proc/PID/stat tells nothing
	if cpu > 0 {
		p.SystemShare = system / cpu
	}
	p.MinorFaults = r.sum(programFaults, record.Series.Increase, "kind", "minor") / p.Seconds
	p.MajorFaults = r.sum(programFaults, record.Series.Increase, "kind", "major") / p.Seconds
	p.Looks = int64(r.sum(programLooks, record.Series.Increase))
	p.AtOnce = r.atOnce(p.Parts)
	p.Sentence = programSentence(r.meta.Plan.Program, p)
	return p
}

// sum adds a number up over all series of a signal that match.
func (r *reader) sum(signal string, of func(s record.Series, from, to int64) float64, pairs ...string) (sum float64) {
	for _, s := range r.series(signal, pairs...) {
		sum += of(s, r.from, r.to)
	}
	return sum
}

// programParts are what the program did, the largest first; what differs by the thread alone is one.
func (r *reader) programParts() []model.ProgramPart {
	type what struct{ doing, towards, call string }
	parts, most := map[what]*model.ProgramPart{}, map[what]float64{}
	for _, s := range r.series(programSeconds) {
		seconds := s.Increase(r.from, r.to)
		if seconds <= 0 {
			continue
		}
		w := what{s.Labels.Get("doing"), s.Labels.Get("towards"), s.Labels.Get("call")}
		p := parts[w]
		if p == nil {
			p = &model.ProgramPart{Doing: w.doing, Towards: w.towards, Call: w.call}
			parts[w] = p
		}
		if p.Seconds += seconds; seconds > most[w] {
			p.Thread, most[w] = s.Labels.Get("thread"), seconds
		}
	}
	var list []model.ProgramPart
	for _, p := range parts {
		list = append(list, *p)
	}
	inOrder(list)
	list = manyTowards(list)
	inOrder(list)
	for i := range list {
		list[i].Text = doingWords(list[i])
	}
	return list
}

// inOrder puts the largest first.
func inOrder(list []model.ProgramPart) {
	slices.SortFunc(list, func(a, b model.ProgramPart) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Doing, b.Doing), cmp.Compare(a.Towards, b.Towards), cmp.Compare(a.Call, b.Call))
	})
}

// manyTowards makes one part of those of one doing and call that are towards several, none of which has half of them: what
// waits for the disk in a thousand files waits for the disk.
func manyTowards(list []model.ProgramPart) []model.ProgramPart {
	type what struct{ doing, call string }
	sum, most, count := map[what]float64{}, map[what]float64{}, map[what]int{}
	for _, p := range list {
		w := what{p.Doing, p.Call}
		sum[w] += p.Seconds
		most[w] = max(most[w], p.Seconds)
		count[w]++
	}
	at := map[what]int{}
	var merged []model.ProgramPart
	for _, p := range list {
		w := what{p.Doing, p.Call}
		if count[w] < 3 || most[w] >= sum[w]/2 {
			merged = append(merged, p)
			continue
		}
		if i, there := at[w]; there {
			merged[i].Seconds += p.Seconds
			continue
		}
		at[w] = len(merged)
		p.Towards = several
		merged = append(merged, p)
	}
	return merged
}

// several stands for many files or peers, none of which stands out.
const several = "many, none of which stands out"

// programNames are the names of its processes, the commonest first.
func (r *reader) programNames() []string {
	count := map[string]float64{}
	for _, s := range r.series(programProcesses) {
		if n := s.Mean(r.from, r.to); n > 0 {
			count[s.Labels.Get("groupname")] += n
		}
	}
	if len(count) == 0 { // of what is there for a second or two a busy machine may count none, and have seen what they did
		for _, s := range r.series(programSeconds) {
			if n := s.Increase(r.from, r.to); n > 0 && s.Labels.Get("thread") != "" {
				count[s.Labels.Get("thread")] += n
			}
		}
	}
	names := []string{}
	for name := range count {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return names
}

// atOnce is how many threads had a CPU or wanted one, while any did.
func (r *reader) atOnce(parts []model.ProgramPart) float64 {
	busy := 0.0
	for _, p := range parts {
		if p.Doing == "running" || p.Doing == "queued" || p.Doing == "throttled" {
			busy += p.Seconds
		}
	}
	if busy <= 0 {
		return 0
	}
	return (r.sum(programThreads, record.Series.Increase, "doing", "running") + r.sum(programThreads, record.Series.Increase, "doing", "queued")) / busy
}

// noProgram says why nothing was seen of the program.
func (r *reader) noProgram() string {
	for host := range r.meta.Status {
		if st := r.meta.Status[host][programSeconds]; st.State != model.Read && !strings.Contains(st.Why, "no program was asked about") && st.Why != "" {
			return st.Why
		}
	}
	return fmt.Sprintf("no program %q was there while it was watched", r.meta.Plan.Program)
}

// programSentence says what the program spent most of its time on.
func programSentence(word string, p *model.ProgramTime) string {
	name := word
	if _, err := strconv.Atoi(word); err == nil && len(p.Names) > 0 {
		name = fmt.Sprintf("%s (PID %s)", p.Names[0], word)
	}
	if word == model.ProgramCommand {
		name = "the command"
	}
	most := p.Parts[0]
	return fmt.Sprintf("%s spends %.0f %% of its time %s", name, 100*most.Share, most.Text)
}

// doingWords says in words what a part is, as it goes on after "spends its time".
func doingWords(p model.ProgramPart) string {
	words, known := map[string]string{
		"running":               "computing",
		"queued":                "waiting for a CPU that others have",
		"throttled":             "kept from the CPUs by its control group's limit",
		"page_fault":            "waiting for memory that has to come from a disk",
		"reclaim":               "waiting until the kernel has freed memory",
		"lock":                  "waiting for a lock of its own, or for work from another thread (futex)",
		"child":                 "waiting for processes that it started",
		"sleep":                 "asleep by its own will",
		"stopped":               "stopped: by a signal, a debugger or a freezer",
		"uninterruptible_other": "waiting inside the kernel, mostly for a lock there",
		"poll":                  "waiting for events: a request, a timer, a message",
		"other":                 "waiting for something that has no name here",
		"disk":                  "waiting for the disk",
		"file_lock":             "waiting for a lock on a file",
		"file_system":           "waiting for whoever serves the file system (FUSE, NFS)",
		"socket_read":           "waiting for an answer",
		"socket_write":          "waiting until what it sends is taken",
		"connect":               "waiting to be connected",
		"pipe":                  "waiting for something to read from a pipe",
		"pipe_write":            "waiting for room in a full pipe",
		"accept":                "waiting for a connection",
		"unseen":                "while nobody looked, since Plimsoll itself was held up",
		"terminal":              "waiting for its terminal",
	}[p.Doing]
	if !known {
		words = "in " + p.Doing
	}
	if p.Doing == "running" && p.Thread == "short-lived processes" {
		return words + ", in short-lived processes that it starts"
	}
	switch {
	case p.Towards == "" && p.Call != "" && p.Doing != "lock" && p.Doing != "poll":
		return words + " (" + p.Call + ")"
	case p.Towards == "":
		return words
	case p.Doing == "socket_read" || p.Doing == "pipe":
		return words + " from " + p.Towards
	case p.Doing == "socket_write":
		return words + " by " + p.Towards
	case p.Doing == "pipe_write":
		return words + ": " + p.Towards
	case p.Doing == "connect":
		return words + " to " + p.Towards
	case p.Doing == "file_lock":
		return "waiting for the lock on " + p.Towards
	case p.Call == "":
		return words + ": " + p.Towards
	}
	return words + ": " + p.Call + " of " + p.Towards
}
