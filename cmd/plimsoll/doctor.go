package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/privilege"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/all"
	"plimsoll/internal/secret"
	"plimsoll/internal/session"
	"plimsoll/internal/trace"
)

const doctorLong = `Opens every probe on every host, reads it twice, and attaches every tracer for a
moment. First it sums up: what can be seen, what would help most, and each
reason why something is not seen, once. -v says it of each probe and tracer, and
shows what else of this machine bears on a run: open files, ports, privileges
that are missing and for what. It changes nothing.`

// doctorPause is the time between the two readings: what is asked in the
// background (a service's status page) is reported by the second.
const doctorPause = 500 * time.Millisecond

// byHandTools are the programs that the reports' "by hand" lines call.
var byHandTools = []string{"ss", "ip", "nstat", "conntrack", "nft", "sysctl", "pidstat", "mpstat", "iostat", "ethtool", "dmesg", "curl"}

type checkup struct {
	Machine machineFacts  `json:"machine"`
	Hosts   []hostCheckup `json:"hosts"`
	// Lacking are the capabilities that this process does not have, by what needs them.
	Lacking []lack `json:"lacking"`
	// Tracers are those of plimsoll trace.
	Tracers []probeCheckup `json:"tracers"`
}

// lack is what some parts need and do not have.
type lack struct {
	Kind    string   `json:"kind"` // tracer, probe or host
	Parts   []string `json:"parts"`
	Missing []string `json:"missing"`
	Why     string   `json:"why"`
	Without string   `json:"without,omitempty"`
}

// machineFacts are about the machine on which Plimsoll runs.
type machineFacts struct {
	Kernel     string `json:"kernel"`
	Root       bool   `json:"root"`
	UID        int    `json:"uid"`
	FilesSoft  uint64 `json:"open_files_soft"`
	FilesHard  uint64 `json:"open_files_hard"`
	LocalPorts string `json:"local_ports"`
	// Tools and MissingTools are the by-hand programs that are, and are not, in PATH.
	Tools        []string `json:"tools"`
	MissingTools []string `json:"missing_tools"`
}

type hostCheckup struct {
	Host   model.Host     `json:"host"`
	Probes []probeCheckup `json:"probes"`
}

// probeCheckup is about a probe, or a tracer.
type probeCheckup struct {
	Probe string `json:"probe"`
	// Read of Signals signals were read.
	Read    int                     `json:"read"`
	Signals map[string]model.Status `json:"signals"`
	Blind   []string                `json:"blind,omitempty"`
}

func doctorCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "what can be seen on this host, and why not the rest", Long: doctorLong, Args: noArguments,
		Example: "  plimsoll doctor\n  plimsoll doctor --host server=netns:srv --json"}
	var hosts []string
	c.Flags().StringArrayVar(&hosts, "host", nil, "look at this host, as `NAME=SPEC` (see plimsoll run; with ssh: on its machine); may be given again")
	var verbose bool
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "say of each probe and tracer what it can see")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		via, there, err := oneFar(hosts)
		if err != nil {
			return usage(c.CommandPath(), "%v", err)
		}
		if via != "" {
			return relay(c.Context(), w, via, doctorWords(there, verbose, *asJSON)...)
		}
		specs, err := parseHosts(there)
		if err != nil {
			return usage(c.CommandPath(), "%v", err)
		}
		found, err := examine(c.Context(), w, specs)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, found)
		}
		printCheckup(w, found, verbose)
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitMissing)
}

// doctorWords are the command that does the same on the machine of the hosts.
func doctorWords(hosts []string, verbose, asJSON bool) []string {
	words := []string{"doctor", "--verbose=" + strconv.FormatBool(verbose), "--json=" + strconv.FormatBool(asJSON)}
	for _, h := range hosts {
		words = append(words, "--host="+h)
	}
	return words
}

// statuses takes what probes say and keeps what became of each signal.
type statuses struct {
	mu    sync.Mutex
	hosts map[string]map[string]model.Status
}

// Sample, Event and Note make it a probe.Recorder; doctor keeps no values.
func (*statuses) Sample(string, int64, *model.Signal, float64, ...string) {}

// Event is dropped.
func (*statuses) Event(model.Event) {}

// Note is dropped: what matters to doctor is in the statuses.
func (*statuses) Note(string) {}

// Status keeps the newest word about a signal.
func (s *statuses) Status(host, signal string, st model.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts[host] == nil {
		s.hosts[host] = map[string]model.Status{}
	}
	st.Why = secret.Text(st.Why)
	s.hosts[host][signal] = st
}

// examine reads every probe on every host twice.
func examine(ctx context.Context, w *world, specs []session.HostSpec) (_ *checkup, err error) {
	if len(specs) == 0 {
		specs = []session.HostSpec{{Name: "local", Spec: "local"}}
	}
	facts, err := lookAround()
	if err != nil {
		return nil, err
	}
	found := &checkup{Machine: facts}
	if found.Lacking, err = lacking(); err != nil {
		return nil, err
	}
	var hosts []*host.Host
	defer func() {
		for _, h := range hosts {
			h.Close()
		}
	}()
	for _, spec := range specs {
		h, err := host.Open(spec.Name, spec.Spec)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
		info, err := h.Info()
		if err != nil {
			return nil, err
		}
		found.Hosts = append(found.Hosts, hostCheckup{Host: info})
	}
	seen := &statuses{hosts: map[string]map[string]model.Status{}}
	if err := readTwice(ctx, hosts, seen); err != nil {
		return nil, err
	}
	for i := range found.Hosts {
		found.Hosts[i].Probes = byProbe(seen.hosts[found.Hosts[i].Host.Name])
	}
	for _, t := range allTracers(w) {
		one, err := tryTracer(t)
		if err != nil {
			return nil, err
		}
		found.Tracers = append(found.Tracers, one)
	}
	return found, nil
}

// lacking goes through the table of what each part needs.
func lacking() ([]lack, error) {
	list := []lack{}
	for _, n := range privilege.Table {
		missing, err := privilege.Missing(n.Caps)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			continue
		}
		l := lack{Kind: n.Kind, Parts: n.Parts, Why: n.Why, Without: n.Without}
		for _, c := range missing {
			l.Missing = append(l.Missing, c.String())
		}
		list = append(list, l)
	}
	return list, nil
}

// tryTracer attaches a tracer for a moment.
func tryTracer(t trace.Tracer) (probeCheckup, error) {
	found := probeCheckup{Probe: t.Name, Signals: map[string]model.Status{}, Blind: t.Blind}
	err := t.MayRun()
	var running trace.Running
	if err == nil {
		running, err = t.Start()
	}
	if err != nil {
		for _, s := range t.Signals {
			found.Signals[s.Name] = host.StatusOf(err)
		}
		return found, nil
	}
	for name, st := range running.Status() {
		found.Signals[name] = st
		if st.State == model.Read {
			found.Read++
		}
	}
	return found, running.Close()
}

func readTwice(ctx context.Context, hosts []*host.Host, into *statuses) (err error) {
	s := probe.NewSampler(hosts, all.All(), probe.NewStatusBook(into), time.Second)
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	if err := s.Round(ctx, time.Now(), true); err != nil {
		return err
	}
	select {
	case <-time.After(doctorPause):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Round(ctx, time.Now(), true)
}

// byProbe sorts the statuses of a host's signals by the probe that reads them.
func byProbe(seen map[string]model.Status) []probeCheckup {
	var list []probeCheckup
	for _, p := range all.All() {
		pc := probeCheckup{Probe: p.Name, Signals: map[string]model.Status{}, Blind: p.Blind}
		for _, s := range p.Signals {
			st, ok := seen[s.Name]
			if !ok {
				continue
			}
			pc.Signals[s.Name] = st
			if st.State == model.Read {
				pc.Read++
			}
		}
		if len(pc.Signals) > 0 {
			list = append(list, pc)
		}
	}
	return list
}

func lookAround() (machineFacts, error) {
	f := machineFacts{UID: os.Geteuid(), Root: os.Geteuid() == 0, Tools: []string{}, MissingTools: []string{}}
	for path, into := range map[string]*string{"/proc/sys/kernel/osrelease": &f.Kernel, "/proc/sys/net/ipv4/ip_local_port_range": &f.LocalPorts} {
		text, err := os.ReadFile(path)
		if err != nil {
			return f, fmt.Errorf("look at this machine; is /proc mounted? %w", err)
		}
		*into = strings.Join(strings.Fields(string(text)), " to ")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return f, fmt.Errorf("ask for the limit of open files: %w", err)
	}
	f.FilesSoft, f.FilesHard = limit.Cur, limit.Max
	for _, tool := range byHandTools {
		if _, err := exec.LookPath(tool); err != nil {
			f.MissingTools = append(f.MissingTools, tool)
		} else {
			f.Tools = append(f.Tools, tool)
		}
	}
	return f, nil
}

// printCheckup writes a summary, and with verbose all of it after that.
func printCheckup(w *world, c *checkup, verbose bool) {
	t := c.sum()
	rows := [][]string{
		{"machine", fmt.Sprintf("Linux %s, %s", c.Machine.Kernel, c.Machine.who())},
		{"seen", fmt.Sprintf("%d of %d signals; %d of %d probes whole, %d of %d tracers", t.read, t.signals, t.probes.whole, t.probes.all, t.tracers.whole, t.tracers.all)},
	}
	if missing := c.Machine.MissingTools; len(missing) > 0 {
		rows = append(rows, []string{"not here", strings.Join(missing, " ") + " (only the by-hand lines want them)"})
	}
	for _, h := range t.help {
		label := ""
		if rows[len(rows)-1][0] != "would help" && rows[len(rows)-1][0] != "" {
			label = "would help"
		}
		rows = append(rows, []string{label, h})
	}
	for i, r := range rows {
		rows[i][1] = layout.Indent(layout.Wrap(r[1], w.columns()-12), strings.Repeat(" ", 12))
	}
	for _, r := range rows {
		fmt.Fprintf(w.stdout, "%-12s%s\n", r[0], r[1])
	}
	if len(t.reasons) > 0 {
		fmt.Fprintln(w.stdout, "\nnot seen")
	}
	for _, r := range t.reasons {
		text := fmt.Sprintf("%s: %s", plural(r.signals, "signal"), r.why)
		if len(r.of) <= mostNamed {
			text = strings.Join(r.of, ", ") + ": " + text
		}
		fmt.Fprintf(w.stdout, "  %s\n", layout.Indent(layout.Wrap(text, w.columns()-4), "    "))
	}
	if !verbose {
		fmt.Fprintln(w.stdout, "\nmore        plimsoll doctor -v: each probe and tracer")
		return
	}
	printAll(w, c)
}

// mostNamed is of how many probes a reason names them.
const mostNamed = 4

// who says with whose rights it looked.
func (m machineFacts) who() string {
	if m.Root {
		return "as root"
	}
	return fmt.Sprintf("as user %d; what belongs to others is denied", m.UID)
}

// share counts what was whole.
type share struct{ whole, all int }

// reason is why signals were not read.
type reason struct {
	why     string
	signals int
	of      []string // probes and tracers
}

// summary is what matters of a checkup.
type summary struct {
	read, signals   int
	probes, tracers share
	reasons         []reason
	help            []string
}

// mostHelp is how many things are told that would help.
const mostHelp = 3

// sum adds a checkup up: each reason once, those that cost the most signals first.
func (c *checkup) sum() (t summary) {
	by := map[string]*reason{}
	count := func(into *share, p probeCheckup) {
		t.read, t.signals = t.read+p.Read, t.signals+len(p.Signals)
		into.all++
		if p.Read == len(p.Signals) {
			into.whole++
		}
		for _, st := range p.Signals {
			if st.State == model.Read {
				continue
			}
			r := by[st.Why]
			if r == nil {
				r = &reason{why: st.Why}
				by[st.Why] = r
			}
			r.signals++
			if !slices.Contains(r.of, p.Probe) {
				r.of = append(r.of, p.Probe)
			}
		}
	}
	for _, h := range c.Hosts {
		for _, p := range h.Probes {
			count(&t.probes, p)
		}
	}
	for _, p := range c.Tracers {
		count(&t.tracers, p)
	}
	for _, r := range by {
		t.reasons = append(t.reasons, *r)
	}
	slices.SortFunc(t.reasons, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.signals, a.signals), cmp.Compare(a.why, b.why))
	})
	t.help = c.help(t.reasons)
	return t
}

// help are the few things that would let the most be seen.
func (c *checkup) help(reasons []reason) []string {
	var list []string
	if len(c.Lacking) > 0 && !c.Machine.Root {
		list = append(list, "run it as root; it lacks "+strings.Join(c.missing(), ", "))
	} else if len(c.Lacking) > 0 {
		list = append(list, "more capabilities: root lacks "+strings.Join(c.missing(), ", ")+" here; is it a container?")
	}
	for _, r := range reasons {
		if _, advice, ok := strings.Cut(r.why, "; "); ok && len(list) < mostHelp && !strings.Contains(advice, "as root") {
			list = append(list, advice+" ("+plural(r.signals, "signal")+" of "+strings.Join(r.of[:min(len(r.of), mostNamed)], ", ")+")")
		}
	}
	return list
}

// missing are the capabilities that this process does not have, each once.
func (c *checkup) missing() (caps []string) {
	for _, l := range c.Lacking {
		for _, name := range l.Missing {
			if !slices.Contains(caps, name) {
				caps = append(caps, name)
			}
		}
	}
	return caps
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return layout.Count(int64(n)) + " " + noun + "s"
}

// printAll writes what a checkup found of each probe and tracer.
func printAll(w *world, c *checkup) {
	m := c.Machine
	fmt.Fprintf(w.stdout, "\nopen files  %s, can be raised to %s\nlocal ports %s\ntools       %s\n",
		layout.Count(int64(m.FilesSoft)), layout.Count(int64(m.FilesHard)), m.LocalPorts, strings.Join(m.Tools, " "))
	printLacking(w, c.Lacking)
	for _, h := range c.Hosts {
		fmt.Fprintf(w.stdout, "\n%s = %s\n", h.Host.Name, h.Host.Spec)
		for _, p := range h.Probes {
			printProbe(w, p)
		}
	}
	fmt.Fprintln(w.stdout, "\ntracing")
	for _, t := range c.Tracers {
		printProbe(w, t)
	}
}

// printLacking writes which privileges are missing, for what.
func printLacking(w *world, list []lack) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w.stdout, "\nlacks")
	for _, l := range list {
		text := fmt.Sprintf("%s for %s %s: %s", strings.Join(l.Missing, ", "), l.Kind, strings.Join(l.Parts, ", "), l.Why)
		if l.Without != "" {
			text += " (" + l.Without + ")"
		}
		fmt.Fprintf(w.stdout, "  %s\n", layout.Indent(layout.Wrap(text, w.columns()-4), "    "))
	}
}

// printProbe writes a line for a probe, and one for each reason why not all of it was read.
func printProbe(w *world, p probeCheckup) {
	word := "ok"
	if p.Read < len(p.Signals) {
		word = "part"
	}
	if p.Read == 0 {
		word = "no"
	}
	fmt.Fprintf(w.stdout, "  %-4s  %-18s %d of %d signals\n", word, p.Probe, p.Read, len(p.Signals))
	reasons := map[string][]string{}
	for name, st := range p.Signals {
		if st.State != model.Read {
			why := string(st.State) + ": " + st.Why
			reasons[why] = append(reasons[why], name)
		}
	}
	var order []string
	for why := range reasons {
		order = append(order, why)
	}
	sort.Strings(order)
	for _, why := range order {
		names := reasons[why]
		slices.Sort(names)
		text := why
		if len(names) < len(p.Signals) {
			text += " (" + strings.Join(names, ", ") + ")"
		}
		fmt.Fprintf(w.stdout, "          %s\n", layout.Indent(layout.Wrap(text, w.columns()-10), "          "))
	}
}
