package kernel

import (
	"bytes"
	"fmt"
	"strconv"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const (
	nfqueueFile   = "proc/net/netfilter/nfnetlink_queue"
	nfqueueByHand = "cat /proc/net/netfilter/nfnetlink_queue  # queue, reader, waiting, ., ., dropped, unread, in all"
)

var (
	nfqueueWaiting = nfqueueSignal("waiting", model.Gauge, "Packets that wait in the queue until a program has said what is to become of them.")
	nfqueuePackets = nfqueueSignal("packets_total", model.Counter, "Packets that the packet filter gave into the queue (modulo 2^32).")
	nfqueueDropped = nfqueueSignal("dropped_total", model.Counter, "Packets thrown away because the queue was full, or its program's socket.")
)

// nfqueueColumns are the columns of the file, by nfnetlink_queue.c's seq_show: queue, the reader's netlink port, waiting, copy mode, copy
// range, dropped for a full queue, dropped for a full socket, packets in all, 1.
const nfqueueColumns = 9

func nfqueueSignal(name string, kind model.Kind, help string) *model.Signal {
	return &model.Signal{Name: "plimsoll_nfqueue_" + name, Kind: kind, Unit: "packets", Help: help,
		Labels: []string{"queue"}, Source: "/" + nfqueueFile, ByHand: nfqueueByHand}
}

// NFQueue reads the queues in which the packet filter keeps packets for a program (NFQUEUE): a network namespace's own.
func NFQueue() probe.Probe {
	p := probe.Probe{Name: "nfqueue", Cost: costNFQueue,
		Blind: []string{"what a packet waits for in the queue of nfnetlink's socket is in that of the filter, too", "queues that no program reads: the filter lets their packets through (bypass) or throws them away"}}
	return fromFiles(p, func() []source {
		return []source{{path: nfqueueFile, hint: "no packet filter hands packets to programs here (module nfnetlink_queue is not loaded)",
			signals: []*model.Signal{nfqueueWaiting, nfqueuePackets, nfqueueDropped}, put: putNFQueue}}
	})
}

func putNFQueue(b []byte, out *probe.Out) error {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < nfqueueColumns {
			return fmt.Errorf("want %d columns, got %q", nfqueueColumns, line)
		}
		var n [nfqueueColumns]uint64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseUint(string(f[i]), 10, 32); err != nil {
				return fmt.Errorf("column %d of %q: %w", i+1, line, err)
			}
		}
		queue := strconv.FormatUint(n[0], 10)
		out.Put(nfqueueWaiting, float64(n[2]), queue)
		out.Put(nfqueuePackets, float64(n[7]), queue)
		out.Put(nfqueueDropped, float64(n[5]+n[6]), queue)
	}
	return nil
}
