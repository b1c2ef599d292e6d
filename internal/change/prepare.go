package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/host"
)

// Prepare looks at a change and makes nothing: what is set now, whether it can
// be changed, how far that reaches. Beside the errors of this room it returns
// fs.ErrNotExist (no such setting) and fs.ErrPermission. h need not stay open.
func Prepare(h *host.Host, c Change) (Step, error) {
	s := Step{Change: c, Host: h.Name, Spec: h.Spec, New: c.To, Restart: None}
	if h.Recorded() {
		return s, fmt.Errorf("%s is a recorded host: %w", h.Name, ErrNotPossible)
	}
	if len(c.To) > 4096 || strings.ContainsAny(c.To, "\n\r\x00") {
		return s, fmt.Errorf("%s %s: want one line, got %q", c.Kind, c.Name, c.To)
	}
	var err error
	if s.netns, err = namespaceOf(h); err != nil {
		return s, err
	}
	prepare, ok := map[Kind]func(*host.Host, Change, *Step) error{
		Sysctl: prepareSysctl, Nginx: prepareNginx, PHPFPM: preparePHPFPM, Backlog: prepareBacklog, Limit: prepareLimit,
		Affinity: prepareAffinity, Nice: prepareNice, Policy: preparePolicy, Quota: prepareQuota, RPS: prepareRPS, IRQ: prepareIRQ,
		TxQueue: prepareTxQueue, Ring: prepareRing,
	}[c.Kind]
	if !ok {
		return s, fmt.Errorf("no changes of kind %q", c.Kind)
	}
	if err := prepare(h, c, &s); err != nil {
		return s, err
	}
	if len(s.parts) == 0 {
		return s, fmt.Errorf("%s on %s: %w", c, h.Name, ErrAlready)
	}
	s.Undo = s.undoSentence()
	return s, nil
}

func (s *Step) undoSentence() string {
	text := "plimsoll undo writes the old value back"
	if len(s.Files) > 0 {
		text = "plimsoll undo puts back " + strings.Join(s.Files, " and ") + " byte for byte"
		if s.Restart == Reload {
			text += " and reloads the service"
		}
	}
	if !slices.ContainsFunc(s.parts, func(p part) bool { return !p.Target.untilReboot() }) {
		text += "; so does a restart of what it belongs to, or of the machine"
	}
	return text
}

// add notes a value that is to be set, unless it is so.
func (s *Step) add(at target, to string) error {
	old, err := at.get()
	if err != nil {
		return err
	}
	if old != to {
		s.parts = append(s.parts, part{Target: at, Old: []byte(old), New: []byte(to)})
	}
	if s.Old == "" {
		s.Old = old
	}
	return nil
}

// addFiles notes the files that are to be edited.
func (s *Step) addFiles(edits map[string][]edit, at target) error {
	var real []string
	for _, file := range slices.Sorted(maps.Keys(edits)) {
		at := at
		at.Path = file
		if at.file().seenByUs() {
			at.Process = nil
		}
		path, err := at.file().real()
		if err != nil {
			return err
		}
		if slices.Contains(real, path) {
			return fmt.Errorf("%s is included under two names: %w", path, ErrNotPossible)
		}
		p, err := filePart(at, edits[file])
		if err != nil {
			return err
		}
		real = append(real, path)
		s.parts, s.Files = append(s.parts, p), append(s.Files, file)
		if !s.service.NoReload {
			s.Restart = Reload
		}
	}
	return nil
}

// addBacklog notes an open listener's backlog.
func (s *Step) addBacklog(h *host.Host, addr string, backlog int) error {
	p, note, differs, err := socketPart(h, addr, backlog, s.netns)
	if err != nil {
		return err
	}
	if note != "" {
		s.Notes = append(s.Notes, note)
	}
	if s.Change.Kind != Nginx && strings.HasPrefix(addr, "unix:") { // nginx listens anew itself
		s.Notes = append(s.Notes, "clients that ask the kernel who listens there (SO_PEERCRED) are told the number of a plimsoll, until the service starts again")
	}
	if s.Change.Kind == Nginx {
		const nginxDefault = 511
		before := nginxDefault
		if s.Old != "" {
			before = atoi(s.Old)
		}
		asked := before
		before, _ = backlogIn(h, before)
		p.Between = []string{fmt.Sprint(asked), fmt.Sprint(before)} // what a reload asks for, and gets
	}
	if differs {
		s.parts = append(s.parts, p)
		if len(s.Files) == 0 {
			s.Old = string(p.Old)
		}
	}
	return nil
}

func prepareBacklog(h *host.Host, c Change, s *Step) error {
	if !whole.MatchString(c.To) || c.Listen == "" {
		return fmt.Errorf("backlog: want a listener and a whole number, got %q and %q", c.Listen, c.To)
	}
	s.Scope = Service
	return s.addBacklog(h, c.Listen, atoi(c.To))
}

func prepareLimit(h *host.Host, c Change, s *Step) error {
	if _, ok := limits[c.Name]; !ok {
		return fmt.Errorf("limit %q: want one of %s", c.Name, strings.Join(slices.Sorted(maps.Keys(limits)), " "))
	}
	want, err := limitNumber(c.To)
	if err != nil {
		return fmt.Errorf("limit %s: %w", c.Name, err)
	}
	return s.eachProcess(h, target{Kind: inLimit, Name: c.Name}, func(old string) (string, error) {
		_, hard, _ := strings.Cut(old, ":")
		most, err := limitNumber(hard)
		return limitText(want) + ":" + limitText(max(want, most)), err
	})
}

func prepareAffinity(h *host.Host, c Change, s *Step) error {
	set, err := wantedCPUs(c.To)
	if err != nil {
		return fmt.Errorf("affinity: %w", err)
	}
	s.New = cpuList(set)
	return s.eachProcess(h, target{Kind: inCPUs}, func(string) (string, error) { return cpuList(set), nil })
}

func prepareNice(h *host.Host, c Change, s *Step) error {
	n := atoi(c.To)
	if fmt.Sprint(n) != c.To || n < -20 || n > 19 {
		return fmt.Errorf("nice: want a whole number from -20 to 19, got %q", c.To)
	}
	if err := notRealTime(h, c); err != nil {
		return err
	}
	s.Notes = append(s.Notes, "where kernel.sched_autogroup_enabled is 1, a nice value counts among the processes of one session alone")
	return s.eachProcess(h, target{Kind: inNice}, func(string) (string, error) { return c.To, nil })
}

// eachProcess notes a value for each process that the change is about.
func (s *Step) eachProcess(h *host.Host, at target, next func(old string) (string, error)) error {
	list, err := named(h, s.Change)
	if err != nil {
		return err
	}
	s.Scope = Process
	if s.masters, err = masters(h, list); err != nil {
		return err
	}
	for _, p := range list {
		at.Process = &p
		old, err := at.get()
		if err != nil {
			return err
		}
		to, err := next(old)
		if err == nil {
			err = s.add(at, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
