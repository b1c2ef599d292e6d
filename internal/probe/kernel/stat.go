package kernel

import (
	"bytes"
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const statByHand = "mpstat -P ALL 1"

var (
	cpuSeconds = &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help:   "Time each CPU spent in each mode; user includes guests. Sampled at the timer tick, so softirq and irq are coarse, and iowait counts only while the CPU is idle.",
		Labels: []string{"cpu", "mode"}, Source: "/proc/stat", ByHand: statByHand}
	cpuGuestSeconds = &model.Signal{Name: "node_cpu_guest_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help:   "Time each CPU spent running virtual machines; it is also in user and nice.",
		Labels: []string{"cpu", "mode"}, Source: "/proc/stat", ByHand: statByHand}
	interrupts = &model.Signal{Name: "node_intr_total", Kind: model.Counter, Unit: "interrupts",
		Help: "Interrupts serviced.", Source: "/proc/stat", ByHand: "vmstat 1  # in"}
	contextSwitches = &model.Signal{Name: "node_context_switches_total", Kind: model.Counter, Unit: "switches",
		Help: "Context switches of all CPUs.", Source: "/proc/stat", ByHand: "vmstat 1  # cs"}
	forks = &model.Signal{Name: "node_forks_total", Kind: model.Counter, Unit: "forks",
		Help: "Processes and threads created.", Source: "/proc/stat", ByHand: "sar -w 1  # proc/s"}
	bootTime = &model.Signal{Name: "node_boot_time_seconds", Kind: model.Gauge, Unit: "seconds",
		Help: "When the machine was booted, since the Unix epoch.", Source: "/proc/stat", ByHand: "uptime -s"}
	procsRunning = &model.Signal{Name: "node_procs_running", Kind: model.Gauge, Unit: "threads",
		Help: "Threads that run or wait for a CPU at this moment, ours among them.", Source: "/proc/stat", ByHand: "vmstat 1  # r"}
	procsBlocked = &model.Signal{Name: "node_procs_blocked", Kind: model.Gauge, Unit: "threads",
		Help: "Threads that wait for a disk at this moment.", Source: "/proc/stat", ByHand: "vmstat 1  # b"}
)

// userHZ is the unit of the times in /proc; the kernel's interface fixes it at
// 1/100 s on amd64 and arm64, whatever the tick is.
const userHZ = 100

// cpuModes are node_exporter's names for the columns of a cpu line.
var cpuModes = []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}

// guestModes are the columns after those.
var guestModes = []string{"user", "nice"}

// Stat reads /proc/stat: CPU time by core and mode, interrupts, context
// switches, forks, and how many threads run or wait for a disk.
func Stat() probe.Probe {
	p := probe.Probe{Name: "stat", Scope: probe.PerMachine,
		Cost:  costStat,
		Blind: []string{"CPU modes are sampled at the timer tick: work shorter than a tick may be charged to somebody else"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/stat", hint: "no /proc/stat; is /proc mounted?",
			signals: []*model.Signal{cpuSeconds, cpuGuestSeconds, interrupts, contextSwitches, forks, bootTime, procsRunning, procsBlocked},
			put:     putStat}}
	})
}

func putStat(b []byte, out *probe.Out) error {
	st, err := parseStat(b)
	if err != nil {
		return err
	}
	for _, c := range st.cpus {
		for i, t := range c.ticks {
			v := float64(t) / userHZ
			if i < len(cpuModes) {
				out.Put(cpuSeconds, v, c.name, cpuModes[i])
			} else if i -= len(cpuModes); i < len(guestModes) {
				out.Put(cpuGuestSeconds, v, c.name, guestModes[i])
			}
		}
	}
	for name, sig := range statSignals {
		if v, ok := st.values[name]; ok {
			out.Put(sig, float64(v))
		} else {
			out.Mark(sig, errNoField("/proc/stat", name))
		}
	}
	return nil
}

// statSignals are the lines of /proc/stat with a single number that matters.
var statSignals = map[string]*model.Signal{
	"intr": interrupts, "ctxt": contextSwitches, "processes": forks, "btime": bootTime,
	"procs_running": procsRunning, "procs_blocked": procsBlocked,
}

type stat struct {
	cpus   []cpuTimes
	values map[string]uint64 // first number of the other lines
}

type cpuTimes struct {
	name  string // "0"
	ticks []uint64
}

// parseStat parses /proc/stat; see proc_stat(5). The line "cpu", the sum over
// all, is left out.
func parseStat(b []byte) (stat, error) {
	st := stat{values: map[string]uint64{}}
	for line := range bytes.Lines(b) {
		name, rest := nextField(line)
		if n, ok := bytes.CutPrefix(name, []byte("cpu")); ok {
			if len(n) == 0 {
				continue
			}
			ticks, err := parseUints(rest)
			if err != nil {
				return stat{}, fmt.Errorf("%s: %w", name, err)
			}
			st.cpus = append(st.cpus, cpuTimes{name: string(n), ticks: ticks})
			continue
		}
		if _, wanted := statSignals[string(name)]; !wanted {
			continue
		}
		first, _ := nextField(rest)
		v, err := parseUint(first)
		if err != nil {
			return stat{}, fmt.Errorf("%s: %w", name, err)
		}
		st.values[string(name)] = v
	}
	if len(st.cpus) == 0 {
		return stat{}, fmt.Errorf("want a line for each CPU, got none")
	}
	return st, nil
}

func parseUints(b []byte) ([]uint64, error) {
	var list []uint64
	for {
		var f []byte
		f, b = nextField(b)
		if len(f) == 0 {
			return list, nil
		}
		v, err := parseUint(f)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}
