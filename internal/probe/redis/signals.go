package redis

import "plimsoll/internal/model"

func signal(kind model.Kind, name, unit, help, section string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: append([]string{"listen"}, labels...),
		Source: "Redis or Valkey, asked for INFO where it listens itself", ByHand: "redis-cli info " + section}
}

func gauge(name, unit, help, section string, labels ...string) *model.Signal {
	return signal(model.Gauge, name, unit, help, section, labels...)
}

func counter(name, unit, help, section string, labels ...string) *model.Signal {
	return signal(model.Counter, name, unit, help, section, labels...)
}

// Named as redis_exporter (oliver006) names them, where it has them. The label listen is the server's first address
// of TCP, else its Unix socket, by whichever of them it was asked.
var (
	up   = gauge("redis_up", "ratio", "1 when the server answered, 0 when it did not.", "server")
	full = gauge("plimsoll_redis_full", "ratio", "1 when the server sent even us away, since it had maxclients; 0 when it let us in.", "clients")
	info = gauge("redis_instance_info", "ratio", "What server it is, and what it does when its memory is used up. Always 1.", "server", "role", "redis_version", "maxmemory_policy")

	clock = counter("plimsoll_redis_clock_seconds_total", "seconds", "The server's own clock when it wrote the other numbers; the time between two answers is the difference of two of these, however late they came.", "server")

	commands = counter("redis_commands_total", "commands", "Commands that were done, by name.", "commandstats", "cmd")
	duration = counter("redis_commands_duration_seconds_total", "seconds", "How long the server's thread was busy with them. What a script calls counts for the script, too.", "commandstats", "cmd")
	rejected = counter("redis_commands_rejected_calls_total", "commands", "Commands that were refused before they began (since 6.2).", "commandstats", "cmd")
	errs     = counter("redis_errors_total", "errors", "Errors that clients got, by their first word (since 6.2).", "errorstats", "err")
)

// numbers are the signals that are one field of INFO each.
var numbers = []struct {
	field  string
	scale  float64
	signal *model.Signal
}{
	{"connected_clients", 1, gauge("redis_connected_clients", "connections", "Clients that are connected, ours among them.", "clients")},
	{"maxclients", 1, gauge("redis_config_maxclients", "connections", "The most clients that the server takes (maxclients).", "clients")},
	{"blocked_clients", 1, gauge("redis_blocked_clients", "connections", "Clients that wait in a command that blocks (BLPOP, WAIT …).", "clients")},
	{"connected_slaves", 1, gauge("redis_connected_slaves", "connections", "Replicas that are connected to it.", "replication")},
	{"used_memory", 1, gauge("redis_memory_used_bytes", "bytes", "Memory that the server has allocated.", "memory")},
	{"used_memory_rss", 1, gauge("redis_memory_used_rss_bytes", "bytes", "Memory of the server's process.", "memory")},
	{"maxmemory", 1, gauge("redis_memory_max_bytes", "bytes", "The most memory that it may allocate (maxmemory); 0 is no limit.", "memory")},
	{"mem_clients_normal", 1, gauge("redis_mem_clients_normal", "bytes", "Memory that the buffers of its clients take, those of replicas left out; what a client does not read stays in them.", "memory")},
	{"total_connections_received", 1, counter("redis_connections_received_total", "connections", "Connections that it took.", "stats")},
	{"rejected_connections", 1, counter("redis_rejected_connections_total", "connections", "Connections that it closed at once, since it had maxclients.", "stats")},
	{"total_commands_processed", 1, counter("redis_commands_processed_total", "commands", "Commands that were done.", "stats")},
	{"keyspace_hits", 1, counter("redis_keyspace_hits_total", "lookups", "Lookups of keys that were there.", "stats")},
	{"keyspace_misses", 1, counter("redis_keyspace_misses_total", "lookups", "Lookups of keys that were not there.", "stats")},
	{"evicted_keys", 1, counter("redis_evicted_keys_total", "keys", "Keys that were thrown out, since memory was used up.", "stats")},
	{"expired_keys", 1, counter("redis_expired_keys_total", "keys", "Keys whose time was over.", "stats")},
	{"latest_fork_usec", 1e-6, gauge("redis_latest_fork_seconds", "seconds", "How long the last fork took, during which nothing is served.", "stats")},
	{"total_forks", 1, counter("redis_forks_total", "forks", "Forks, to save the data.", "stats")},
	{"loading", 1, gauge("redis_loading_dump_file", "ratio", "1 while it reads its data from the disk.", "persistence")},
	{"rdb_bgsave_in_progress", 1, gauge("redis_rdb_bgsave_in_progress", "ratio", "1 while a child saves the data.", "persistence")},
	{"aof_rewrite_in_progress", 1, gauge("redis_aof_rewrite_in_progress", "ratio", "1 while a child writes the append-only file anew.", "persistence")},
	{"aof_delayed_fsync", 1, counter("redis_aof_delayed_fsync", "syncs", "Writes to the append-only file that had to wait for a sync that took too long.", "persistence")},
	{"used_cpu_sys_main_thread", 1, counter("redis_cpu_sys_main_thread_seconds_total", "seconds", "CPU time of the thread that serves, in the kernel (since 6.2).", "cpu")},
	{"used_cpu_user_main_thread", 1, counter("redis_cpu_user_main_thread_seconds_total", "seconds", "CPU time of the thread that serves, outside of it (since 6.2).", "cpu")},
}

func signals() []*model.Signal {
	all := []*model.Signal{up, full, info, clock, commands, duration, rejected, errs}
	for _, n := range numbers {
		all = append(all, n.signal)
	}
	return all
}
