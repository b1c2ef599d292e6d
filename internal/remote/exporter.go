package remote

import "strings"

// exporter says who collects the series of a prefix for Prometheus. A name that
// fits none is one that only Plimsoll records.
type exporter struct {
	prefix string
	name   string
	// off says what has to be set for the series to be there.
	off string
	// unfit, when not empty, says why its series are not taken although they
	// have our names.
	unfit string
}

// exporters, the longest prefix first. Their names are ours to the letter; what
// differs stands in off and unfit. Labels that a signal does not declare (job,
// instance, scrape_uri …) are dropped in fetch.
var exporters = []exporter{
	{prefix: "node_nf_conntrack_stat_", name: "node_exporter", off: "its conntrack collector gives it since version 1.1"},
	{prefix: "node_netstat_", name: "node_exporter", off: "--collector.netstat.fields says which of these it gives"},
	{prefix: "node_vmstat_", name: "node_exporter", off: "--collector.vmstat.fields says which of these it gives"},
	{prefix: "node_sysctl_", name: "node_exporter", off: "--collector.sysctl and --collector.sysctl.include give it"},
	{prefix: "node_softirqs_", name: "node_exporter", off: "--collector.softirqs gives it"},
	{prefix: "node_softnet_", name: "node_exporter", off: "its softnet collector gives more of these since version 1.6"},
	{prefix: "node_pressure_", name: "node_exporter", off: "its pressure collector gives it where the kernel has PSI"},
	{prefix: "node_", name: "node_exporter", off: "a collector of it that is on gives it"},
	{prefix: "nginx_", name: "nginx-prometheus-exporter", off: "it has to be scraped"},
	{prefix: "phpfpm_", name: "php-fpm_exporter", off: "it has to be scraped"},
	{prefix: "namedprocess_", name: "process-exporter",
		unfit: "process-exporter sees only the groups that it was told of, so that its series are not taken"},
}

// signalState is the series in which an exporter of ours (plimsoll watch --listen) says what became
// of each of its signals.
const signalState = "plimsoll_signal_state"

// hostInfo is the series in which it says of each of its hosts on which machine that is.
const hostInfo = "plimsoll_host_info"

// exporterOf returns who collects a series, nil for Plimsoll alone.
func exporterOf(signal string) *exporter {
	for i := range exporters {
		if strings.HasPrefix(signal, exporters[i].prefix) {
			return &exporters[i]
		}
	}
	return nil
}

// Collected tells whether an exporter gives a series in a form that can be judged.
func Collected(signal string) bool {
	e := exporterOf(signal)
	return e != nil && e.unfit == ""
}

// absence says why a host has no series of that name.
func absence(signal string) string {
	e := exporterOf(signal)
	switch {
	case e == nil:
		return "what it needs only Plimsoll itself reads"
	case e.unfit != "":
		return e.unfit
	}
	return "the server has none of it in the window; it is " + e.name + "'s, and " + e.off
}
