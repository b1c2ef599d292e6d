package procs

import (
	"bytes"
	"slices"
	"strconv"

	"plimsoll/internal/host"
)

// maxMembers bounds the processes of a command that are followed.
const maxMembers = 1024

// command is the process tree of the command that runs on the host. A process
// that outlives its parent stays in it.
type command struct {
	begun   bool // its first process was seen; the number means nothing once that ended
	members map[*process]bool
	comms   map[string]bool // names that members were seen under
	gone    []*process      // members that ended since the last reckoning
	// grown is the CPU time that members were seen to use since the last
	// reckoning, total all that the command used; user and system, clock ticks.
	grown, total [2]uint64
	// lost is the time of members that somebody outside of the tree waited for.
	lost [2]uint64
}

// used notes the CPU time of a member.
func (c *command) used(p *process, user, system uint64) {
	if c.members[p] {
		c.grown[0] += user
		c.grown[1] += system
	}
}

// ended takes a process out.
func (c *command) ended(p *process) {
	if c.members[p] {
		delete(c.members, p)
		c.gone = append(c.gone, p)
	}
}

// reckon brings the total up to date: the living members' time with that of
// the children they waited for, and never less than was seen.
func (c *command) reckon() {
	for _, p := range c.gone {
		// Its time went to its parent, unless that is none of ours.
		if !c.isMember(p.ppid) {
			c.lost[0] += p.user + p.childrenUser
			c.lost[1] += p.system + p.childrenSystem
		}
	}
	c.gone = c.gone[:0]
	sum := c.lost
	for p := range c.members {
		sum[0] += p.user + p.childrenUser
		sum[1] += p.system + p.childrenSystem
	}
	for mode := range c.total {
		c.total[mode] = max(c.total[mode]+c.grown[mode], sum[mode])
	}
	c.grown = [2]uint64{}
	for p := range c.members {
		if c.comms == nil {
			c.comms = map[string]bool{}
		}
		if p.group != nil {
			c.comms[p.group.name] = true
		}
	}
}

// isMember says whether a process number is, or until now was, a member's.
func (c *command) isMember(pid int) bool {
	for p := range c.members {
		if p.pid == pid {
			return true
		}
	}
	return slices.ContainsFunc(c.gone, func(p *process) bool { return p.pid == pid })
}

// busiest is the share of one CPU of the tree's busiest thread, 0…1; ok is
// false when it is not known of all of them.
func (c *command) busiest() (share float64, ok bool) {
	ok = true
	for p := range c.members {
		share = max(share, p.busiest)
		ok = ok && !p.unexamined
	}
	return share, ok
}

// join makes a process a member; its time so far counts.
func (c *command) join(p *process) bool {
	if c.members[p] || len(c.members) >= maxMembers {
		return false
	}
	if c.members == nil {
		c.members = map[*process]bool{}
	}
	c.members[p] = true
	return true
}

// followCommand finds the command's processes: the first one, those that were
// members before, and their children, whichever host those belong to.
func (r *reader) followCommand(pid int, list []host.Proc) {
	c := &r.command
	if !c.begun {
		p := r.visit(pid, false, true)
		if p == nil {
			return
		}
		c.begun = true
		c.join(p)
	}
	queue := make([]*process, 0, len(c.members))
	for p := range c.members {
		queue = append(queue, p)
	}
	for len(queue) > 0 {
		p := r.visit(queue[0].pid, false, true)
		queue = queue[1:]
		if p == nil || !c.members[p] {
			continue
		}
		for _, child := range r.children(p, list) {
			if q := r.visit(child, false, true); q != nil && c.join(q) {
				queue = append(queue, q)
			}
		}
	}
}

// children lists the children of all threads of a process
// (/proc/PID/task/TID/children, CONFIG_PROC_CHILDREN), and those that the
// host's own list knows.
func (r *reader) children(p *process, list []host.Proc) (pids []int) {
	for i := range list {
		if list[i].PPID == p.pid {
			pids = append(pids, list[i].PID)
		}
	}
	tids, err := r.tree.threads(p.name, nil)
	if err != nil {
		return pids
	}
	for _, tid := range tids {
		b, err := r.tree.read(p.name + "/task/" + strconv.Itoa(tid) + "/children")
		if err != nil {
			continue
		}
		if len(b) == len(r.tree.buf) {
			b = b[:bytes.LastIndexByte(b, ' ')+1] // the last number may be cut
		}
		pids = parsePIDs(b, pids)
	}
	return pids
}
