package kernel

// What one read was measured to cost (BenchmarkRead, warm, without recording
// it): CPU time on a 2-CPU virtual machine with Linux 6.18, one disk and four
// network devices. A whole round through the sampler takes 0.3 ms of CPU time
// when rounds follow each other at once (BenchmarkRound) and 1.1 ms when the
// caches are cold, every fifth of a second; each further host on the machine
// adds 0.3 ms. So a round a second is 0.1 % of a core.
const (
	costStat          = "10 µs with 2 CPUs; grows with CPUs and interrupt lines"
	costLoadAvg       = "2 µs"
	costSoftirqs      = "8 µs with 2 CPUs; grows with CPUs"
	costSoftnet       = "4 µs with 2 CPUs; grows with CPUs"
	costPressure      = "12 µs"
	costNetstat       = "78 µs"
	costSockstat      = "6 µs"
	costUDP           = "46 µs where nearly no socket is, every 2 s; grows with sockets, and a little with the memory of the machine (its table of sockets)"
	costConntrack     = "14 µs with 2 CPUs; one netlink message a CPU"
	costSysctl        = "29 µs, every 5 s"
	costMachineSysctl = "18 µs, every 5 s"
	costMeminfo       = "10 µs"
	costVMStat        = "31 µs"
	costFileNr        = "2 µs"
	costNetDev        = "21 µs with 4 devices; grows with devices"
	costDiskStats     = "12 µs with 1 disk; grows with disks"
	costQdisc         = "30 µs with 4 devices; grows with devices"
	costNFTables      = "15 µs with 10 rules, every 5 s; grows with rules"
	costRoutingRules  = "3 µs with 3 rules and 0.5 ms with 4,000, every 5 s"
	costNFQueue       = "2 µs with 1 queue; grows with queues"
	costARP           = "2 µs with 1 neighbour, every 5 s; grows with neighbours"
	costNeighbours    = "8 µs with 2 CPUs; grows with CPUs"
	costLog           = "1 µs when nothing is logged"
)
