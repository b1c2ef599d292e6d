package change

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
)

// A child is born with its parent's limits, CPUs, nice value and policy. So those
// that a process has begun since its own was changed have what we set, and keep it
// when their parent has its old value again. They are known by their descent, by
// having been begun since, and by having exactly what we set.

// ofProcess says whether a process's children are born with the value.
func (p target) ofProcess() bool {
	return p.Process != nil && (p.Kind == inLimit || p.Kind == inCPUs || p.Kind == inNice || p.Kind == inPolicy)
}

// family is the processes of the machine by their parent.
type family map[int][]relative

type relative struct {
	process
	ended bool
}

func readFamily() family {
	f := family{}
	for _, pid := range host.PIDs() {
		if st, err := host.StatOf(pid); err == nil && !st.Kernel {
			f[st.PPID] = append(f[st.PPID], relative{process{pid, st.Start}, st.State == 'Z'})
		}
	}
	return f
}

// since lists those who descend from a process and were begun since.
func (f family) since(of int, ticks uint64) (list []process) {
	seen := map[int]bool{of: true}
	for left := []int{of}; len(left) > 0; left = left[1:] {
		for _, c := range f[left[0]] {
			if seen[c.PID] {
				continue // read while numbers were given anew
			}
			seen[c.PID] = true
			left = append(left, c.PID)
			if c.Start >= ticks && !c.ended {
				list = append(list, c.process)
			}
		}
	}
	return list
}

// heirs takes back what processes were born with; parts are those of the entry
// that were taken back, or have ended.
func (e Entry) heirs(parts []part) (said []string, err error) {
	if e.Since == 0 || e.Boot != bootID() {
		return nil, nil
	}
	own := map[process]bool{}
	for _, p := range e.Parts {
		if p.Target.Process != nil {
			own[*p.Target.Process] = true
		}
	}
	t := &inheritance{entry: e, own: own, foreign: map[process]string{}}
	const passes = 10 // one may be born while another is set
	for range passes {
		before := t.mended
		f := readFamily()
		for _, p := range parts {
			t.errs = nil
			if p.Target.ofProcess() {
				t.from(f, p)
			}
			err = errors.Join(err, errors.Join(t.errs...))
		}
		if t.mended == before || err != nil {
			break
		}
	}
	return t.sentences(), err
}

// inheritance is what was found of an entry's heirs.
type inheritance struct {
	entry   Entry
	own     map[process]bool // the entry's own processes
	mended  int
	foreign map[process]string // what those have that were changed by others
	errs    []error
}

// from looks at the heirs of one process.
func (t *inheritance) from(f family, p part) {
	var list []process
	if p.Target.Process.alive() {
		list = f.since(p.Target.Process.PID, t.entry.Since)
	}
	for i := range t.entry.Masters {
		m := &t.entry.Masters[i]
		if m.First == *p.Target.Process && m.process != m.First && m.alive() {
			list = append(list, m.process)
			list = append(list, f.since(m.PID, t.entry.Since)...)
		}
	}
	for _, q := range list {
		if t.own[q] {
			continue
		}
		if err := t.mend(p, q); err != nil && !errors.Is(err, errGone) {
			t.errs = append(t.errs, err)
		}
	}
}

// mend gives one heir what its ancestor had.
func (t *inheritance) mend(p part, q process) error {
	at := p.Target
	at.Process = &q
	now, err := at.get()
	if err != nil {
		return err
	}
	old, _, _ := strings.Cut(string(p.Old), ";") // what most of the threads had
	delete(t.foreign, q)
	switch {
	case now == old || at.threadsOf(now, string(p.Old)):
		return nil
	case now != string(p.New) && !at.threadsOf(now, string(p.New)+";0="+old):
		t.foreign[q] = now
		return nil
	}
	if err := (&part{Target: at}).write(old); err != nil {
		return err
	}
	t.mended++
	return nil
}

func (t *inheritance) sentences() (said []string) {
	if t.mended > 0 {
		said = append(said, fmt.Sprintf("%d processes begun since had it from their parents, and have the old value, too", t.mended))
	}
	if len(t.foreign) == 0 {
		return said
	}
	var pids []int
	for q := range t.foreign {
		pids = append(pids, q.PID)
	}
	return append(said, fmt.Sprintf("left alone, since others set them: processes begun since that have neither value (%s)", few(pids)))
}

// few lists some of many, in order.
func few(list []int) string {
	const most = 5
	slices.Sort(list)
	var words []string
	for _, n := range list[:min(most, len(list))] {
		words = append(words, strconv.Itoa(n))
	}
	if len(list) > most {
		words = append(words, fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(words, ", ")
}
