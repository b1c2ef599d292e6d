package change

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// What an entry may name is what Prepare makes, and nothing else: the journal is
// read by root, and whatever is in it is written where it says.

const maxParts = 10_000 // as many processes as a change may be about

var (
	hostSpec  = lazy.Regexp(`^(local|(netns|unit|container):[^/\x00]{1,255}|pid:[0-9]{1,9})$`)
	bootShape = lazy.Regexp(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`) // as the kernel writes its boot id
	queueFile = lazy.Regexp(`^/sys/class/net/([^/]+)/queues/rx-[0-9]{1,5}/rps_cpus$`)
	groupFile = lazy.Regexp(`^/.*/cpu\.(max|cfs_quota_us|cfs_period_us)$`)
)

// check says what in an entry no change of ours would have written. It looks at
// nothing but the entry.
func (e Entry) check() error {
	if len(e.Parts) == 0 || len(e.Parts) > maxParts { // without one nothing could be taken back
		return fmt.Errorf("it has %d parts, want 1 to %d", len(e.Parts), maxParts)
	}
	if e.Service != nil {
		if err := e.Service.checkShape(); err != nil {
			return err
		}
	}
	for i := range e.Masters {
		if err := e.Masters[i].checkShape(); err != nil {
			return err
		}
	}
	for _, p := range e.Parts {
		if err := e.checkPart(p); err != nil {
			return fmt.Errorf("%s: %w", p.Target, err)
		}
	}
	if !bootShape().MatchString(e.Boot) { // it would pass for one that a reboot has taken back
		return fmt.Errorf("boot %q, want the kernel's boot id of that time", e.Boot)
	}
	return nil
}

func (e Entry) checkPart(p part) error {
	if n := p.Target.Net; n != nil && (n.Spec != e.Spec || !hostSpec().MatchString(n.Spec)) {
		return fmt.Errorf("host %q, want that of the change, %q", n.Spec, e.Spec)
	}
	if q := p.Target.Process; q != nil && q.PID < 1 {
		return fmt.Errorf("process %d", q.PID)
	}
	if p.Target.Kind == inFile {
		return e.checkFile(p)
	}
	if err := e.checkTarget(p.Target); err != nil {
		return err
	}
	return p.checkValues()
}

// checkTarget holds a target against the change that it is said to be for.
func (e Entry) checkTarget(p target) error {
	c := e.Change
	kinds := map[Kind]targetKind{Sysctl: inKernel, Quota: inKernel, RPS: inKernel, IRQ: inKernel, TxQueue: inKernel, Nginx: inSocket, PHPFPM: inSocket,
		Backlog: inSocket, Limit: inLimit, Affinity: inCPUs, Nice: inNice, Policy: inPolicy, Ring: inRing}
	if want, ok := kinds[c.Kind]; !ok || p.Kind != want {
		return fmt.Errorf("a change of kind %q sets nothing of kind %q", c.Kind, p.Kind)
	}
	ok := false
	switch p.Kind {
	case inKernel:
		return errors.Join(c.checkKernelFile(p), e.checkNamespace(p))
	case inSocket:
		ok = p.Net != nil && p.Listen != "" && (c.Kind != Backlog || p.Listen == c.Listen)
	case inRing:
		name, which, _ := strings.Cut(p.Name, " ")
		ok = p.Net != nil && p.Name == c.Name && interfaceName().MatchString(name) && (which == "rx" || which == "tx")
	case inLimit:
		_, known := limits[p.Name]
		ok = p.Process != nil && known && p.Name == c.Name
	default:
		ok = p.Process != nil
	}
	if !ok {
		return fmt.Errorf("a change of %s has no such target", c.Kind)
	}
	return nil
}

// checkNamespace wants a network namespace of what each has for itself, and none of what
// the machine shares: without one, what is set is that of wherever we are.
func (e Entry) checkNamespace(p target) error {
	want := e.Change.Kind == TxQueue || e.Change.Kind == RPS
	if e.Change.Kind == Sysctl {
		want = e.Scope == Namespace
		if !want && (e.Scope != Machine || ofInterface(p.Path)) {
			return fmt.Errorf("its scope is %q, which is none that it can have", e.Scope)
		}
	}
	if want != (p.Net != nil) {
		return fmt.Errorf("it is one of a network namespace: %v; it names one: %v", want, p.Net != nil)
	}
	return nil
}

// checkKernelFile wants the very file that the change is about.
func (c Change) checkKernelFile(p target) error {
	want := ""
	switch c.Kind {
	case Sysctl:
		file, err := sysctlPath(c.Name)
		if err != nil || !settable(sysctlName(file)) {
			return fmt.Errorf("sysctl %q is none that we set", c.Name)
		}
		want = file
	case IRQ:
		if !whole().MatchString(c.Name) {
			return fmt.Errorf("interrupt %q", c.Name)
		}
		want = "/proc/irq/" + strconv.Itoa(atoi(c.Name)) + "/smp_affinity_list"
	case TxQueue:
		want = "/sys/class/net/" + c.Name + "/tx_queue_len"
	case RPS:
		if m := queueFile().FindStringSubmatch(p.Path); m != nil && m[1] == c.Name {
			want = p.Path
		}
	case Quota: // that it lies in a hierarchy of control groups shows when it is opened
		if groupFile().MatchString(p.Path) && p.Dir != 0 && p.Net == nil {
			want = p.Path
		}
	}
	named := c.Kind != TxQueue && c.Kind != RPS || interfaceName().MatchString(c.Name)
	if !named || p.Path != want || path.Clean(p.Path) != p.Path || strings.ContainsRune(p.Path, 0) {
		return fmt.Errorf("want %q", want)
	}
	return nil
}

// checkFile wants a configuration file of the entry's service: what was there and
// what we made of it both have to be such.
func (e Entry) checkFile(p part) error {
	file := filepath.Clean(p.Target.Path)
	outside := slices.ContainsFunc([]string{"/proc/", "/sys/", "/dev/"}, func(dir string) bool { return strings.HasPrefix(file, dir) })
	if e.Service == nil || e.Service.Kind != e.Change.Kind || !filepath.IsAbs(p.Target.Path) || outside || strings.ContainsRune(file, 0) {
		return fmt.Errorf("a change of %s edits no such file", e.Change.Kind)
	}
	for _, text := range [][]byte{p.Old, p.New} {
		if len(text) > maxFile+maxSetting*len(e.Parts) {
			return fmt.Errorf("it has %d bytes", len(text))
		}
		var err error
		if e.Service.Kind == Nginx {
			_, err = nginx.Parse(text, file)
		} else {
			_, err = phpfpm.Parse(text, file)
		}
		if err != nil {
			return fmt.Errorf("it is no file of %s: %w", e.Service.Kind, err)
		}
	}
	return nil
}

// checkShape says what no service of ours would have, its arguments above all:
// its binary is run with them.
func (s *service) checkShape() error {
	ok := s.PID > 0 && s.Conf != "" && hostSpec().MatchString(s.Net.Spec)
	switch s.Kind {
	case PHPFPM:
		ok = ok && slices.Equal(s.Test, []string{"-t", "-R", "--fpm-config", s.Conf})
	case Nginx:
		ok = ok && len(s.Test)%2 == 1 && s.Test[0] == "-t"
		for i := 1; ok && i < len(s.Test); i += 2 {
			ok = slices.Contains([]string{"-p", "-c", "-e", "-g"}, s.Test[i])
		}
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%s %q on host %q with the arguments %q is no service that we change", s.Kind, s.Conf, s.Net.Spec, s.Test)
	}
	return nil
}
