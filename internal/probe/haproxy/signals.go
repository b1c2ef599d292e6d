package haproxy

import "plimsoll/internal/model"

func signal(kind model.Kind, name, unit, help string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: labels,
		Source: "HAProxy's stats socket (show stat)", ByHand: "echo 'show stat' | socat stdio /run/haproxy/admin.sock"}
}

// Named as HAProxy's own Prometheus exporter names them.
var (
	up = signal(model.Gauge, "haproxy_up", "ratio", "1 when every HAProxy of the host answered at its stats socket, 0 when one did not.")

	frontSessions = signal(model.Gauge, "haproxy_frontend_current_sessions", "connections", "Sessions that are open at a frontend.", "proxy")
	frontLimit    = signal(model.Gauge, "haproxy_frontend_limit_sessions", "connections", "The most sessions that a frontend takes (maxconn).", "proxy")

	frontRate      = signal(model.Gauge, "haproxy_frontend_current_session_rate", "connections per second", "Sessions that a frontend began in the last second.", "proxy")
	frontRateLimit = signal(model.Gauge, "haproxy_frontend_limit_session_rate", "connections per second", "The most sessions that a frontend begins in a second (rate-limit sessions); nothing where there is no limit.", "proxy")

	frontDenied   = signal(model.Counter, "haproxy_frontend_requests_denied_total", "requests", "Requests that a frontend refused by a rule of its configuration (http-request deny, tarpit, block).", "proxy")
	frontRequests = signal(model.Counter, "haproxy_frontend_http_requests_total", "requests", "HTTP requests that came to a frontend.", "proxy")

	backQueue      = signal(model.Gauge, "haproxy_backend_current_queue", "requests", "Requests that wait for a place at a server of the backend.", "proxy")
	backSessions   = signal(model.Gauge, "haproxy_backend_current_sessions", "connections", "Sessions that a backend has, those that wait included.", "proxy")
	backQueueTime  = signal(model.Gauge, "haproxy_backend_queue_time_average_seconds", "seconds", "How long the last 1,024 requests of a backend waited for a place, on average.", "proxy")
	backRetries    = signal(model.Counter, "haproxy_backend_retry_warnings_total", "retries", "Connections to servers of the backend that were tried again.", "proxy")
	backRedispatch = signal(model.Counter, "haproxy_backend_redispatch_warnings_total", "requests", "Requests that were given to another server than the first.", "proxy")

	backErrors = signal(model.Counter, "haproxy_backend_http_responses_total", "responses", "Replies of a backend whose status is 5xx, those included that HAProxy made itself, for want of a server, say.", "proxy", "code")

	serverErrors    = signal(model.Counter, "haproxy_server_http_responses_total", "responses", "Replies that came from a server and whose status is 5xx.", "proxy", "server", "code")
	serverReply     = signal(model.Gauge, "haproxy_server_response_time_average_seconds", "seconds", "How long the last 1,024 requests to a server waited for its reply to begin, on average.", "proxy", "server")
	serverTaken     = signal(model.Counter, "haproxy_server_check_up_down_total", "changes", "How often a server that was UP was marked DOWN.", "proxy", "server")
	serverCheckTime = signal(model.Gauge, "haproxy_server_check_duration_seconds", "seconds", "How long the last check of a server took, or was waited for.", "proxy", "server")
	serverCheck     = signal(model.Gauge, "haproxy_server_check_status", "ratio", "1 for how the last check of a server ended: L7OK, L4CON (no connection), L4TOUT, L7TOUT (it took too long), L7STS (a bad status) and others.", "proxy", "server", "state")

	serverUp       = signal(model.Gauge, "haproxy_server_up", "ratio", "1 for a server that gets requests (UP, or no check), 0 for one that does not.", "proxy", "server")
	serverQueue    = signal(model.Gauge, "haproxy_server_current_queue", "requests", "Requests that wait for this server alone.", "proxy", "server")
	serverWeight   = signal(model.Gauge, "haproxy_server_weight", "ratio", "The weight with which a server gets requests now; backup servers are left out. Its address is told where HAProxy tells it.", "proxy", "server", "address")
	serverTotal    = signal(model.Counter, "haproxy_server_sessions_total", "requests", "Requests (in mode tcp connections) that a server was given.", "proxy", "server")
	serverSessions = signal(model.Gauge, "haproxy_server_current_sessions", "connections", "Sessions that a server has.", "proxy", "server")
	serverLimit    = signal(model.Gauge, "haproxy_server_limit_sessions", "connections", "The most sessions that a server is given (maxconn of its line); nothing where there is no limit.", "proxy", "server")
)

// columns are those of show stat, by the type of the row that they are read of.
var columns = map[string][]struct {
	name   string
	signal *model.Signal
	scale  float64
}{
	"0": {{"scur", frontSessions, 1}, {"slim", frontLimit, 1}, {"rate", frontRate, 1}, {"rate_lim", frontRateLimit, 1}, {"dreq", frontDenied, 1}, {"req_tot", frontRequests, 1}},
	"1": {{"qcur", backQueue, 1}, {"scur", backSessions, 1}, {"qtime", backQueueTime, 1e-3}, {"wretr", backRetries, 1}, {"wredis", backRedispatch, 1}, {"hrsp_5xx", backErrors, 1}},
	"2": {{"stot", serverTotal, 1}, {"qcur", serverQueue, 1}, {"scur", serverSessions, 1}, {"slim", serverLimit, 1}, {"hrsp_5xx", serverErrors, 1}, {"rtime", serverReply, 1e-3}, {"chkdown", serverTaken, 1}, {"check_duration", serverCheckTime, 1e-3}},
}

func signals() []*model.Signal {
	return []*model.Signal{up, frontSessions, frontLimit, frontRate, frontRateLimit, frontDenied, frontRequests, backQueue, backSessions, backQueueTime, backRetries, backRedispatch, backErrors,
		serverErrors, serverReply, serverTaken, serverCheckTime, serverCheck, serverUp, serverWeight, serverTotal, serverQueue, serverSessions, serverLimit}
}
