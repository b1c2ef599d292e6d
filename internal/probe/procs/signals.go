package procs

import "plimsoll/internal/model"

const (
	fromStat   = "/proc/PID/stat"
	fromStatus = "/proc/PID/task/TID/status"
	fromFD     = "/proc/PID/fd, /proc/PID/limits"
)

// counter declares a counter that is added up from differences, so that it
// outlives the processes; all of them are labelled groupname first.
func counter(name, unit, help, source, byHand string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Counter, Unit: unit, Help: help, Source: source, ByHand: byHand,
		Labels: append([]string{"groupname"}, labels...), StartsAtZero: true}
}

func gauge(name, unit, help, source, byHand string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Source: source, ByHand: byHand,
		Labels: append([]string{"groupname"}, labels...)}
}

// A group is the processes of one name (comm); kernel threads go by the part
// before the slash, and of their counters only those that ever moved are put.
var (
	numProcs = gauge("namedprocess_namegroup_num_procs", "processes",
		"Processes of this name.", "/proc", "pgrep -cx NAME")
	numThreads = gauge("namedprocess_namegroup_num_threads", "threads",
		"Threads of the processes of this name.", fromStat, "ps -o nlwp= -C NAME")
	cpuSeconds = counter("namedprocess_namegroup_cpu_seconds_total", "seconds",
		"CPU time of the group since Plimsoll began to look; mode is user or system. Of a process with one thread also what is below the clock tick of stat, half to each mode.", fromStat+", /proc/PID/schedstat", "pidstat -C NAME 1", "mode")
	idleClassSeconds = counter("plimsoll_process_idle_class_cpu_seconds_total", "seconds",
		"CPU time that the group used in the idle class (SCHED_IDLE), so that anybody else who wanted it would have had it. Counted only while the busiest other program stands in the same control group (CPU controller) and, with autogroups, in the same session: between groups the class does not count. Groups that had none have no series.",
		fromStat+" (policy), /proc/PID/cgroup, /proc/PID/autogroup", "ps -eo cls,time,comm; chrt -p PID")
	contextSwitches = counter("namedprocess_namegroup_context_switches_total", "switches",
		"Context switches of all threads of the group; ctxswitchtype is voluntary (it waited for something) or nonvoluntary (the CPU was taken away).", fromStatus, "pidstat -wt -C NAME 1", "ctxswitchtype")
	states = gauge("namedprocess_namegroup_states", "processes",
		"Processes by the state of their main thread: Running, Sleeping, Waiting (uninterruptible, mostly disk), Zombie, Other.", fromStat, "ps -o stat= -C NAME", "state")
	openFiles = gauge("namedprocess_namegroup_open_filedesc", "descriptors",
		"Open file descriptors of the group.", fromFD, "ls /proc/PID/fd | wc -l")
	worstFiles = gauge("namedprocess_namegroup_worst_fd_ratio", "ratio",
		"Open descriptors over the soft limit, of the process of the group that is nearest to it.", fromFD, "prlimit -n -p PID; ls /proc/PID/fd | wc -l")
	worstTasks = gauge("plimsoll_process_worst_nproc_ratio", "ratio",
		"Processes and threads that the user of a process has on this host over the soft limit RLIMIT_NPROC of that process, zombies counted; of the process of the group that is nearest to it. 0 where none is held to one (root never is).",
		"/proc/PID/limits, /proc/PID/status", "ps -L -u USER | wc -l; prlimit -u -p PID")
	worstAddressSpace = gauge("plimsoll_process_worst_address_space_ratio", "ratio",
		"Address space of a process over its soft limit RLIMIT_AS, of the process of the group that is nearest to it. Groups none of whose processes has such a limit have no series.",
		fromStat+", /proc/PID/limits", "grep VmSize /proc/PID/status; prlimit --as -p PID")
	worstMappings = gauge("plimsoll_process_worst_mappings_ratio", "ratio",
		"Memory mappings of a process over vm.max_map_count, of the process of the group that is nearest to it. Groups whose processes have less address space than nine tenths of so many pages have no series.",
		"/proc/PID/maps", "wc -l < /proc/PID/maps; sysctl vm.max_map_count")
	majorFaults = counter("namedprocess_namegroup_major_page_faults_total", "faults",
		"Page faults that had to be read from disk.", fromStat, "pidstat -r -C NAME 1")
	minorFaults = counter("namedprocess_namegroup_minor_page_faults_total", "faults",
		"Page faults that needed no disk.", fromStat, "pidstat -r -C NAME 1")
	readBytes = counter("namedprocess_namegroup_read_bytes_total", "bytes",
		"Bytes that the group caused to be read from block devices.", "/proc/PID/io", "pidstat -d -C NAME 1")
	writeBytes = counter("namedprocess_namegroup_write_bytes_total", "bytes",
		"Bytes that the group caused to be written to block devices.", "/proc/PID/io", "pidstat -d -C NAME 1")
	passedBytes = counter("plimsoll_process_passed_bytes_total", "bytes",
		"Bytes that calls of read, write and their kin of the group passed on, whatever they were from or to.", "/proc/PID/io", "grep char /proc/PID/io")
	passCalls = counter("plimsoll_process_pass_calls_total", "calls",
		"Calls of read, write and their kin, whatever they were from or to.", "/proc/PID/io", "grep sysc /proc/PID/io; strace -c -f -p PID")
	memoryBytes = gauge("namedprocess_namegroup_memory_bytes", "bytes",
		"Memory of the group; memtype is resident (shared pages are counted in every process) or virtual.", fromStat, "ps -o rss=,vsz= -C NAME", "memtype")
	threadCPU = counter("namedprocess_namegroup_thread_cpu_seconds_total", "seconds",
		"CPU time by name of the thread, of processes with more than one thread.", "/proc/PID/task/TID/stat", "top -H", "threadname", "mode")
	busiestThread = gauge("plimsoll_process_busiest_thread_cpu_ratio", "ratio",
		"Share of one CPU that the busiest single thread of the group used since the last reading.", "/proc/PID/task/TID/schedstat", "top -H; pidstat -t -C NAME 1")
	runDelay = counter("plimsoll_process_run_delay_seconds_total", "seconds",
		"Time that threads of the group could have run but waited for a CPU (also time throttled by a cgroup).", "/proc/PID/task/TID/schedstat", "pidstat -C NAME 1 (%wait)")
	nicedDelay = counter("plimsoll_process_niced_run_delay_seconds_total", "seconds",
		"Time that threads of a lower priority than is usual could have run but waited for a CPU, by their nice value, 1 to 19 (the lowest); a part of plimsoll_process_run_delay_seconds_total. Counted while the host's busiest program of the usual priority, or a higher one, is in the same control group (CPU controller) and, with autogroups, in the same session: between these a nice value does not count. Groups without such threads have no series.",
		"/proc/PID/task/TID/schedstat, "+fromStat+", /proc/PID/cgroup, /proc/PID/autogroup", "ps -Lo ni,tid,comm -C NAME", "nice")
	allowedCPUs = gauge("plimsoll_process_cpus_allowed", "cpus",
		"CPUs that the group's threads may run on (affinity, cpuset); of the thread that may use the fewest.", fromStatus, "taskset -pc PID; grep Cpus_allowed /proc/PID/status")
	toldCPUs = gauge("plimsoll_process_told_cpus", "cpus",
		"CPUs that the runtimes of the group's processes were told to use at most, all of them together; setting is the variable or option that says so (GOMAXPROCS of Go's programs, TOKIO_WORKER_THREADS, -XX:ActiveProcessorCount). Groups that were told nothing have no series.",
		"/proc/PID/environ, /proc/PID/cmdline", "tr '\\0' '\\n' < /proc/PID/environ | grep GOMAXPROCS", "setting")
	interprets = gauge("plimsoll_process_told_to_interpret", "processes",
		"Processes of the group whose runtime was told to compile none of its code (the JVM's -Xint and its kin, --jitless of Node); setting is the option, and the variable that it stands in. Groups that were told no such thing have no series.",
		"/proc/PID/environ, /proc/PID/cmdline", "tr '\\0' '\\n' < /proc/PID/environ | grep JAVA_TOOL_OPTIONS; tr '\\0' ' ' < /proc/PID/cmdline", "setting")
	codeCacheLeft = gauge("plimsoll_process_code_cache_left_bytes", "bytes",
		"What a JVM of the group has left of the memory that it was told to keep compiled code in (-XX:ReservedCodeCacheSize): that size, less the memory that it may write and execute; of several the least. Read every ten seconds at most; groups that were told no such thing have no series.",
		"/proc/PID/maps, /proc/PID/environ, /proc/PID/cmdline", "grep rwxp /proc/PID/maps; jcmd PID Compiler.codecache")
	starts = counter("plimsoll_process_starts_total", "processes",
		"Processes of this name that began since Plimsoll began to look.", "/proc", "execsnoop; forkstat")
	ends = counter("plimsoll_process_ends_total", "processes",
		"Processes of this name that ended since Plimsoll began to look.", "/proc", "forkstat")

	commandCPU = &model.Signal{Name: "plimsoll_command_cpu_seconds_total", Kind: model.Counter, Unit: "seconds", Labels: []string{"mode"},
		Help:   "CPU time of the watched command, of all its descendants and of those that have ended; mode is user or system.",
		Source: fromStat + ", /proc/PID/task/TID/children", ByHand: "time CMD", StartsAtZero: true}
	commandGroup = &model.Signal{Name: "plimsoll_command_group_info", Kind: model.Gauge, Unit: "groups", Labels: []string{"groupname"},
		Help:   "1 for each process group that the watched command or a descendant of it was seen in.",
		Source: fromStat, ByHand: "pstree -p"}
	commandBusiest = &model.Signal{Name: "plimsoll_command_busiest_thread_cpu_ratio", Kind: model.Gauge, Unit: "ratio",
		Help:   "Share of one CPU that the busiest single thread of the watched command and its descendants used since the last reading.",
		Source: "/proc/PID/task/TID/schedstat", ByHand: "top -H"}
)

var signals = []*model.Signal{
	numProcs, numThreads, cpuSeconds, idleClassSeconds, contextSwitches, states, openFiles, worstFiles, worstTasks, worstAddressSpace, worstMappings,
	majorFaults, minorFaults, readBytes, writeBytes, passedBytes, passCalls, memoryBytes, threadCPU,
	busiestThread, runDelay, nicedDelay, allowedCPUs, toldCPUs, interprets, codeCacheLeft, starts, ends, commandCPU, commandBusiest, commandGroup,
}
