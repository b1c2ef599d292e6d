package varnish

import "plimsoll/internal/model"

// Named as prometheus_varnish_exporter names them; the label listen is ours, the first address at which this Varnish listens.
func signal(kind model.Kind, name, unit, help, field string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: append([]string{"listen"}, labels...),
		Source: "Varnish's counters in its shared memory (VSM), read from its working directory", ByHand: "varnishstat -1 -f " + field}
}

var up = signal(model.Gauge, "varnish_up", "ratio", "1 when a Varnish's counters could be read, 0 when they could not.", "MAIN.uptime")

// counted is a counter of Varnish's own and what becomes of it.
type counted struct {
	field  string
	signal *model.Signal
}

func main(kind model.Kind, field, unit, help string) counted {
	return counted{field, signal(kind, "varnish_main_"+field, unit, help, "MAIN."+field)}
}

// classes are the segments that are read, by the first word of their names: MAIN, SMA.s0, VBE.boot.app. What stands behind
// that word is the second label, where the class has one.
var classes = map[string][]counted{
	"MAIN": {
		main(model.Counter, "client_req", "requests", "Requests that clients sent."),
		main(model.Counter, "cache_hit", "lookups", "Lookups that found what was asked for."),
		main(model.Counter, "cache_miss", "lookups", "Lookups that found nothing, so that it was fetched."),
		main(model.Counter, "cache_hitpass", "lookups", "Lookups that found that this is not kept, and is to be passed on (return (pass) for a reply)."),
		main(model.Counter, "cache_hitmiss", "lookups", "Of the misses, those of what is marked as uncacheable: a reply with Set-Cookie, say, or with a life of nothing."),
		main(model.Counter, "s_pass", "requests", "Requests that were passed on without being kept."),
		main(model.Counter, "s_pipe", "requests", "Connections that were only passed through (pipe)."),
		main(model.Counter, "s_synth", "requests", "Replies that Varnish made itself: errors and redirections of VCL."),
		main(model.Counter, "busy_sleep", "requests", "Requests that had to wait, since another one was already fetching the same."),
		main(model.Counter, "n_expired", "objects", "Objects that were dropped since their life was over."),
		main(model.Counter, "n_lru_nuked", "objects", "Objects that were thrown out before their time to make room for another."),
		main(model.Counter, "n_lru_limited", "times", "How often an object got no room, since enough others had been thrown out for it (nuke_limit)."),
		main(model.Gauge, "n_object", "objects", "Objects that it has."),
		main(model.Gauge, "n_objecthead", "keys", "Keys that it has objects under, mostly a host and a path; those are among them that threads have in stock. Several objects of one key are its variants (Vary)."),
		main(model.Gauge, "threads", "threads", "Threads that serve, in all pools."),
		main(model.Counter, "threads_limited", "times", "How often a pool wanted one more thread, and had as many as it may have (thread_pool_max)."),
		main(model.Counter, "threads_failed", "times", "How often a thread could not be made."),
		main(model.Gauge, "thread_queue_len", "requests", "Connections and fetches that wait for a thread."),
		main(model.Counter, "sess_queued", "requests", "How often a connection had to wait for a thread."),
		main(model.Counter, "sess_dropped", "connections", "Connections that were closed, since no thread was free and the queue was full (thread_queue_limit)."),
		main(model.Counter, "req_dropped", "requests", "Streams of HTTP/2 that were refused, since no thread was free and the queue was full."),
		main(model.Counter, "backend_req", "requests", "Requests that were sent to backends."),
		main(model.Counter, "backend_conn", "connections", "Connections that were opened to backends."),
		main(model.Counter, "backend_busy", "requests", "Requests that were not sent, since the backend had as many connections as VCL lets it have (max_connections)."),
		main(model.Counter, "backend_fail", "connections", "Connections to backends that failed."),
		main(model.Counter, "backend_unhealthy", "requests", "Requests that were not sent, since the backend's probe had failed."),
		main(model.Counter, "fetch_failed", "requests", "Fetches that failed, for whatever reason."),
	},
	"SMA": stored("sma", "malloc"), "SMU": stored("smu", "umem"), "SMF": stored("smf", "file"), "MSE": stored("mse", "mse"),
	"VBE": {
		backend(model.Gauge, "conn", "connections", "Connections to a backend that are in use."),
		backend(model.Counter, "req", "requests", "Requests that were sent to a backend."),
		backend(model.Counter, "busy", "requests", "Requests that were not sent to a backend, since it had as many connections as VCL lets it have (max_connections)."),
		backend(model.Counter, "fail", "connections", "Connections to a backend that failed."),
		backend(model.Counter, "unhealthy", "requests", "Requests that were not sent to a backend, since its probe had failed."),
	},
}

// stored are the counters of a storage of one kind (-s).
func stored(class, kind string) []counted {
	of := func(k model.Kind, field, unit, help string) counted {
		return counted{field, signal(k, "varnish_"+class+"_"+field, unit, help+" (-s "+kind+").", "'*."+field+"'", "type")}
	}
	return []counted{
		of(model.Gauge, "g_bytes", "bytes", "Bytes that objects have of a storage"),
		of(model.Gauge, "g_space", "bytes", "Bytes that are left of a storage; 0 of one without a limit"),
		of(model.Counter, "c_fail", "times", "How often a storage had no room for what it was asked for"),
	}
}

func backend(kind model.Kind, field, unit, help string) counted {
	return counted{field, signal(kind, "varnish_backend_"+field, unit, help, "'VBE.*."+field+"'", "backend")}
}

// order is how classes are listed.
var order = []string{"MAIN", "SMA", "SMU", "SMF", "MSE", "VBE"}

func signals() []*model.Signal {
	all := []*model.Signal{up}
	for _, class := range order {
		for _, c := range classes[class] {
			all = append(all, c.signal)
		}
	}
	return all
}
