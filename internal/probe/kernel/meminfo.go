package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// meminfoSignals are the lines of /proc/meminfo that are taken.
var meminfoSignals = meminfoTable([][2]string{
	{"MemTotal", "Memory the kernel may use."},
	{"MemFree", "Memory used for nothing at all."},
	{"MemAvailable", "Memory that programs could have without swapping (an estimate)."},
	{"Buffers", "Cache of block devices."},
	{"Cached", "Cache of files, shared memory included."},
	{"SwapCached", "Memory that is also in swap."},
	{"SwapTotal", "Size of swap."},
	{"SwapFree", "Swap that is not used."},
	{"Active", "Memory used lately."},
	{"Inactive", "Memory not used lately, first to be taken back."},
	{"Dirty", "File contents waiting to be written to disk."},
	{"Writeback", "File contents being written to disk."},
	{"AnonPages", "Memory of programs, without files."},
	{"Mapped", "Files mapped into programs."},
	{"Shmem", "Shared memory and tmpfs."},
	{"Slab", "The kernel's own objects."},
	{"SReclaimable", "Of those, what can be taken back."},
	{"SUnreclaim", "Of those, what cannot be taken back."},
	{"KernelStack", "Stacks of threads in the kernel."},
	{"PageTables", "Page tables."},
	{"CommitLimit", "How much may be promised to programs when overcommit is strict."},
	{"Committed_AS", "How much is promised to programs."},
	{"Unevictable", "Memory that cannot be taken back."},
	{"Mlocked", "Memory that programs locked."},
})

func meminfoTable(rows [][2]string) map[string]*model.Signal {
	m := map[string]*model.Signal{}
	for _, r := range rows {
		m[r[0]] = &model.Signal{Name: "node_memory_" + r[0] + "_bytes", Kind: model.Gauge, Unit: "bytes",
			Help: r[1], Source: "/proc/meminfo", ByHand: "grep " + r[0] + ": /proc/meminfo"}
	}
	return m
}

// Meminfo reads /proc/meminfo.
func Meminfo() probe.Probe {
	p := probe.Probe{Name: "meminfo", Scope: probe.PerMachine, Cost: costMeminfo,
		Blind: []string{"the limits of a container's cgroup"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/meminfo", hint: "no /proc/meminfo; is /proc mounted?", signals: values(meminfoSignals), put: putMeminfo}}
	})
}

func putMeminfo(b []byte, out *probe.Out) error {
	bytesOf, err := parseMeminfo(b)
	if err != nil {
		return err
	}
	putTable(meminfoSignals, bytesOf, "/proc/meminfo", out)
	return nil
}

// putTable records the fields that are wanted and marks those that are missing.
func putTable(signals map[string]*model.Signal, fields map[string]uint64, file string, out *probe.Out) {
	for name, sig := range signals {
		if v, ok := fields[name]; ok {
			out.Put(sig, float64(v))
		} else {
			out.Mark(sig, errNoField(file, name))
		}
	}
}

// parseMeminfo parses the wanted lines among "MemTotal:  16384 kB" to bytes.
func parseMeminfo(b []byte) (map[string]uint64, error) {
	fields := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return nil, fmt.Errorf("want NAME: number kB, got %q", line)
		}
		if meminfoSignals[string(name)] == nil {
			continue
		}
		number, unit := nextField(rest)
		v, err := parseUint(number)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if string(bytes.TrimSpace(unit)) != "kB" {
			return nil, fmt.Errorf("%s: want kB, got %q", name, unit)
		}
		fields[string(name)] = v << 10
	}
	if len(fields) == 0 {
		return nil, errors.New("want lines like MemTotal: 16384 kB, got none")
	}
	return fields, nil
}
