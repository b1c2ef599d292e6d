package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// seen is what was seen on one kernel.
type seen struct {
	kernel
	release string
	when    time.Time
	tracers map[string]*tracer
	order   []string
	probes  [2]int // signals that were read, of so many
	trials  []*trial
}

// trial is something that is done as a whole: a run, a lab case, a tuning that is taken back.
type trial struct {
	name, exit, answer string
	said               []string // its last lines
}

// cell is what a trial came to, in a word.
func (t *trial) cell() string {
	switch {
	case t.exit == "0" && t.answer != "":
		return t.answer
	case t.exit == "0":
		return "right"
	}
	return cmp.Or(t.answer, "failed")
}

// tracer is what became of one.
type tracer struct {
	Probe   string                  `json:"probe"`
	Read    int                     `json:"read"`
	Signals map[string]model.Status `json:"signals"`

	exit           string // of plimsoll trace
	said           string // by it, where it failed
	passed, failed int    // of its tests
	failures       []string
}

// read takes apart what inside.sh said.
func read(k kernel, out []byte, when time.Time) (*seen, error) {
	s := &seen{kernel: k, when: when, tracers: map[string]*tracer{}}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	var doctor bytes.Buffer
	section, about := "", (*tracer)(nil)
	for lines.Scan() {
		words, is := strings.CutPrefix(lines.Text(), "@ ")
		if !is {
			switch section {
			case "doctor":
				doctor.WriteString(lines.Text() + "\n")
			case "trace":
				about.said += lines.Text()
			case "tests":
				about.failures = append(about.failures, lines.Text())
			case "case":
				last := s.trials[len(s.trials)-1]
				last.said = append(last.said, lines.Text())
			}
			continue
		}
		if section == "doctor" {
			if err := s.take(doctor.Bytes()); err != nil {
				return nil, err
			}
		}
		f := strings.Fields(words)
		section = f[0]
		switch section {
		case "release":
			s.release = f[1]
		case "case":
			s.trials = append(s.trials, &trial{name: f[1], exit: f[2], answer: strings.ToLower(strings.Join(f[3:], " "))})
		case "trace", "tests":
			if about = s.tracers[f[1]]; about == nil {
				return nil, fmt.Errorf("doctor says nothing of the tracer %s", f[1])
			}
			if section == "trace" {
				about.exit = f[2]
			} else if _, err := fmt.Sscan(strings.Join(f[2:], " "), &about.passed, &about.failed); err != nil {
				return nil, fmt.Errorf("read %q: %w", words, err)
			}
		}
	}
	return s, lines.Err()
}

// take reads doctor's document.
func (s *seen) take(document []byte) error {
	var d struct {
		Hosts   []struct{ Probes []tracer }
		Tracers []*tracer
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return fmt.Errorf("read what doctor said on %s: %w: %s", s.release, err, document)
	}
	for _, t := range d.Tracers {
		s.tracers[t.Probe] = t
		s.order = append(s.order, t.Probe)
	}
	for _, h := range d.Hosts {
		for _, p := range h.Probes {
			s.probes[0] += p.Read
			s.probes[1] += len(p.Signals)
		}
	}
	return nil
}

const head = `# Kernels

What Plimsoll sees on the kernels that people run. Written by ` + "`go run ./bench/kernels`" + `, which boots each in an emulated machine, and
there runs doctor, each tracer, of its tests those that count workloads of known size, a run on an idle nginx, six lab cases, and a tuning that is taken back. What is missing on a kernel is known
there before it is tried: ` + "`plimsoll trace list`" + ` asks the kernel. Where a tracer has some of its signals, ` + "`run` and `watch`" + ` read those;
` + "`plimsoll trace`" + ` shows no report that would have zeros for the rest.

No arm64 was booted. What the objects ask of types is held against those of Debian's arm64 kernels by a test (TestRelocations), and of
amd64's as well.

A cell has the signals that can be read, and of the tests those that passed. Tests that need time to pass as on a real machine
may fail in an emulated one; each is tried three times. The row "run" has the verdict of a run on an nginx that does nothing else, of which an emulated CPU is
the limit; a case is right when its truth was named, and "tune+undo" when nothing more held the load back and the state is as it was before.
`

// table is docs/kernels.md.
func table(all []*seen) string {
	var b strings.Builder
	b.WriteString(head + "\n| |")
	for _, s := range all {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	row := func(what string, cell func(*seen) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, s := range all {
			fmt.Fprintf(&b, " %s |", cell(s))
		}
		b.WriteString("\n")
	}
	row("kernel of", func(s *seen) string { return s.of })
	row("release", func(s *seen) string { return s.release })
	row("seen on", func(s *seen) string { return s.when.UTC().Format(time.DateOnly) })
	row("probes' signals", func(s *seen) string { return fmt.Sprintf("%d of %d", s.probes[0], s.probes[1]) })
	for _, name := range tracers(all) {
		row("`"+name+"`", func(s *seen) string { return s.tracers[name].cell() })
	}
	for _, name := range trials(all) {
		row(name, func(s *seen) string {
			if i := slices.IndexFunc(s.trials, func(t *trial) bool { return t.name == name }); i >= 0 {
				return s.trials[i].cell()
			}
			return "not tried"
		})
	}
	for _, s := range all {
		b.WriteString(s.missing())
	}
	return b.String()
}

// tracers are the names of all that any of them knew, in the order in which they came.
func tracers(all []*seen) (names []string) {
	for _, s := range all {
		for _, name := range s.order {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// trials are the names of all that were tried on any of them.
func trials(all []*seen) (names []string) {
	for _, s := range all {
		for _, t := range s.trials {
			if !slices.Contains(names, t.name) {
				names = append(names, t.name)
			}
		}
	}
	return names
}

func (t *tracer) cell() string {
	if t == nil { // it came later
		return "not tried"
	}
	if t.Read == 0 {
		return "absent"
	}
	text := fmt.Sprintf("%d of %d signals", t.Read, len(t.Signals))
	if tests := t.passed + t.failed; tests > 0 {
		text += fmt.Sprintf(", %d of %d tests", t.passed, tests)
	}
	return text
}

// missing says what a kernel's tracers lack and why, and which tests failed.
func (s *seen) missing() string {
	var b strings.Builder
	for _, name := range s.order {
		t := s.tracers[name]
		reasons := map[string][]string{}
		for signal, status := range t.Signals {
			if status.State != model.Read {
				why := string(status.State) + ": " + status.Why
				reasons[why] = append(reasons[why], signal)
			}
		}
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			which := reasons[why]
			slices.Sort(which)
			if len(which) == len(t.Signals) {
				which = []string{"all of it"}
			}
			fmt.Fprintf(&b, "- `%s`, %s: %s\n", name, strings.Join(which, ", "), why)
		}
		if t.exit != "" && t.exit != "0" && t.Read > 0 {
			fmt.Fprintf(&b, "- `plimsoll trace %s` ends with %s: %s\n", name, t.exit, t.said)
		}
		if t.failed > 0 {
			fmt.Fprintf(&b, "- `%s`, tests fail:\n\n  ```\n  %s\n  ```\n", name, strings.Join(t.failures, "\n  "))
		}
	}
	for _, t := range s.trials {
		if t.exit != "0" {
			fmt.Fprintf(&b, "- %s ended with %s:\n\n  ```\n  %s\n  ```\n", t.name, t.exit, strings.Join(t.said, "\n  "))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("\n## Missing on %s (%s)\n\n%s", s.name, s.release, b.String())
}

// recordTypes writes what is needed of a kernel's types where TestRelocations looks.
func recordTypes(u unpacked, arch string, need needed) error {
	types, err := typesOf(u.image)
	if err != nil {
		return err
	}
	var version struct{ major, minor int }
	if _, err := fmt.Sscanf(u.release, "%d.%d", &version.major, &version.minor); err != nil {
		return fmt.Errorf("read the release %q: %w", u.release, err)
	}
	path := fmt.Sprintf("internal/trace/testdata/kernels/%d.%d-%s.btf.gz", version.major, version.minor, arch)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := trim(types, need, packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	fmt.Println(path)
	return f.Close()
}
