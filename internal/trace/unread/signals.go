package unread

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const atRead = "unread_read"

const (
	source = "BPF on the tracepoint tcp_rcv_space_adjust"
	byHand = "ss -tn (Recv-Q, several times)"
	theEnd = " role is server, with the port of the listener, or client, with dst, where it connects to."
)

var (
	sum = &model.Signal{
		Name: "plimsoll_unread_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long bytes that had come lay unread in their socket, at a server requests for a process to serve them, at a client replies." + theEnd,
		Labels: []string{"groupname", "role", "port", "dst"}, Source: source, ByHand: byHand,
	}
	count = &model.Signal{
		Name: "plimsoll_unread_seconds_count", Kind: model.Counter, Unit: "reads", StartsAtZero: true,
		Help:   "How often a process read bytes that had come since it read last." + theEnd,
		Labels: []string{"groupname", "role", "port", "dst"}, Source: source, ByHand: byHand,
	}
	bucket = &model.Signal{
		Name: "plimsoll_unread_seconds_bucket", Kind: model.Counter, Unit: "reads", StartsAtZero: true,
		Help:   "Reads of bytes that had lain unread for less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "role", "port", "dst", "le"}, Source: source, ByHand: byHand,
	}
	firstSum = &model.Signal{
		Name: "plimsoll_unread_first_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "The part of the time unread that the first bytes of accepted connections lay there: in the accept queue, and until the first read.",
		Labels: []string{"groupname", "port"}, Source: source, ByHand: "ss -ltn (Recv-Q, several times)",
	}
	firstCount = &model.Signal{
		Name: "plimsoll_unread_first_seconds_count", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Accepted connections whose first bytes were read.",
		Labels: []string{"groupname", "port"}, Source: source, ByHand: "ss -ltn (Recv-Q, several times)",
	}
	firstBucket = &model.Signal{
		Name: "plimsoll_unread_first_seconds_bucket", Kind: model.Counter, Unit: "connections", StartsAtZero: true,
		Help:   "Accepted connections whose first bytes had lain unread for less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "port", "le"}, Source: source, ByHand: "ss -ltn (Recv-Q, several times)",
	}
	lost = trace.LostSignal("unread", "events", "Reads that the unread tracer had no room for: more endpoints or sockets than it can hold.")
)

var signals = []*model.Signal{sum, count, bucket, firstSum, firstCount, firstBucket, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	sum: {atRead}, count: {atRead}, bucket: {atRead},
	firstSum: {atRead}, firstCount: {atRead}, firstBucket: {atRead},
	lost: nil,
}
