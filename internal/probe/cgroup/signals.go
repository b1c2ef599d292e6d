package cgroup

import "plimsoll/internal/model"

const (
	cpuFrom    = "cpu.stat, cpu.max (v2) or cpu.cfs_quota_us (v1) of the group"
	cpuHand    = "cat /sys/fs/cgroup/GROUP/cpu.stat"
	memoryFrom = "memory.current, memory.max, memory.events (v2) or memory.usage_in_bytes, memory.limit_in_bytes, memory.failcnt, memory.oom_control (v1) of the group"
	memoryHand = "cat /sys/fs/cgroup/GROUP/memory.events"
	pidsFrom   = "pids.current, pids.max, pids.events of the group"
	pidsHand   = "cat /sys/fs/cgroup/GROUP/pids.events"
	ioFrom     = "io.max, io.stat (v2) or blkio.throttle.* (v1) of the group"
	ioHand     = "cat /sys/fs/cgroup/GROUP/io.max /sys/fs/cgroup/GROUP/io.stat"
)

func gauge(name, unit, help, source, hand string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Source: source, ByHand: hand, Labels: labels}
}

func counter(name, unit, help, source, hand string, labels ...string) *model.Signal {
	s := gauge(name, unit, help, source, hand, labels...)
	s.Kind = model.Counter
	return s
}

// All are about groups that have a limit and hold a process of the host.
var (
	processes = gauge("plimsoll_cgroup_processes", "processes",
		"Processes of the name that a limited control group holds, itself or in groups below it; controller says which limit: cpu, memory, pids or io.",
		"/proc/PID/cgroup", "cat /proc/PID/cgroup", "controller", "cgroup", "groupname")

	cpuLimit         = gauge("plimsoll_cgroup_cpu_limit_cores", "cpus", "CPUs that the group may use on average: its quota over its period.", cpuFrom, "cat /sys/fs/cgroup/GROUP/cpu.max", "cgroup")
	periods          = counter("plimsoll_cgroup_cpu_periods_total", "periods", "Periods of the quota in which something of the group wanted to run.", cpuFrom, cpuHand, "cgroup")
	throttledPeriods = counter("plimsoll_cgroup_cpu_throttled_periods_total", "periods", "Of those, the ones whose quota was used up before their end.", cpuFrom, cpuHand, "cgroup")
	throttledSeconds = counter("plimsoll_cgroup_cpu_throttled_seconds_total", "seconds", "Time for which the group was kept from running, added up over the CPUs on which it wanted to.", cpuFrom, cpuHand, "cgroup")

	memoryBytes = gauge("plimsoll_cgroup_memory_bytes", "bytes", "Memory of the group, the cache of its files included.", memoryFrom, "cat /sys/fs/cgroup/GROUP/memory.current", "cgroup")
	memoryLimit = gauge("plimsoll_cgroup_memory_limit_bytes", "bytes", "Most memory that the group may have; v2's memory.high where that is lower.", memoryFrom, "cat /sys/fs/cgroup/GROUP/memory.max", "cgroup")
	memoryHits  = counter("plimsoll_cgroup_memory_limit_hits_total", "times",
		"Times the group wanted memory beyond its limit and had to free some first. The cache of files fills every limit, so alone it is no sign of trouble.", memoryFrom, memoryHand, "cgroup")
	oomKills = counter("plimsoll_cgroup_oom_kills_total", "processes", "Processes of the group that the kernel killed because its memory ran out.", memoryFrom, memoryHand, "cgroup")
	refaults = counter("plimsoll_cgroup_memory_refaults_total", "pages", "Pages that were taken from the group and wanted back soon after.", "memory.stat of the group", "grep workingset_refault /sys/fs/cgroup/GROUP/memory.stat", "cgroup")

	pids     = gauge("plimsoll_cgroup_pids", "threads", "Processes and threads of the group.", pidsFrom, "cat /sys/fs/cgroup/GROUP/pids.current", "cgroup")
	pidsMax  = gauge("plimsoll_cgroup_pids_limit", "threads", "Most processes and threads that the group may have (systemd's TasksMax).", pidsFrom, "cat /sys/fs/cgroup/GROUP/pids.max", "cgroup")
	pidsHits = counter("plimsoll_cgroup_pids_limit_hits_total", "times", "Times fork() or clone() failed with EAGAIN because of the limit.", pidsFrom, pidsHand, "cgroup")

	ioLimit = gauge("plimsoll_cgroup_io_limit", "ratio", "Most bytes (rbps, wbps) or requests (riops, wiops) a second that the group may send to the device, by its number.", ioFrom, ioHand, "cgroup", "device", "what")
	ioUsed  = counter("plimsoll_cgroup_io_total", "ratio", "Bytes (rbps, wbps) and requests (riops, wiops) that the group sent to a device for which it has a limit.", ioFrom, ioHand, "cgroup", "device", "what")

	cpuSignals    = []*model.Signal{cpuLimit, periods, throttledPeriods, throttledSeconds}
	memorySignals = []*model.Signal{memoryBytes, memoryLimit, memoryHits, oomKills, refaults}
	pidsSignals   = []*model.Signal{pids, pidsMax, pidsHits}
	ioSignals     = []*model.Signal{ioLimit, ioUsed}
)
