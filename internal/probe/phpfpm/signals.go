package phpfpm

import "plimsoll/internal/model"

const (
	pageSource = "PHP-FPM's status page, asked over FastCGI"
	pageHand   = "SCRIPT_NAME=/status SCRIPT_FILENAME=/status QUERY_STRING=json REQUEST_METHOD=GET cgi-fcgi -bind -connect 127.0.0.1:9000"
	confSource = "PHP-FPM's configuration files"
	confHand   = "php-fpm -tt"
)

func page(kind model.Kind, name, unit, help string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: []string{"pool"}, Source: pageSource, ByHand: pageHand}
}

func setting(name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Labels: labels, Source: confSource, ByHand: confHand}
}

// What the status page says, named as php-fpm_exporter (hipages) names it.
var (
	up               = page(model.Gauge, "phpfpm_up", "ratio", "1 when the pool answered its status page, 0 when it did not.")
	accepted         = page(model.Counter, "phpfpm_accepted_connections", "requests", "Requests that the pool has taken, those for the status page included.")
	listenQueue      = page(model.Gauge, "phpfpm_listen_queue", "connections", "Connections that wait for a worker; not known for Unix sockets.")
	maxListenQueue   = page(model.Gauge, "phpfpm_max_listen_queue", "connections", "The most connections that waited for a worker since FPM started.")
	listenQueueLen   = page(model.Gauge, "phpfpm_listen_queue_length", "connections", "How many connections may wait.")
	idle             = page(model.Gauge, "phpfpm_idle_processes", "processes", "Workers without a request.")
	active           = page(model.Gauge, "phpfpm_active_processes", "processes", "Workers with a request; the one that answers the status page is one of them unless pm.status_listen is set. Left out where FPM counts more than pm.max_children.")
	total            = page(model.Gauge, "phpfpm_total_processes", "processes", "Workers, idle and active. Left out where FPM counts more than pm.max_children.")
	maxActive        = page(model.Gauge, "phpfpm_max_active_processes", "processes", "The most workers that were active at once since FPM started. Left out where FPM counts more than pm.max_children.")
	maxChildrenHit   = page(model.Counter, "phpfpm_max_children_reached", "times", "How often a further worker was wanted and pm.max_children forbade it; always 0 with pm = static.")
	slow             = page(model.Counter, "phpfpm_slow_requests", "requests", "Requests that took longer than request_slowlog_timeout; nothing where that is not set.")
	pageSignals      = []*model.Signal{up, accepted, listenQueue, maxListenQueue, listenQueueLen, idle, active, total, maxActive, maxChildrenHit, slow}
	pageQueueSignals = []*model.Signal{listenQueue, maxListenQueue, listenQueueLen}
)

var (
	workers = &model.Signal{Name: "plimsoll_phpfpm_workers", Kind: model.Gauge, Unit: "processes", Labels: []string{"pool"},
		Help: "Worker processes of the pool.", Source: "the process list", ByHand: "ps -e -o args | grep -c '^php-fpm: pool NAME'"}
	maxChildren   = setting("plimsoll_phpfpm_config_max_children", "processes", "The most workers that the pool may have (pm.max_children).", "pool")
	startServers  = setting("plimsoll_phpfpm_config_start_servers", "processes", "The workers that the pool starts with (pm.start_servers), where its file says so; only pm = dynamic heeds it.", "pool")
	maxSpare      = setting("plimsoll_phpfpm_config_max_spare_servers", "processes", "The most workers without a request that the pool keeps (pm.max_spare_servers), where its file says so; only pm = dynamic heeds it.", "pool")
	listenBacklog = setting("plimsoll_phpfpm_config_listen_backlog", "connections",
		"The backlog that FPM asks for on the pool's socket; where it asks for the most there is (-1), net.core.somaxconn.", "pool")
	poolInfo = setting("plimsoll_phpfpm_pool_info", "ratio",
		"1 for each pool; says where it listens (as the socket signals write it), how it manages workers, and the name of its processes.", "pool", "listen", "pm", "owner")
	messages = &model.Signal{Name: "plimsoll_phpfpm_log_messages_total", Kind: model.Counter, Unit: "lines", Labels: []string{"pool", "kind"}, StartsAtZero: true,
		Help:   "Lines of level warning and above in FPM's log. max_children_reached comes once until the pool has shrunk again, and never with pm = static; slow_request: longer than a timeout set for it; terminated: a worker ended by a signal or with an error.",
		Source: "PHP-FPM's log", ByHand: "less /var/log/php8.2-fpm.log"}
	skipped = &model.Signal{Name: "plimsoll_phpfpm_log_skipped_bytes_total", Kind: model.Counter, Unit: "bytes", Labels: []string{"log"}, StartsAtZero: true,
		Help: "Bytes of FPM's log that were not read because following fell behind; what they said is missing from the counts.", Source: "PHP-FPM's log", ByHand: "less /var/log/php8.2-fpm.log"}

	opcacheOn       = opcacheSignal(model.Gauge, "on", "ratio", "1 for a pool whose master has memory in which OPcache keeps compiled scripts and that does not switch it off itself (php_admin_value[opcache.enable]), 0 for another.")
	opcacheFiles    = opcacheSignal(model.Gauge, "files", "files", "Places that are taken in OPcache's table of files. A file may have two, by two names.")
	opcacheMaxFiles = opcacheSignal(model.Gauge, "max_files", "files", "Places that the table has: opcache.max_accelerated_files, rounded up to the next of a list of primes.")
	opcacheMisses   = opcacheSignal(model.Counter, "misses_total", "files", "Files that were not in OPcache when they were wanted, so that they were read and compiled.")
	opcacheBytes    = opcacheSignal(model.Gauge, "bytes", "bytes", "OPcache's memory: opcache.memory_consumption, and what its JIT has.")
	opcacheUsed     = opcacheSignal(model.Gauge, "used_bytes", "bytes", "Of this, what was ever written to since PHP-FPM was started.")
	opcacheSignals  = []*model.Signal{opcacheOn, opcacheFiles, opcacheMaxFiles, opcacheMisses, opcacheBytes, opcacheUsed}

	confSignals = []*model.Signal{maxChildren, startServers, maxSpare, listenBacklog, poolInfo}
)

func opcacheSignal(kind model.Kind, name, unit, help string) *model.Signal {
	return &model.Signal{Name: "plimsoll_phpfpm_opcache_" + name, Kind: kind, Unit: unit, Help: help, Labels: []string{"pool"},
		Source: "the head of OPcache's memory, which PHP-FPM's processes share", ByHand: "a page with <?php print_r(opcache_get_status(false)); in each pool; grep rw-s /proc/PID/maps"}
}

func allSignals() []*model.Signal {
	all := append([]*model.Signal{}, pageSignals...)
	all = append(all, workers, messages, skipped)
	all = append(all, opcacheSignals...)
	return append(all, confSignals...)
}
