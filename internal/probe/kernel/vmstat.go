package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// vmstatSignals are the lines of /proc/vmstat that are taken: those that
// node_exporter takes, huge pages, and those of the machine's own reclaim.
var vmstatSignals = vmstatTable([][3]string{
	{"pgpgin", "kibibytes", "Read from disks into memory."},
	{"pgpgout", "kibibytes", "Written from memory to disks."},
	{"pswpin", "pages", "Pages read from swap."},
	{"pswpout", "pages", "Pages written to swap."},
	{"pgfault", "faults", "Page faults of all kinds."},
	{"pgmajfault", "faults", "Page faults that had to wait for a disk."},
	{"thp_fault_alloc", "faults", "Page faults that were given a huge page, as a whole (2 MiB on most machines)."},
	{"oom_kill", "processes", "Processes killed because memory ran out, in a cgroup or altogether."},
	{"allocstall_normal", "times", "Times a program had to free memory itself before it got any."},
	{"pgscan_direct", "pages", "Pages looked at while programs freed memory themselves, the machine's being short; what a cgroup's own limit causes is not counted."},
	{"pgscan_kswapd", "pages", "Pages looked at by kswapd, which frees memory before the machine runs short; what a cgroup's own limit causes is not counted."},
})

func vmstatTable(rows [][3]string) map[string]*model.Signal {
	m := map[string]*model.Signal{}
	for _, r := range rows {
		m[r[0]] = &model.Signal{Name: "node_vmstat_" + r[0], Kind: model.Counter, Unit: r[1],
			Help: r[2], Source: "/proc/vmstat", ByHand: "grep -w " + r[0] + " /proc/vmstat"}
	}
	return m
}

// VMStat reads /proc/vmstat.
func VMStat() probe.Probe {
	p := probe.Probe{Name: "vmstat", Scope: probe.PerMachine, Cost: costVMStat}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/vmstat", hint: "this kernel does not count its virtual memory", signals: values(vmstatSignals), put: putVMStat}}
	})
}

func putVMStat(b []byte, out *probe.Out) error {
	fields, err := parseVMStat(b)
	if err != nil {
		return err
	}
	putTable(vmstatSignals, fields, "/proc/vmstat", out)
	return nil
}

// parseVMStat parses the wanted lines among "pgfault 123".
func parseVMStat(b []byte) (map[string]uint64, error) {
	fields := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, rest := nextField(line)
		if vmstatSignals[string(name)] == nil {
			continue
		}
		v, err := parseUint(bytes.TrimSpace(rest))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		fields[string(name)] = v
	}
	if len(fields) == 0 {
		return nil, errors.New("want lines like pgfault 123, got none")
	}
	return fields, nil
}
