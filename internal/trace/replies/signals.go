package replies

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// The programs.
const (
	atHTTP = "replies_http"
	atCame = "replies_came"
	atRead = "replies_read"
)

var (
	statuses = &model.Signal{
		Name: "plimsoll_replies_http_total", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "Replies over plain HTTP/1, by the port that they left and the status that they say.",
		Labels: []string{"port", "status"}, Source: "BPF on the tracepoint net_dev_queue, and the first 12 bytes of what packets carry",
		ByHand: "tail -F ACCESS_LOG; tcpdump -A 'tcp src port PORT' | grep -a '^HTTP/1'",
	}
	answered = &model.Signal{
		Name: "plimsoll_replies_dns_total", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "Answers of name servers that processes read over UDP, by server and response code: NOERROR, SERVFAIL, REFUSED, NXDOMAIN and others.",
		Labels: []string{"groupname", "dst", "code"}, Source: "BPF on the tracepoints sk_data_ready and sock_recv_length, and the first 4 bytes of the datagram",
		ByHand: "tcpdump -n 'udp src port 53'; dig @ADDRESS NAME (status)",
	}
	lost = trace.LostSignal("replies", "events", "Replies and answers that the tracer had no room for: more ports, statuses, commands and name servers than it can hold.")
)

var signals = []*model.Signal{statuses, answered, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{statuses: {atHTTP}, answered: {atCame, atRead}, lost: nil}
