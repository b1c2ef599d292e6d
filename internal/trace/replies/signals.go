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
	confirmed = &model.Signal{
		Name: "plimsoll_replies_amqp_total", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "What a broker that speaks AMQP 0-9-1 (RabbitMQ) says of messages that were published to it, by the port that it left: ack, it has taken them; nack, it has not; return, no queue was there for one. Several in one packet count as one.",
		Labels: []string{"port", "says"}, Source: "BPF on the tracepoint net_dev_queue, and the first 12 bytes of what packets carry",
		ByHand: "tshark -Y 'amqp.method.method == 120' -i any -f 'tcp src port 5672'",
	}
	heard = &model.Signal{
		Name: "plimsoll_replies_http_read_total", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "Replies over plain HTTP/1 that processes read from a service which they connected to, by the status that they say.",
		Labels: []string{"groupname", "dst", "status"}, Source: "BPF on the tracepoint sock_recv_length, and the first 12 bytes of what was read",
		ByHand: "strace -f -e trace=recvfrom,read -s 12 -p PID 2>&1 | grep HTTP/1",
	}
	answered = &model.Signal{
		Name: "plimsoll_replies_dns_total", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "Answers of name servers that processes read over UDP, by server and response code: NOERROR, SERVFAIL, REFUSED, NXDOMAIN and others.",
		Labels: []string{"groupname", "dst", "code"}, Source: "BPF on the tracepoints sk_data_ready and sock_recv_length, and the first 4 bytes of the datagram",
		ByHand: "tcpdump -n 'udp src port 53'; dig @ADDRESS NAME (status)",
	}
	answerSum = &model.Signal{
		Name: "plimsoll_replies_dns_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long name servers took for these, from the question's first packet on. Over the seconds that went by, so many questions were unanswered at a time on average, those left out that no answer came for.",
		Labels: []string{"groupname", "dst"}, Source: "BPF on the tracepoints net_dev_queue and sk_data_ready", ByHand: "tcpdump -ttn 'udp port 53'; dig @ADDRESS NAME (Query time)",
	}
	answerCount = &model.Signal{
		Name: "plimsoll_replies_dns_seconds_count", Kind: model.Counter, Unit: "replies", StartsAtZero: true,
		Help:   "Of the answers of name servers those whose question was seen to leave.",
		Labels: []string{"groupname", "dst"}, Source: "BPF on the tracepoints net_dev_queue and sk_data_ready", ByHand: "tcpdump -ttn 'udp port 53'",
	}
	lost = trace.LostSignal("replies", "events", "Replies and answers that the tracer had no room for: more ports, statuses, commands and name servers than it can hold.")
)

var signals = []*model.Signal{statuses, confirmed, heard, answered, answerSum, answerCount, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{statuses: {atHTTP}, confirmed: {atHTTP}, heard: {atRead}, answered: {atCame, atRead}, answerSum: {atHTTP, atCame, atRead}, answerCount: {atHTTP, atCame, atRead}, lost: nil}
