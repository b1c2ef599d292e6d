package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// version 2's and version 1's names of what is read of a disk limit.
var (
	nestedLimits = map[string]string{"rbps": "rbps", "wbps": "wbps", "riops": "riops", "wiops": "wiops"}
	nestedUse    = map[string]string{"rbytes": "rbps", "wbytes": "wbps", "rios": "riops", "wios": "wiops"}

	deviceLimits = map[string]string{
		"blkio.throttle.read_bps_device": "rbps", "blkio.throttle.write_bps_device": "wbps",
		"blkio.throttle.read_iops_device": "riops", "blkio.throttle.write_iops_device": "wiops",
	}
	deviceUse = map[string]map[string]string{
		"blkio.throttle.io_service_bytes_recursive": {"Read": "rbps", "Write": "wbps"},
		"blkio.throttle.io_serviced_recursive":      {"Read": "riops", "Write": "wiops"},
	}
)

func (g *group) file(name string) ([]byte, error) { return os.ReadFile(filepath.Join(g.dir, name)) }

// name is a file's name in the group's version.
func (g *group) name(v2, v1 string) string {
	if g.unified {
		return v2
	}
	return v1
}

// readLimit reads the group's limit; false when there is none, or no such group here.
func (g *group) readLimit() bool {
	switch g.controller {
	case "cpu":
		g.cores, g.limited = g.quota()
	case "memory":
		g.max, g.limited = g.number(g.name("memory.max", "memory.limit_in_bytes"))
		if high, ok := g.number("memory.high"); ok && (!g.limited || high < g.max) {
			g.max, g.limited = high, true
		}
	case "pids":
		g.max, g.limited = g.number("pids.max")
	case "io":
		g.devices = g.deviceLimits()
		g.limited = len(g.devices) > 0
	}
	return g.limited
}

// number reads a file of one number; false when it says "no limit" or cannot be read.
func (g *group) number(name string) (uint64, bool) {
	b, err := g.file(name)
	if err != nil {
		return 0, false
	}
	n, ok, _ := parseNumber(b)
	return n, ok
}

func (g *group) quota() (cores float64, ok bool) {
	if !g.unified {
		quota, limited := g.number("cpu.cfs_quota_us")
		period, known := g.number("cpu.cfs_period_us")
		return float64(quota) / max(float64(period), 1), limited && known
	}
	b, err := g.file("cpu.max")
	if err != nil {
		return 0, false
	}
	cores, ok, _ = parseQuota(b)
	return cores, ok
}

func (g *group) deviceLimits() []deviceValue {
	if g.unified {
		b, err := g.file("io.max")
		if err != nil {
			return nil
		}
		list, _ := parseNested(b, nestedLimits)
		return list
	}
	var all []deviceValue
	for name, what := range deviceLimits {
		if b, err := g.file(name); err == nil {
			list, _ := parseDevices(b, map[string]string{"": what})
			all = append(all, list...)
		}
	}
	return all
}

// put records the limit and what was counted.
func (g *group) put(out *probe.Out) error {
	switch g.controller {
	case "cpu":
		out.Put(cpuLimit, g.cores, g.path)
		return g.putCPU(out)
	case "memory":
		out.Put(memoryLimit, float64(g.max), g.path)
		return g.putMemory(out)
	case "pids":
		out.Put(pidsMax, float64(g.max), g.path)
		err := g.putNumber(out, pids, "pids.current")
		if g.unified {
			return errors.Join(err, g.putFields(out, "pids.events", field{pidsHits, "max", 1}))
		}
		return errors.Join(err, g.putMembers(out, "pids.events", "max", pidsHits))
	}
	return g.putIO(out)
}

func (g *group) putCPU(out *probe.Out) error {
	time := field{throttledSeconds, "throttled_usec", 1e-6}
	if !g.unified {
		time = field{throttledSeconds, "throttled_time", 1e-9}
	}
	return g.putFields(out, "cpu.stat", field{periods, "nr_periods", 1}, field{throttledPeriods, "nr_throttled", 1}, time)
}

func (g *group) putMemory(out *probe.Out) error {
	err := g.putNumber(out, memoryBytes, g.name("memory.current", "memory.usage_in_bytes"))
	if g.unified {
		err = errors.Join(err, g.putFields(out, "memory.events", field{memoryHits, "max", 1}, field{memoryHits, "high", 1}, field{oomKills, "oom_kill", 1}))
	} else {
		err = errors.Join(err, g.putNumber(out, memoryHits, "memory.failcnt"), g.putMembers(out, "memory.oom_control", "oom_kill", oomKills))
	}
	return errors.Join(err, g.putFields(out, "memory.stat",
		field{refaults, g.name("", "total_") + "workingset_refault_anon", 1}, field{refaults, g.name("", "total_") + "workingset_refault_file", 1}))
}

// field is a line of a file, and what one of its units is worth.
type field struct {
	signal *model.Signal
	name   string
	unit   float64
}

// putFields records lines of "name number"; several of one signal are added up.
func (g *group) putFields(out *probe.Out, file string, fields ...field) error {
	b, err := g.file(file)
	if err != nil {
		return gone(err)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	found, err := parseFields(b, names...)
	if err != nil {
		return err
	}
	sums := map[*model.Signal]float64{}
	for _, f := range fields {
		if n, ok := found[f.name]; ok {
			sums[f.signal] += float64(n) * f.unit
		}
	}
	for s, v := range sums {
		out.Put(s, v, g.path)
	}
	return nil
}

// putMembers records what version 1 counts in the group of the process that
// was refused, whichever group above it has the limit.
func (g *group) putMembers(out *probe.Out, file, name string, s *model.Signal) error {
	sum, known := uint64(0), false
	for p := range g.members {
		b, err := g.file(filepath.Join(strings.TrimPrefix(p, g.path), file))
		if err != nil {
			if gone(err) != nil {
				return err
			}
			continue
		}
		found, err := parseFields(b, name)
		if err != nil {
			return err
		}
		n, ok := found[name]
		sum, known = sum+n, known || ok
	}
	if known {
		out.Put(s, float64(sum), g.path)
	}
	return nil
}

func (g *group) putNumber(out *probe.Out, s *model.Signal, file string) error {
	b, err := g.file(file)
	if err != nil {
		return gone(err)
	}
	n, ok, err := parseNumber(b)
	if ok {
		out.Put(s, float64(n), g.path)
	}
	return err
}

func (g *group) putIO(out *probe.Out) error {
	limited := map[[2]string]bool{}
	for _, d := range g.devices {
		limited[[2]string{d.device, d.what}] = true
		out.Put(ioLimit, float64(d.value), g.path, d.device, d.what)
	}
	used, err := g.deviceUse()
	for _, d := range used {
		if limited[[2]string{d.device, d.what}] {
			out.Put(ioUsed, float64(d.value), g.path, d.device, d.what)
		}
	}
	return err
}

func (g *group) deviceUse() ([]deviceValue, error) {
	if g.unified {
		b, err := g.file("io.stat")
		if err != nil {
			return nil, gone(err)
		}
		return parseNested(b, nestedUse)
	}
	var all []deviceValue
	for name, kinds := range deviceUse {
		b, err := g.file(name)
		if err != nil {
			return nil, gone(err)
		}
		list, err := parseDevices(b, kinds)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// gone takes away the error of a group that has been removed since it was found.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
