package nginx

import "plimsoll/internal/model"

const (
	stubSource = "nginx's stub_status page"
	stubHand   = "curl http://127.0.0.1/status (where the configuration has stub_status)"
	confSource = "nginx's configuration files"
	confHand   = "nginx -T"
	errorHand  = "less /var/log/nginx/error.log"
	accessHand = "less /var/log/nginx/access.log"
)

func stubGauge(name, unit, help string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Source: stubSource, ByHand: stubHand}
}

func stubCounter(name, unit, help string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Counter, Unit: unit, Help: help, Source: stubSource, ByHand: stubHand}
}

func confGauge(name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Labels: labels, Source: confSource, ByHand: confHand}
}

func logCounter(name, unit, help, source, hand string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Counter, Unit: unit, Help: help, Labels: labels, Source: source, ByHand: hand, StartsAtZero: true}
}

// What stub_status says, named as nginx-prometheus-exporter names it.
var (
	up       = stubGauge("nginx_up", "ratio", "1 when nginx's status page answered, 0 when it did not.")
	active   = stubGauge("nginx_connections_active", "connections", "Client connections that are open, idle ones included.")
	accepted = stubCounter("nginx_connections_accepted", "connections", "Client connections that nginx accepted.")
	handled  = stubCounter("nginx_connections_handled", "connections", "Client connections that nginx handled; fewer than accepted when worker_connections did not suffice.")
	requests = stubCounter("nginx_http_requests_total", "requests", "Requests that clients sent, those for the status page included.")
	reading  = stubGauge("nginx_connections_reading", "connections", "Connections on which nginx is reading a request's header.")
	writing  = stubGauge("nginx_connections_writing", "connections", "Connections on which nginx works on a request or sends its answer.")
	waiting  = stubGauge("nginx_connections_waiting", "connections", "Idle client connections that wait for another request.")

	stubSignals = []*model.Signal{up, active, accepted, handled, requests, reading, writing, waiting}
)

// What nginx writes to its access log.
var (
	responses = logCounter("plimsoll_nginx_responses_total", "responses",
		"Responses by status as the access log has it; 499 is a client that went away before it was answered.", "nginx's access log", accessHand, "status")
	requestSum = logCounter("plimsoll_nginx_request_seconds_sum", "seconds",
		"Time from the first byte of a request read to the last byte of its answer sent, added up ($request_time).", "nginx's access log", accessHand)
	requestCount  = logCounter("plimsoll_nginx_request_seconds_count", "requests", "Requests whose time is in the sum.", "nginx's access log", accessHand)
	upstreamSum   = logCounter("plimsoll_nginx_upstream_response_seconds_sum", "seconds", "Time that nginx waited for upstream servers, added up ($upstream_response_time, all tries of a request).", "nginx's access log", accessHand)
	upstreamCount = logCounter("plimsoll_nginx_upstream_response_seconds_count", "requests", "Requests that were passed to an upstream server and whose time is in the sum.", "nginx's access log", accessHand)
	bufferedLog   = confGauge("plimsoll_nginx_config_access_log_buffered", "ratio", "1 when every access log is written through a buffer, 0 when one is written line by line.")
)

// What nginx writes to its error log.
var (
	upstreamErrors = logCounter("plimsoll_nginx_upstream_errors_total", "errors",
		"Failures towards an upstream server: errno is the system's error, or timeout (nginx's own timer ran out), eof (it closed too early), header_too_big (its reply's headers are larger than nginx's buffer for them), invalid_reply (they break the protocol), rejected (it refused the request; HTTP/2 and gRPC), no_live_upstreams, disabled (it had failed so often that it is left out for a while); or \"certificate: \" and why nginx refused its certificate.",
		"nginx's error log", errorHand, "upstream", "phase", "errno")
	errorLines = logCounter("plimsoll_nginx_errors_total", "errors",
		"Other lines of level warn and above by what they say; worker_connections: no connection was left in a worker; limit_req, limit_req_delay: a request was refused or held back for its rate.", "nginx's error log", errorHand, "class")
	servedBeside = logCounter("plimsoll_nginx_limit_req_served_total", "responses",
		"Responses below 400 since limit_req first refused or held back a request while nginx was watched: all of them, and those to clients of which it refused or held back any, before or after; so it tells whether those that a limit meets are those who are served. Counted for the first 10,000 clients; with more it is not told.",
		"nginx's access log ($remote_addr) and error log", "grep -o 'limiting requests.*client: [^,]*' ERROR_LOG | sort | uniq -c; awk '{print $1}' ACCESS_LOG | sort | uniq -c", "clients")
	missingThere = logCounter("plimsoll_nginx_missing_but_there_total", "lines",
		"Lines in which nginx said that a file is missing (404, or ENOENT), while it was there, and had not changed since it was first watched, or for a minute. Looked up only where nginx remembers what was missing.",
		"nginx's logs, and the files that they name", "ls -l --time-style=full-iso FILE")
	skipped = logCounter("plimsoll_nginx_log_skipped_bytes_total", "bytes",
		"Bytes of a log that were not understood or not read because following fell behind; what they said is missing from the counts.", "nginx's logs", accessHand, "log")
)

// What nginx is set to.
var (
	workerProcesses   = confGauge("plimsoll_nginx_config_worker_processes", "processes", "Worker processes; auto is resolved by counting them.")
	workerConnections = confGauge("plimsoll_nginx_config_worker_connections", "connections", "Connections that one worker may have open, to clients and upstream servers together.")
	workerNofile      = &model.Signal{Name: "plimsoll_nginx_config_worker_rlimit_nofile", Kind: model.Gauge, Unit: "files",
		Help: "Descriptors that one worker may have open, as in effect.", Source: "/proc/PID/limits of a worker", ByHand: "cat /proc/PID/limits"}
	keepaliveTimeout  = confGauge("plimsoll_nginx_config_keepalive_timeout_seconds", "seconds", "How long an idle client connection is kept; the smallest of all servers.")
	keepaliveRequests = confGauge("plimsoll_nginx_config_keepalive_requests", "requests", "After how many requests a client connection is closed; the smallest of all servers.")
	listenBacklog     = confGauge("plimsoll_nginx_config_listen_backlog", "connections", "The backlog that nginx asks for on a listening address; net.core.somaxconn may cut it.", "listen")
	upstreamKeepalive = confGauge("plimsoll_nginx_config_upstream_keepalive", "connections",
		"Idle connections that a worker keeps to an upstream server; 0: a new connection for every request. FastCGI needs fastcgi_keep_conn besides, HTTP before 1.29.7 HTTP/1.1 without \"Connection: close\".", "upstream")
	upstreamMaxConns = confGauge("plimsoll_nginx_config_upstream_max_conns", "connections", "How many connections nginx opens at most to a server of an upstream block that has such a bound (max_conns); 0: it is marked down.", "upstream")
	upstreamMaxFails = confGauge("plimsoll_nginx_config_upstream_max_fails", "failures", "After how many failures nginx leaves a server of an upstream block out for a while (max_fails); 0: never.", "upstream")
	upstreamWeight   = confGauge("plimsoll_nginx_config_upstream_weight", "ratio", "The weight of a server in an upstream block, of those that get requests as long as all is well; those that are marked down or a backup are left out.", "block", "upstream")
	passes           = confGauge("plimsoll_nginx_config_passes", "count",
		"Places of the configuration (locations, ifs) that pass requests on to an upstream server: cached is yes where replies are kept there (proxy_cache and its kin); forbids is what keeps such a cache from ever answering ($request_id in proxy_cache_key, proxy_no_cache 1, proxy_buffering off), none where nothing in the configuration does; the upstream is unknown where variables say it, of an nginx whose configuration was not read, and where there are more than 500 kinds.",
		"upstream", "cached", "forbids")
	remembersMissing = confGauge("plimsoll_nginx_config_remembers_missing_seconds", "seconds", "How long nginx remembers that a file could not be opened, and does not look again (open_file_cache_errors, open_file_cache_valid); the longest, 0: not at all.")
	info             = confGauge("plimsoll_nginx_info", "ratio",
		"1 for each address at which the nginx listens whose worker_connections and other plain numbers are recorded: of several on a host the one nearest to its worker_connections.", "listen")
	errorLogLevel = confGauge("plimsoll_nginx_config_error_log_level", "ratio", "The most talkative error log's level: 1 emerg, 2 alert, 3 crit, 4 error, 5 warn, 6 notice, 7 info, 8 debug.")
	connsUsed     = &model.Signal{Name: "plimsoll_nginx_worker_connections_used", Kind: model.Gauge, Unit: "sockets",
		Help:   "The most sockets that one worker had open at a time since the last round, its listening ones included as nginx counts them: its open descriptors less those that are no sockets, which are counted once (static files being sent count as sockets).",
		Source: "/proc/PID/fd of each worker", ByHand: "ls -l /proc/PID/fd | grep -c socket:"}

	confSignals = []*model.Signal{workerProcesses, workerConnections, keepaliveTimeout, keepaliveRequests, listenBacklog, upstreamKeepalive, upstreamMaxConns, upstreamMaxFails, upstreamWeight, passes, remembersMissing, bufferedLog, errorLogLevel, info}
)

func allSignals() []*model.Signal {
	var all []*model.Signal
	all = append(all, stubSignals...)
	all = append(all, responses, requestSum, requestCount, upstreamSum, upstreamCount)
	all = append(all, upstreamErrors, errorLines, servedBeside, missingThere, skipped)
	all = append(all, confSignals...)
	return append(all, workerNofile, connsUsed)
}
