package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
)

// parseCase reads one case file and says everything that is wrong with it.
// files holds the templates that steps name.
func parseCase(data []byte, files fs.FS) (*Case, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var c Case
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("case file is not as lab/README.md describes: %w", err)
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !plainName(c.ID) {
		bad("id %q: expected lower-case letters, digits and dashes", c.ID)
	}
	for name, v := range map[string]string{"title": c.Title, "symptom": c.Symptom, "what": c.What, "seen.with": c.Seen.With, "seen.faulty": c.Seen.Faulty} {
		if strings.TrimSpace(v) == "" {
			bad("%s is empty", name)
		}
	}
	if len(c.Symptom) > 100 || strings.Contains(strings.TrimSpace(c.Symptom), "\n") {
		bad("symptom: expected one line of at most 100 characters")
	}
	if c.Twin != nil && c.Twin.Measure == "" {
		bad("twin: needs measure")
	}
	if c.Blind != "" {
		if _, err := time.Parse(time.DateOnly, c.Blind); err != nil || strings.TrimSpace(c.Truth.Cause) == "" {
			bad("blind %q: expected the day as 2006-01-02, and truth.cause in words", c.Blind)
		}
	}
	for _, n := range c.Needs {
		if err := n.check(); err != nil {
			bad("%w", err)
		}
	}
	for i, s := range c.Steps {
		if err := s.check(files); err != nil {
			bad("step %d: %w", i+1, err)
		}
	}
	errs = append(errs, c.Load.check(), c.Truth.check())
	errs = append(errs, c.checkMends(), c.checkVars(files))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &c, nil
}

func (s Step) check(files fs.FS) error {
	set, hosts := 0, []string{}
	if v := s.Sysctl; v != nil {
		set, hosts = set+1, append(hosts, v.Host)
		if !strings.HasPrefix(v.Name, "net.") {
			return fmt.Errorf("sysctl %q: only settings below net. belong to a namespace", v.Name)
		}
	}
	if v := s.MachineSysctl; v != nil {
		set++
		if !slices.Contains(machineSysctls, v.Name) {
			return fmt.Errorf("machine_sysctl %q: only %s may be changed", v.Name, strings.Join(machineSysctls, ", "))
		}
	}
	if v := s.NFT; v != nil {
		hosts = append(hosts, orPath(v.Host)...)
	}
	if v := s.Qdisc; v != nil {
		hosts = append(hosts, orPath(v.Host)...)
	}
	if v := s.Offload; v != nil {
		hosts = append(hosts, v.Host)
		if v.Segments < 1 {
			return errors.New("offload: expected segments, at least 1")
		}
	}
	set += s.network()
	if v := s.File; v != nil {
		set++
		if err := v.check(files); err != nil {
			return err
		}
	}
	if v := s.DiskFile; v != nil {
		set++
		if !fs.ValidPath(v.Path) || v.Kilobytes <= 0 || v.Kilobytes > 64<<10 {
			return fmt.Errorf("disk_file %q of %d KiB: expected a path inside the disk directory and at most 64 MiB", v.Path, v.Kilobytes)
		}
	}
	if v := s.Cgroup; v != nil {
		set++
		if err := v.check(); err != nil {
			return err
		}
	}
	for _, v := range []*Service{s.Nginx, s.PHPFPM} {
		if v != nil {
			set, hosts = set+1, append(hosts, v.Host)
			if err := v.check(); err != nil {
				return err
			}
		}
	}
	if v := s.Process; v != nil {
		set, hosts = set+1, append(hosts, orPath(v.Host)...)
		if err := v.check(); err != nil {
			return err
		}
	}
	if set != 1 {
		return fmt.Errorf("%d kinds of step in one; expected exactly one", set)
	}
	for _, h := range hosts {
		if !slices.Contains(hostNames, h) {
			return fmt.Errorf("host %q: expected one of %s", h, strings.Join(hostNames, ", "))
		}
	}
	return nil
}

func (s *Service) check() error {
	if s.Config == "" || (s.Listen == 0) == (s.Socket == "") {
		return errors.New("a service needs config, and either listen or socket")
	}
	return nil
}

func (p *Process) check() error {
	if !plainName(p.Name) || len(p.Command) == 0 {
		return errors.New("a process needs a name and a command")
	}
	return nil
}

func (f *File) check(files fs.FS) error {
	if !fs.ValidPath(f.Path) {
		return fmt.Errorf("file path %q: expected one inside the work directory", f.Path)
	}
	if (f.From == "") == (f.Content == "") {
		return fmt.Errorf("file %s: expected either from or content", f.Path)
	}
	if f.From != "" {
		if _, err := fs.Stat(files, f.From); err != nil {
			return fmt.Errorf("file %s: no template %q: %w", f.Path, f.From, err)
		}
	}
	return nil
}

func (l Load) check() error {
	if l.URL != "" && len(l.Command) > 0 {
		return errors.New("load: expected either url or command")
	}
	if l.URL == "" && len(l.Command) == 0 && l.Duration <= 0 {
		return errors.New("load: expected url, command, or the duration of a watch beside what a step drives")
	}
	if l.URL != "" && (l.Connections <= 0 || l.Duration <= 0) {
		return errors.New("load: a url needs connections and duration")
	}
	return nil
}

// checkMends makes sure that every cause which may be named can be mended.
func (c *Case) checkMends() error {
	var errs []error
	mended := map[string]bool{}
	for _, m := range c.Mends {
		if !plainName(m.ID) || m.Title == "" || len(m.Rules) == 0 && len(c.Truth.Root) > 0 || len(m.Set) == 0 {
			errs = append(errs, fmt.Errorf("mend %q: needs id, title, rules and set", m.ID))
		}
		for name := range m.Set {
			if _, ok := c.Vars[name]; !ok {
				errs = append(errs, fmt.Errorf("mend %s: sets %q, which is not in vars", m.ID, name))
			}
		}
		for _, r := range m.Rules {
			mended[r] = true
		}
	}
	if c.Truth.Answer == model.AnswerCause {
		for _, r := range c.Truth.roots() {
			if !mended[r] {
				errs = append(errs, fmt.Errorf("truth: no mend for rule %s", r))
			}
		}
	}
	return errors.Join(errs...)
}

// checkVars refuses a var that no template reads: a misspelt one would leave
// the fault out without a word.
func (c *Case) checkVars(files fs.FS) error {
	var all strings.Builder
	for _, s := range c.Steps {
		switch {
		case s.Sysctl != nil:
			all.WriteString(s.Sysctl.Value)
		case s.MachineSysctl != nil:
			all.WriteString(s.MachineSysctl.Value)
		case s.NFT != nil:
			all.WriteString(s.NFT.Rules)
		case s.Qdisc != nil:
			all.WriteString(s.Qdisc.Spec)
		case s.File != nil:
			if text, err := s.File.text(files); err == nil {
				all.WriteString(text)
			}
		case s.Cgroup != nil:
			all.WriteString(strings.Join(s.Cgroup.texts(), " "))
		case s.Nginx != nil:
			all.WriteString(strings.Join(s.Nginx.texts(), " "))
		case s.PHPFPM != nil:
			all.WriteString(strings.Join(s.PHPFPM.texts(), " "))
		case s.Process != nil:
			all.WriteString(strings.Join(s.Process.Command, " "))
			all.WriteString(" ." + s.Process.Unless + " ")
		}
	}
	all.WriteString(strings.Join(c.Load.Command, " "))
	var unread []string
	for name := range c.Vars {
		if !strings.Contains(all.String(), "."+name) {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 {
		sort.Strings(unread)
		return fmt.Errorf("no step reads the vars %s", strings.Join(unread, ", "))
	}
	return nil
}

func (g *Cgroup) check() error {
	if !plainName(g.Name) {
		return fmt.Errorf("cgroup %q: expected lower-case letters, digits and dashes", g.Name)
	}
	return nil
}

func (n Need) check() error {
	if n.Find == "" || n.Package == "" {
		return errors.New("needs: expected find (a program, or a path) and package (of Debian)")
	}
	return nil
}
