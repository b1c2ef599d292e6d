package bill

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// maxFrames bounds the work on a profile, which may be anybody's.
const maxFrames = 20_000_000

// frame is a function of a stack.
type frame struct {
	name      string
	module    string // the base name of the file of code, "" of the kernel
	file      string // in the source; "" where that is not known
	line      int64
	kernel    bool
	interrupt bool // begins what has nothing to do with what calls it
	// functions and modules have a bit for each mechanism whose entry it is, by its
	// name and by its file of code; innermost for each whose entry it is where no other
	// function lies further in; outermost for each for which nothing further out counts.
	functions, modules, innermost, outermost uint64
}

// stack is a sample's functions, the kernel's and the process's, from the innermost out.
type stack struct {
	thread       string
	kernel, user []*frame
}

// reader takes samples apart; what it once found out about a place in code it keeps.
type reader struct {
	*table
	known map[*profile.Location]*frame
	left  int // how many frames more may be looked at
}

func (t *table) reader() *reader {
	return &reader{table: t, known: map[*profile.Location]*frame{}, left: maxFrames}
}

// stack takes a sample apart. Where interrupts begin the kernel's functions end: what
// calls them was interrupted, and did not ask for them.
func (r *reader) stack(s *profile.Sample) (stack, error) {
	if r.left -= len(s.Location); r.left < 0 {
		return stack{}, fmt.Errorf("the stacks have more than %d frames", maxFrames)
	}
	out := stack{thread: label(s, "thread")}
	interrupted := false
	for _, l := range s.Location {
		f := r.known[l]
		if f == nil {
			f = r.frame(l)
			r.known[l] = f
		}
		switch {
		case !f.kernel:
			out.user = append(out.user, f)
		case !interrupted:
			out.kernel = append(out.kernel, f)
			interrupted = f.interrupt
		}
	}
	return out, nil
}

func label(s *profile.Sample, name string) string {
	if list := s.Label[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// frame reads a location. The kernel and what is loaded into it stand in brackets, as
// do some parts of a process.
func (t *table) frame(l *profile.Location) *frame {
	f := &frame{}
	if m := l.Mapping; m != nil {
		f.module = m.File[strings.LastIndexByte(m.File, '/')+1:]
		f.kernel = strings.HasPrefix(m.File, "[") && m.File != "[vdso]" && m.File != "[jit]" && m.File != "[php]"
	}
	if len(l.Line) > 0 && l.Line[0].Function != nil {
		f.name, f.file, f.line = l.Line[0].Function.Name, l.Line[0].Function.Filename, l.Line[0].Line
	}
	if f.kernel { // the compiler's copies of a function are the function
		f.name, _, _ = strings.Cut(f.name, ".")
		f.interrupt = t.interrupts.has(f.name)
	}
	for i := range t.Mechanisms {
		m := &t.Mechanisms[i]
		list := &m.user
		if f.kernel {
			list = &m.kernel
		}
		if list.has(f.name) {
			f.functions |= 1 << i
		}
		if f.kernel {
			continue
		}
		if beginsAny(f.module, m.Modules) {
			f.modules |= 1 << i
		}
		if m.innermostUser.has(f.name) || beginsAny(f.module, m.InnermostModules) {
			f.innermost |= 1 << i
		}
		if m.outermost.has(f.name) && (f.functions|f.modules)&(1<<i) == 0 {
			f.outermost |= 1 << i
		}
	}
	return f
}

// place returns the first mechanism of the table to which a stack belongs.
func (t *table) place(s *stack) *mechanism {
	for i := range t.Mechanisms {
		if t.Mechanisms[i].takes(s, 1<<i) {
			return &t.Mechanisms[i]
		}
	}
	return &t.Mechanisms[len(t.Mechanisms)-1] // of which nothing at all is known
}

func (m *mechanism) takes(s *stack, bit uint64) bool {
	if beginsAny(s.thread, m.Threads) || m.anyOf(s.kernel, bit) {
		return true
	}
	user := within(s.user, bit)
	if len(s.kernel) > 0 {
		return m.Whole && (m.anyOf(user, bit) || hasModule(user, bit))
	}
	return m.anyOf(user, bit) || hasModule(user, bit) || len(s.user) > 0 && s.user[0].innermost&bit != 0
}

// within are the functions of a process up to the first for which nothing further out counts.
func within(user []*frame, bit uint64) []*frame {
	if i := slices.IndexFunc(user, func(f *frame) bool { return f.outermost&bit != 0 }); i >= 0 {
		return user[:i]
	}
	return user
}

func (m *mechanism) anyOf(frames []*frame, bit uint64) bool {
	if m.Innermost {
		frames = frames[:min(len(frames), 1)]
	}
	for _, f := range frames {
		if f.functions&bit != 0 {
			return true
		}
	}
	return false
}

func hasModule(user []*frame, bit uint64) bool {
	for _, f := range user {
		if f.modules&bit != 0 {
			return true
		}
	}
	return false
}

// isNameless says whether a stack is a mechanism's by its file of code alone.
func (m *mechanism) isNameless(s *stack) bool {
	return len(s.kernel) == 0 && !slices.ContainsFunc(s.user, func(f *frame) bool { return m.user.has(f.name) || m.innermostUser.has(f.name) })
}
