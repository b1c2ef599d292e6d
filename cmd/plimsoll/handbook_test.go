package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/ruleset"
)

// stop is a place on the way of a request where it can be held up. A rule belongs to the
// first stop with a pattern that fits its ID.
type stop struct {
	name, about string
	rules       []string // patterns
}

// requestsWay is the course of a request. The order within is that in which a request comes by.
var requestsWay = []stop{
	{"The client", "needs a thread that sends, and a local port towards the destination", []string{"load.*", "net.ports.*", "net.time_wait.*"}},
	{"The network", "carries packets there and back", []string{"net.packet_*", "net.reordering", "net.small_packets", "net.segmentation_off", "net.way.*", "net.bandwidth_limit", "net.buffer.incoming", "net.large_packets_lost", "net.checksum_errors", "net.neighbours_full", "net.keepalive_mismatch", "net.idle_closed", "app.closes_unread", "app.clients_dropped", "net.link_flaps", "net.reverse_path", "net.neighbour.unreachable", "net.fragments.full", "net.connect.nobody_listens"}},
	{"The server's interrupts", "take packets from the network card, each CPU from its own queue", []string{"net.softnet.*", "net.routing_rules", "cpu.softirq_one_cpu"}},
	{"The packet filter", "lets a packet pass, and remembers its connection", []string{"net.filter.*", "net.conntrack.*"}},
	{"TCP", "completes the handshake, and parks the connection in the listener's queue", []string{"net.handshakes", "net.defer_accept", "net.listen.*", "net.syn_flood", "net.tcp.*", "net.udp.*"}},
	{"The service's limits", "say how many connections, files and processes it may have", []string{"nginx.worker_connections.*", "nginx.limit_*", "haproxy.denies", "app.too_many_requests", "requests.refused", "app.clients_dropped", "process.descriptors.*", "process.nproc_limit", "process.mappings_full", "process.address_space_full", "process.zombies", "cgroup.pids_limit", "kernel.files_exhausted"}},
	{"A worker", "takes the request in hand when one is free", []string{"phpfpm.*", "app.pool.*", "apache.scoreboard_full", "app.queue_inside", "app.own_timer", "app.unread", "app.workers.few", "app.loop.*", "process.ended_by_signal", "process.stopped"}},
	{"The CPUs", "compute the reply, when the scheduler and the quota let them", []string{"cpu.*", "sched.*", "cgroup.cpu_throttled", "app.contention", "app.costs_grow", "app.costly_requests", "app.few_cpus", "app.few_heavy", "app.garbage_collection", "app.interpreted", "app.code_cache", "app.small_calls", "app.slow_compute", "app.tls_handshakes", "app.process_each", "process.small_calls", "process.busy_waits", "process.one_at_a_time", "process.memory_churn", "process.short_lived"}},
	{"Memory", "holds what they work on", []string{"memory.*", "cgroup.memory_limit"}},
	{"The disk", "gives and takes data", []string{"disk.*", "fs.*", "cgroup.io_limit"}},
	{"Others that are asked", "locks, databases, name servers, further services", []string{"nginx.upstream_*", "nginx.remembers_missing", "nginx.header_too_big", "nginx.cache_passes", "varnish.*", "app.answers_errors", "app.asks_itself", "app.asks_itself_beside", "app.background_calls", "app.cache_passes", "app.waits_for_itself", "app.callers.few", "app.connections.few", "app.streams.few", "app.helpers.few", "app.consumers.few", "process.pool_held", "app.connects_anew", "app.connects_far", "app.partner_slow", "app.round_trips", "app.fetches_much", "app.sends_late", "app.reads_past_reply", "app.upstream.*", "app.resolver.*", "app.refused", "app.slow_upstream", "haproxy.*", "memcached.*", "mysql.*", "postgres.*", "rabbitmq.*", "redis.*", "process.blocked", "process.file_lock", "process.holder_waits", "process.locked_up", "process.held_up", "process.pipe_unread", "process.refused", "process.retries_refused", "process.terminal_slow", "process.stands_still", "process.told_to_wait", "process.waits_for_reply", "net.connect.unanswered", "net.address_flaps", "net.connections.dead", "net.peer_unread", "net.unix.*"}},
	{"The reply", "goes into the socket's buffer, and over the network back", []string{"net.buffer.receive", "net.buffer.send", "net.receiver.*", "net.nagle", "net.queue_short", "net.sack_off", "net.held_back", "net.window.small", "net.slow_start_idle", "net.segments.small"}},
}

// stopOf is the number of a rule's place on the way, -1 for none.
func stopOf(id string) int {
	return slices.IndexFunc(requestsWay, func(s stop) bool {
		return slices.ContainsFunc(s.rules, func(pattern string) bool {
			ok, err := path.Match(pattern, id)
			return err == nil && ok
		})
	})
}

// pathPage is docs/path.md.
func pathPage(set ruleset.Rules) string {
	var b strings.Builder
	b.WriteString("# The way of a request\n\nWhere a request can be held up, in the order in which it comes by, and the rule that names each fault there.\n" +
		"Generated from the rules; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew. By what users see: [symptoms.md](symptoms.md).\n\n```text\n")
	for i, s := range requestsWay {
		fmt.Fprintf(&b, "%2d  %-24s %s\n", i+1, s.name, s.about)
	}
	b.WriteString("```\n")
	for i, s := range requestsWay {
		fmt.Fprintf(&b, "\n## %d. %s\n\n", i+1, s.name)
		for _, r := range set.List {
			if (r.Kind == ruleset.Cause || r.Kind == ruleset.Capacity) && stopOf(r.ID) == i {
				fmt.Fprintf(&b, "- %s ([%s](rules/%s.md))\n", r.Title, r.ID, r.ID)
			}
		}
	}
	return b.String()
}

// symptomsPage is docs/symptoms.md.
func symptomsPage(set ruleset.Rules) string {
	var b strings.Builder
	b.WriteString("# By symptom\n\nWhat users or tools see, and each cause that can make it so, with how. Generated from the rules;\n" +
		"`PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew. By place: [path.md](path.md).\n")
	for _, symptom := range set.List {
		if symptom.Kind != ruleset.Symptom {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n[%s](rules/%s.md)\n\n", symptom.Title, symptom.ID, symptom.ID)
		for _, r := range set.List {
			if r.Kind != ruleset.Cause && r.Kind != ruleset.Capacity {
				continue
			}
			if ways := r.Consequences(symptom); len(ways) > 0 {
				fmt.Fprintf(&b, "- %s ([%s](rules/%s.md)): %s\n", r.Title, r.ID, r.ID, ways[0].How)
			}
		}
	}
	return b.String()
}

func TestWayOfARequestIsFresh(t *testing.T) {
	set, err := ruleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	held := make([]bool, len(requestsWay))
	for _, r := range set.List {
		if r.Kind != ruleset.Cause && r.Kind != ruleset.Capacity {
			continue
		}
		at := stopOf(r.ID)
		if at < 0 {
			t.Errorf("%s has no place on the way of a request; give it one in this file", r.ID)
			continue
		}
		held[at] = true
	}
	for i, s := range requestsWay {
		if !held[i] {
			t.Errorf("%s: no rule names a fault there", s.name)
		}
	}
	fresh(t, "path.md", pathPage(set))
	fresh(t, "symptoms.md", symptomsPage(set))
}
