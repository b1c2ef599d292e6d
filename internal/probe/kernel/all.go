package kernel

import "plimsoll/internal/probe"

// All lists the probes of this package.
func All() []probe.Probe {
	return []probe.Probe{
		Stat(), LoadAvg(), Softirqs(), Softnet(), Pressure(),
		Netstat(), Sockstat(), UDP(), Conntrack(), Sysctl(), MachineSysctl(),
		Meminfo(), VMStat(), FileNr(), NetDev(), Qdisc(), NFTables(), RoutingRules(), DiskStats(), ARP(), NFQueue(), Neighbours(), Log(),
	}
}
