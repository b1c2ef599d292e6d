package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

func TestConntrackStatisticsOfTwoCPUsAreSummed(t *testing.T) {
	sums := map[string]uint64{}
	for _, b := range hexLines(t, "testdata/ctnetlink_stats.hex") {
		if err := addConntrackAttrs(b, sums); err != nil {
			t.Fatal(err)
		}
	}
	// "ignore" is no longer sent, and must not be taken for zero.
	want := map[string]uint64{"found": 0, "invalid": 14, "insert": 0, "insert_failed": 0, "drop": 0, "early_drop": 0, "search_restart": 0}
	if diff := cmp.Diff(want, sums); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
}

func TestConntrackColumnsGoByName(t *testing.T) {
	sums, err := parseConntrackStat([]byte("entries  drop  found\n000000ff  0000000a  00000001\n000000ff  00000001  00000001\n"))
	if err != nil {
		t.Fatal(err)
	}
	if sums["drop"] != 11 || sums["found"] != 2 {
		t.Errorf("drop %d, found %d; want 11 and 2", sums["drop"], sums["found"])
	}
}

func TestLinksAreParsed(t *testing.T) {
	var got []link
	for _, b := range hexLines(t, "testdata/rtnetlink_links.hex") {
		l, err := parseLink(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if len(got) != 3 {
		t.Fatalf("%d links, want 3", len(got))
	}
	if got[0].name != "lo" || got[0].up || got[0].mtu != 65536 || got[0].stats[0] == 0 || got[0].stats[0] != got[0].stats[1] {
		t.Errorf("lo: %+v; want state unknown, mtu 65536, as many packets in as out", got[0])
	}
	if !got[1].up || got[1].mtu != 1500 || !got[1].counted || got[1].downs == 0 {
		t.Errorf("veth: %+v; want it up, mtu 1500, and its carrier counted, which it did not have before its peer was up", got[1])
	}
}

func TestLogKinds(t *testing.T) {
	for line, want := range map[string]string{
		"nf_conntrack: nf_conntrack: table full, dropping packet":                                                   "conntrack_table_full",
		"nf_conntrack: nf_conntrack: table full in netns 4026532281, dropping packet":                               "conntrack_table_full",
		"TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.  Check SNMP counters.":           "syn_flooding",
		"TCP: request_sock_TCP: Possible SYN flooding on port 10.0.0.1:80. Sending cookies.":                        "syn_flooding",
		"Out of memory: Killed process 1234 (php-fpm8.2) total-vm:1kB, anon-rss:1kB":                                "oom_kill",
		"Memory cgroup out of memory: Killed process 99 (stress)":                                                   "oom_kill",
		"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task=x,pid=1,uid=0": "other",
		"Out of memory: Kill process 1 (x) score 900 or sacrifice child":                                            "other",
		"TCP: time wait bucket table overflow":                                                                      "tw_bucket_overflow",
		"neighbour: arp_cache: neighbor table overflow!":                                                            "neighbour_table_overflow",
		"Neighbour table overflow.":                                                                                 "neighbour_table_overflow",
		"TCP: out of memory -- consider tuning tcp_mem":                                                             "out_of_tcp_memory",
		"INFO: task nginx:77 blocked for more than 120 seconds.":                                                    "hung_task",
		"eth0: link up": "other",
	} {
		if got := logKind(line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func TestLogRecords(t *testing.T) {
	l := newKernelLog(-1)
	for _, rec := range []string{
		"4,100,5140900,-;TCP: time wait bucket table overflow\n SUBSYSTEM=net\n",
		"30,101,5140901,-;systemd[1]: a program wrote this",
		"4,105,5140902,-;eth0: link up",
	} {
		r, err := parseLogRecord([]byte(rec))
		if err != nil {
			t.Fatal(err)
		}
		l.take(r)
	}
	if l.counts["tw_bucket_overflow"] != 1 || l.counts["other"] != 1 || l.overwritten != 3 {
		t.Errorf("counts %v, overwritten %d; want one overflow, one other, 3 overwritten", l.counts, l.overwritten)
	}
}

func TestReservedPorts(t *testing.T) {
	for list, want := range map[string]int{"": 0, "\n": 0, "8080\n": 1, "8080,9000-9100\n": 102, "0-65535": 65536} {
		if n, err := countPorts([]byte(list)); err != nil || n != want {
			t.Errorf("%q: %d, %v; want %d", list, n, err, want)
		}
	}
}

// TestNamespaceIsReadFromInside reads a namespace that has its own settings,
// devices and counters, from a process that is outside of it.
func TestNamespaceIsReadFromInside(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	name := "plimsoll-kernel-" + strconv.Itoa(os.Getpid())
	run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { run(t, "ip", "netns", "delete", name) })
	run(t, "ip", "-n", name, "link", "set", "lo", "up")
	run(t, "ip", "netns", "exec", name, "sysctl", "-qw", "net.core.somaxconn=77")
	run(t, "ip", "netns", "exec", name, "nft", "table ip t { chain a { tcp dport 1 drop; tcp dport 2 drop; }; chain b { tcp dport 3 drop; }; }")
	run(t, "ip", "-n", name, "rule", "add", "from", "10.1.0.1", "lookup", "200")
	h, err := host.Open("server", "netns:"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	rec := newRecorder()
	sample(t, rec, h)
	if v := rec.values["node_sysctl_net_core_somaxconn"]; v != 77 {
		t.Errorf("somaxconn %v, want the namespace's 77", v)
	}
	if v := rec.values[`plimsoll_nft_rules{table="t"}`]; v != 3 {
		t.Errorf("%v rules in the namespace's table, want the 3 of its chains", v)
	}
	if v := rec.values[`plimsoll_routing_rules{family="ipv4"}`]; v != 4 {
		t.Errorf("%v rules of policy routing, want the kernel's 3 and one more", v)
	}
	for series := range rec.values {
		if strings.HasPrefix(series, "node_network_up") && series != `node_network_up{device="lo"}` {
			t.Errorf("%s: want only the namespace's lo", series)
		}
	}
	if _, ok := rec.values[`node_network_up{device="lo"}`]; !ok {
		t.Error("lo is missing")
	}
	if v := rec.values["node_netstat_Ip_InReceives"]; v != 0 {
		t.Errorf("the fresh namespace received %v packets, want 0", v)
	}
	if v, ok := rec.values["node_sysctl_kernel_pid_max"]; !ok || v == 0 {
		t.Error("the machine's pid_max is missing")
	}
	if st := rec.status["node_nf_conntrack_stat_drop"]; st.State == model.Failed {
		t.Errorf("conntrack: %s", st.Why)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func TestQueueingDisciplinesAreParsed(t *testing.T) {
	roots := map[string]qdisc{}
	for _, b := range hexLines(t, "testdata/rtnetlink_qdiscs.hex") {
		d, root, err := parseQdisc(b)
		if err != nil {
			t.Fatal(err)
		}
		if root {
			roots[d.kind] = d
		}
	}
	tbf, ok := roots["tbf"]
	if !ok {
		t.Fatalf("want a tbf among the roots, got %v", roots)
	}
	if tbf.rate != 12_500_000 || !tbf.basic || !tbf.queued || tbf.packets == 0 || tbf.bytes < tbf.packets*42 {
		t.Errorf("tbf: %+v; want 100 Mbit/s, and more bytes than packets", tbf)
	}
	if lo := roots["noqueue"]; lo.rate != 0 {
		t.Errorf("noqueue: %+v; want no rate", lo)
	}
}

func TestLimitsOfThePacketFilterAreParsed(t *testing.T) {
	var got []nftRule
	for _, b := range slices.Concat(hexLines(t, "testdata/nfnetlink_rules.hex"), hexLines(t, "testdata/nfnetlink_iptables.hex")) {
		r, err := parseNFTRule(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []nftRule{
		{family: "inet", handle: 2, table: "lab", chain: "input", rate: 3000, burst: 5, what: "packets", verdict: "drop"},
		{family: "inet", handle: 3, table: "lab", chain: "input", rate: 50 << 20 / 60.0, what: "bytes", verdict: "reject", newOnly: true},
		{family: "inet", handle: 4, table: "lab", chain: "input", rate: 10, burst: 5, what: "packets", verdict: "accept"},
		{family: "inet", handle: 5, table: "lab", chain: "input", verdict: "drop"},
		{family: "ip", handle: 2, table: "filter", chain: "INPUT", rate: 100, burst: 20, what: "packets", verdict: "accept", newOnly: true}, // --syn
		{family: "ip", handle: 3, table: "filter", chain: "INPUT", verdict: "reject", newOnly: true},
		{family: "ip", handle: 4, table: "filter", chain: "INPUT", rate: 0.5, burst: 5, what: "packets", verdict: "accept", newOnly: true}, // --ctstate NEW
		{family: "ip", handle: 5, table: "filter", chain: "INPUT", rate: 40 / 60.0, burst: 5, what: "packets", verdict: "accept"},          // --ctstate NEW,ESTABLISHED
		{family: "ip", handle: 6, table: "filter", chain: "INPUT", rate: 50, burst: 5, what: "packets", verdict: "drop", newOnly: true},    // ct state new
		{family: "ip", handle: 7, table: "filter", chain: "INPUT", rate: 60, burst: 5, what: "packets", verdict: "drop"},                   // ct state new,established
		{family: "ip", handle: 8, table: "filter", chain: "INPUT", rate: 70, burst: 5, what: "packets", verdict: "drop", newOnly: true},    // tcp flags syn
		{family: "ip", handle: 9, table: "filter", chain: "INPUT", rate: 80, burst: 5, what: "packets", verdict: "reject", newOnly: true},  // tcp flags & (fin|syn|rst|ack) == syn
		{family: "ip", handle: 10, table: "filter", chain: "INPUT", rate: 90, burst: 5, what: "packets", verdict: "reject"},                // tcp flags != syn
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(nftRule{}), cmpopts.IgnoreFields(nftRule{}, "loaded")); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// Those of nft, of a device's own hook, and what iptables makes of TEE.
func TestRulesThatCopyAreParsed(t *testing.T) {
	var got []string
	for _, b := range hexLines(t, "testdata/nfnetlink_copies.hex") {
		r, err := parseNFTRule(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %d: %v", r.family, r.table, r.chain, r.handle, r.copies))
	}
	want := []string{"ip forensics out 2: true", "netdev tap in 2: true", "netdev tap in 3: false", "ip mangle POSTROUTING 2: true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for name, want := range map[string]nftRule{"TEE": {copies: true}, "REJECT": {verdict: "reject"}, "LOG": {}} {
		var r nftRule
		if r.target(name); r != want {
			t.Errorf("%s: %+v, want %+v", name, r, want)
		}
	}
}

func TestSilentNeighboursAreNamed(t *testing.T) {
	const header = "IP address       HW type     Flags       HW address            Mask     Device\n"
	table := header + "192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0\n" +
		"192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth0\n"
	counts, silent, err := parseARP([]byte(table))
	if err != nil || counts["eth0"] != 2 || !slices.Equal(silent, []neighbour{{device: "eth0", address: "192.0.2.9"}}) {
		t.Errorf("%v, %v, %v; want two entries, of which 192.0.2.9 does not answer", counts, silent, err)
	}
	if _, silent, err = parseARP([]byte(header + strings.Repeat("192.0.2.9 0x1 0x0 00:00:00:00:00:00 * eth0\n", 3*mostUnanswered))); err != nil || len(silent) > 0 {
		t.Errorf("%d silent ones of a scan, %v; want none named", len(silent), err)
	}
}

// lo cuts in software whatever anybody says of devices; what is gone is not known.
func TestOffloadsAreAsked(t *testing.T) {
	n, err := openNetDev()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	n.ask([]link{{name: "lo"}, {name: "gone"}})
	if got := n.asked["lo"].offloads; !got["tso"] || !got["gso"] {
		t.Errorf("lo: %v, want tso and gso", got)
	}
	if got := n.asked["gone"].offloads; len(got) != 0 {
		t.Errorf("a device that is not there: %v", got)
	}
}

// A host of hundreds of veths: only those that carry the most are asked.
func TestTheBusiestDevicesAreAsked(t *testing.T) {
	n := &netdev{}
	var links []link
	for i := range 3 * askAtMost {
		links = append(links, link{name: fmt.Sprintf("veth%d", i), stats: []uint64{uint64(i), 0}})
	}
	if got := n.busiest(links); len(got) != askAtMost || got[0].name != links[3*askAtMost-1].name {
		t.Errorf("%d devices, first %s; want %d, first the one that carried the most", len(got), got[0].name, askAtMost)
	}
	links[0].stats[1] += 5
	if got := n.busiest(links); got[0].name != "veth0" {
		t.Errorf("%s is the first to be asked; want veth0, the only one with packets since", got[0].name)
	}
	if got := n.busiest([]link{{name: "old"}}); len(got) != 1 {
		t.Errorf("%d devices of one without counters", len(got))
	}
}
