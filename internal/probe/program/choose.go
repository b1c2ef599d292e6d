package program

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// chooser finds the processes that a word stands for.
type chooser struct {
	host  *host.Host
	word  string
	start uint64     // of the process, where the word is its number: with that it is one for good
	inner *host.Host // the unit or the container, where the word is one of these
}

// choose makes the chooser of a word: PID, NAME, unit:NAME, container:NAME or command. A unit or a container that is not
// there, and a word that is none, is an error.
func choose(h *host.Host, word string) (*chooser, error) {
	c := &chooser{host: h, word: word}
	kind, name, is := strings.Cut(word, ":")
	if !is {
		return c, nil
	}
	if kind != "unit" && kind != "container" || name == "" {
		return nil, fmt.Errorf("%q is no program: want the PID of one, its NAME, unit:NAME or container:NAME", word)
	}
	inner, err := host.Open("program", word)
	c.inner = inner
	return c, err
}

func (c *chooser) close() error {
	if c.inner == nil {
		return nil
	}
	return c.inner.Close()
}

// roots are those processes now; what they started is theirs and need not be among them.
func (c *chooser) roots() ([]int, error) {
	if c.word == model.ProgramCommand {
		if pid := c.host.Command(); pid > 0 {
			return []int{pid}, nil
		}
		return nil, nil
	}
	if pid, err := strconv.Atoi(c.word); err == nil {
		st, err := host.ReadStat(c.host.Path("proc", c.word, "stat"))
		if err != nil {
			return nil, nil // it is not there
		}
		if c.start == 0 {
			c.start = st.Start
		}
		if st.Start != c.start {
			return nil, nil // another one has its number
		}
		return []int{pid}, nil
	}
	from, ofName := c.host, func(p host.Proc) bool { return named(p.Comm, p.Args, c.word) }
	if c.inner != nil {
		from, ofName = c.inner, func(p host.Proc) bool { return !p.Kernel }
	}
	procs, err := from.Procs()
	if err != nil {
		return nil, err
	}
	var pids []int
	ours := lineage()
	for _, p := range procs {
		if ofName(p) && !slices.Contains(ours, p.PID) {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

// is says whether a process is one of those by its name; of a PID, a unit and a container it is not asked.
func (c *chooser) is(pid int) bool {
	if c.inner != nil || c.one() {
		return false
	}
	dir := c.host.Path("proc", strconv.Itoa(pid))
	if in, err := host.Inode(dir + "/ns/net"); err != nil || !c.host.Claims(in) && !c.host.TakesStrays() {
		return false
	}
	args, err := host.ReadHead(dir+"/cmdline", host.MaxCommandLine)
	if err != nil || len(args) == 0 {
		return false
	}
	comm, err := host.ReadFile(dir + "/comm")
	return err == nil && named(string(bytes.TrimSpace(comm)), strings.Split(strings.TrimRight(string(args), "\x00"), "\x00"), c.word)
}

// one says whether the word is for one process, which is found at once.
func (c *chooser) one() bool {
	_, err := strconv.Atoi(c.word)
	return err == nil || c.word == model.ProgramCommand
}

// lineage is this process with all that it descends from: their command lines name the program, too.
func lineage() (pids []int) {
	for pid := os.Getpid(); pid > 0; {
		pids = append(pids, pid)
		st, err := host.StatOf(pid)
		if err != nil {
			break
		}
		pid = st.PPID
	}
	return pids
}

// named says whether a process goes by a name: the kernel's for it, its program's, or that of the script which it runs.
func named(comm string, args []string, name string) bool {
	if comm == name {
		return true
	}
	if len(args) == 0 {
		return false
	}
	if programOf(args[0]) == name {
		return true
	}
	for _, arg := range args[1:] {
		switch {
		case arg == "-c", arg == "-e", arg == "-m", arg == "--": // what follows is no script, or not for sure
			return false
		case !strings.HasPrefix(arg, "-"):
			return filepath.Ext(arg) != "" && filepath.Base(arg) == name
		}
	}
	return false
}

// programOf is the name of a program by its first argument, which some rewrite as a title ("nginx: worker process").
func programOf(arg string) string {
	word, _, _ := strings.Cut(arg, " ")
	return strings.TrimSuffix(filepath.Base(word), ":")
}

// Find says whether there is a program of that name on a host. The error names the programs whose name is like it, and
// matches fs.ErrNotExist where there is none.
func Find(h *host.Host, word string) error {
	c, err := choose(h, word)
	if err != nil {
		return err
	}
	defer c.close()
	pids, err := c.roots()
	if err != nil || len(pids) > 0 || word == model.ProgramCommand {
		return err
	}
	procs, err := h.Procs()
	if err != nil {
		return err
	}
	return fmt.Errorf("no program %q runs on %s%s; ps -e lists those that do: %w", word, h.Name, like(procs, word), fs.ErrNotExist)
}

// like names up to four programs whose names have a part in common with a word, "" for none.
func like(procs []host.Proc, word string) string {
	var names []string
	part := strings.ToLower(word[:min(len(word), 3)])
	for _, p := range procs {
		if !p.Kernel && strings.Contains(strings.ToLower(p.Comm), part) && !slices.Contains(names, p.Comm) && len(names) < 4 {
			names = append(names, p.Comm)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (there is " + layout.Line(strings.Join(names, ", ")) + ")"
}
