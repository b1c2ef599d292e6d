package bill

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

const (
	// leastSamples is below which nothing is said: a tenth would be three of them.
	leastSamples = 30
	// mostSamples is more than one stack can have; a profile that says more is damaged.
	mostSamples = 1 << 32
	// mostFunctions is how many functions of a mechanism are listed.
	mostFunctions = 8
	// leastSaving is which share of the CPU time has to be spared to be worth telling.
	leastSaving = 0.1
	// packetThreads are the kernel's for packets that there was no time for elsewhere.
	packetThreads = "ksoftirqd"
	// leastService is which share of a bill a process group must have to be named.
	leastService = 0.01
)

// Of makes the bill of a run from its sampled stacks, and names scripts by whole ones where there are any; known are
// the terms of the rules.
// It is nil where nobody works for requests, and no program for itself.
func Of(q *query.Run, known query.Records, stacks, whole []*profile.Profile) (*model.Bill, error) {
	t, err := theTable()
	if err != nil {
		return nil, err
	}
	services, err := t.services(q, known)
	window, has := q.Window("window")
	if err != nil || len(services) == 0 || !has {
		return nil, err
	}
	b := &model.Bill{}
	for _, cores := range services {
		b.CPUSeconds += cores * float64(window.End-window.Start) / 1000
	}
	if cpus := cpusOf(q.Meta().Hosts, services); cpus > 0 {
		b.MachineShare = b.CPUSeconds / (float64(cpus) * float64(window.End-window.Start) / 1000)
	}
	if b.Requests, b.RequestsFrom, err = t.requests(q, known); err != nil {
		return nil, err
	}
	if b.Requests != nil {
		each := b.CPUSeconds / *b.Requests
		b.SecondsPerRequest = &each
	}
	sums, err := t.add(q.Meta().Hosts, services, stacks)
	if err == nil {
		err = t.addScripts(q.Meta().Hosts, services, whole, sums)
	}
	if err != nil {
		return &model.Bill{Missing: err.Error()}, nil
	}
	if sums.all < leastSamples {
		return &model.Bill{Missing: fmt.Sprintf("%d samples of the services' CPU time are too few to say what it goes into", sums.all)}, nil
	}
	sums.write(b)
	if err := t.savings(q, known, b, sums); err != nil {
		return nil, err
	}
	inOrder(b.Entries)
	return b, nil
}

// owner is a process group in a network namespace.
type owner struct {
	netns uint64
	group string
}

// services are the groups whose CPU time it is, and how many CPUs each used.
func (t *table) services(q *query.Run, known query.Records) (map[owner]float64, error) {
	e, err := query.Parse(t.Services, known)
	if err != nil {
		return nil, fmt.Errorf("mechanisms: services: %w", err)
	}
	netns := map[string]uint64{}
	for _, h := range q.Meta().Hosts {
		netns[h.Name] = h.NetNS
	}
	list := map[owner]float64{}
	for _, s := range q.Ask(e).Samples {
		if s.Value > 0 {
			list[owner{netns[s.Labels["host"]], s.Labels["groupname"]}] += s.Value
		}
	}
	return list, nil
}

// cpusOf counts the CPUs of the machines on which the services are.
func cpusOf(hosts []model.Host, services map[owner]float64) int {
	cpus := map[string]int{}
	for _, h := range hosts {
		for o := range services {
			if o.netns == h.NetNS {
				cpus[query.MachineOf(h)] = h.CPUs
			}
		}
	}
	sum := 0
	for _, n := range cpus {
		sum += n
	}
	return sum
}

// requests counts the good replies by the first that did.
func (t *table) requests(q *query.Run, known query.Records) (*float64, string, error) {
	for _, c := range t.Requests {
		n, found, err := asked(q, c.Measure, known)
		if err != nil {
			return nil, "", err
		}
		if found && n > 0 {
			return &n, c.From, nil
		}
	}
	return nil, "", nil
}

// sums are samples by what they went into.
type sums struct {
	all, unnamed int64
	besides      int64 // what the kernel's own threads did with packets, for whoever these were
	by           map[*mechanism]*sum
	groups       map[string]int64
	unnamedIn    map[string]int64 // files of code whose functions have no names
}

type sum struct {
	samples   int64
	groups    map[string]int64
	functions map[model.BillFunction]int64
	innermost map[string]int64
	files     map[string]int64 // of code; those of the kernel are none
	nameless  map[nameless]int64
	callers   map[string]*caller
	// interrupts are those samples that were taken in one: the longer all takes, the more there are.
	interrupts int64
	scripted   scripted
}

// add sorts all samples of the services.
func (t *table) add(hosts []model.Host, services map[owner]float64, stacks []*profile.Profile) (*sums, error) {
	all := &sums{by: map[*mechanism]*sum{}, groups: map[string]int64{}, unnamedIn: map[string]int64{}}
	read := t.reader()
	for _, p := range stacks {
		for _, s := range p.Sample {
			group := label(s, "groupname")
			if len(s.Value) == 0 || s.Value[0] <= 0 || s.Value[0] > mostSamples {
				continue
			}
			if group == packetThreads {
				all.besides += s.Value[0]
			}
			if !isService(hosts, services, label(s, "netns"), group) {
				continue
			}
			st, err := read.stack(s)
			if err != nil {
				return nil, err
			}
			all.put(t.place(&st), &st, group, s.Value[0])
		}
	}
	t.shareOut(all)
	return all, nil
}

// isService says whether a group in a network namespace is one of the services. What is in
// none of the hosts' namespaces belongs to the machine, and is known by its name.
func isService(hosts []model.Host, services map[owner]float64, netns, group string) bool {
	ns, _ := strconv.ParseUint(netns, 10, 64)
	if _, ours := services[owner{ns, group}]; ours {
		return true
	}
	if slices.ContainsFunc(hosts, func(h model.Host) bool { return h.NetNS == ns }) {
		return false
	}
	for o := range services {
		if o.group == group {
			return true
		}
	}
	return false
}

func (all *sums) put(m *mechanism, st *stack, group string, count int64) {
	of := all.by[m]
	if of == nil {
		of = &sum{groups: map[string]int64{}, functions: map[model.BillFunction]int64{}, innermost: map[string]int64{}, files: map[string]int64{}, nameless: map[nameless]int64{}, callers: map[string]*caller{}}
		all.by[m] = of
	}
	f := m.where(st)
	of.samples += count
	of.groups[group] += count
	of.functions[f] += count
	if n := len(st.kernel); n > 0 && st.kernel[n-1].interrupt {
		of.interrupts += count
	}
	if inner := slices.Concat(st.kernel, st.user); len(inner) > 0 {
		of.innermost[inner[0].name] += count
	}
	if len(st.kernel) == 0 && len(st.user) > 0 && st.user[0].module != "" {
		of.files[st.user[0].module] += count
	}
	if m.hasParts && m.isNameless(st) {
		of.nameless[nameless{group, st.user[0].module, f}] += count
	}
	of.addCallers(st, count)
	all.all += count
	all.groups[group] += count
	if m.ID == "own" && len(st.user) > 0 && f.Function == st.user[0].name && strings.Contains(f.Function, "+0x") {
		all.unnamed += count
		all.unnamedIn[st.user[0].module] += count
	}
}

// where is the function to name for a stack: of a script its own, since the interpreter's
// are the same for all; else the innermost, of the kernel where the kernel does it.
func (m *mechanism) where(st *stack) model.BillFunction {
	if len(st.kernel) > 0 && !m.Whole {
		return model.BillFunction{Function: st.kernel[0].name}
	}
	between := len(m.Outermost) > 0 // what stands between a script and its interpreter has functions of its own
	if i := slices.IndexFunc(st.user, func(f *frame) bool { return strings.HasPrefix(f.name, "php:") && f.name != "php:{include}" }); i >= 0 && (i == 0 || !between) {
		return model.BillFunction{Function: st.user[i].name}
	}
	if len(st.user) == 0 {
		return model.BillFunction{Function: "[unknown]"}
	}
	f := st.user[0]
	out := model.BillFunction{Function: f.name, File: f.file, Line: f.line}
	if layout.Loadable(f.module) && !strings.Contains(f.name, f.module) {
		out.Module = f.module
	}
	return out
}

// write puts the sums on the bill.
func (all *sums) write(b *model.Bill) {
	b.Samples = all.all
	b.Services = groupsOf(all.groups, all.all)
	b.Entries, b.Notes = []model.BillEntry{}, []string{}
	for m, of := range all.by {
		e := model.BillEntry{
			Mechanism: m.ID, Text: m.Text, Told: !m.Rest, Why: m.Why, ByHand: m.ByHand, Avoidable: []model.Saving{},
			Share: float64(of.samples) / float64(all.all), Files: groupsOf(of.files, of.samples), Services: groupsOf(of.groups, of.samples), Functions: functionsOf(of.functions, all.all),
		}
		e.Caller = innermost(of.callers, of.samples, leastCalled)
		of.scripted.tell(&e)
		e.PlusMinus = 1.96 * math.Sqrt(e.Share*(1-e.Share)/float64(all.all))
		if b.SecondsPerRequest != nil {
			each := e.Share * *b.SecondsPerRequest
			e.SecondsPerRequest = &each
		}
		b.Entries = append(b.Entries, e)
	}
	if share := float64(all.besides) / float64(all.all); share >= leastSaving/2 {
		b.Notes = append(b.Notes, fmt.Sprintf("besides, the kernel's own threads (%s) took %.0f %% as much for packets, those of others among them", packetThreads, 100*share))
	}
	if share := float64(all.unnamed) / float64(all.all); share >= leastSaving/2 {
		var files []string
		for _, g := range groupsOf(all.unnamedIn, all.unnamed) {
			files = append(files, g.Name)
		}
		b.Notes = append(b.Notes, fmt.Sprintf("%.0f %% is in functions without names (%s): what of it is what could not be told apart; debug symbols name them", 100*share, strings.Join(files, ", ")))
	}
}

func groupsOf(counts map[string]int64, all int64) []model.LoadGroup {
	list := []model.LoadGroup{}
	for name, n := range counts {
		if share := float64(n) / float64(all); share >= leastService {
			list = append(list, model.LoadGroup{Name: name, Share: share})
		}
	}
	slices.SortFunc(list, func(a, b model.LoadGroup) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name))
	})
	return list
}

func functionsOf(counts map[model.BillFunction]int64, all int64) []model.BillFunction {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b model.BillFunction) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a.Function, b.Function), strings.Compare(a.Module, b.Module), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	list := []model.BillFunction{}
	for _, f := range keys[:min(len(keys), mostFunctions)] {
		f.Share = float64(counts[f]) / float64(all)
		list = append(list, f)
	}
	return list
}

// inOrder puts what is avoidable first, the largest saving first; then the largest share.
func inOrder(list []model.BillEntry) {
	spared := func(e model.BillEntry) float64 {
		most := 0.0
		for _, s := range e.Avoidable {
			most = max(most, s.Share)
		}
		return most
	}
	slices.SortFunc(list, func(a, b model.BillEntry) int {
		return cmp.Or(cmp.Compare(spared(b), spared(a)), cmp.Compare(b.Share, a.Share), strings.Compare(a.Mechanism, b.Mechanism))
	})
}
