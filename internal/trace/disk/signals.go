package disk

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atIssue     = "rq_issue"
	atRequeue   = "rq_requeue"
	atComplete  = "rq_complete"
	atSubmit    = "bio_queue"
	atEnd       = "bio_complete"
	atEndOfAll  = "rq_bios"
	atSyncEnter = "sync_enter"
	atSyncExit  = "sync_exit"
)

const (
	fromRequests = "BPF on the tracepoints block_rq_issue, block_rq_requeue and block_rq_complete"
	fromBios     = "BPF on the tracepoints block_bio_queue, block_rq_complete and block_bio_complete"
	fromSyncs    = "BPF on the tracepoints ext4_sync_file_enter and ext4_sync_file_exit"
)

var (
	ofDevice  = []string{"device", "operation"}
	ofProcess = []string{"groupname", "device", "operation", "direct"}
)

// Of devices.
var (
	ioSum = &model.Signal{
		Name: "plimsoll_disk_io_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long requests were at the device: from their issue to the driver to their completion.",
		Labels: ofDevice, Source: fromRequests, ByHand: "biolatency-bpfcc -D 1 1",
	}
	ioCount = &model.Signal{
		Name: "plimsoll_disk_io_seconds_count", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "Requests that the device completed.",
		Labels: ofDevice, Source: fromRequests, ByHand: "iostat -x 1",
	}
	ioBucket = &model.Signal{
		Name: "plimsoll_disk_io_seconds_bucket", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "Requests that were at the device for less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: append(ofDevice[:2:2], "le"), Source: fromRequests, ByHand: "biolatency-bpfcc -D -F 1 1",
	}
	queueSum = &model.Signal{
		Name: "plimsoll_disk_queue_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long requests waited in the kernel, from their making until they were issued to the driver. Absent where the kernel keeps no account of a device.",
		Labels: ofDevice, Source: fromRequests + " (request.start_time_ns)", ByHand: "biosnoop-bpfcc -Q",
	}
	queueCount = &model.Signal{
		Name: "plimsoll_disk_queue_seconds_count", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "Requests completed whose wait in the kernel is known.",
		Labels: ofDevice, Source: fromRequests + " (request.start_time_ns)", ByHand: "iostat -x 1",
	}
	queueBucket = &model.Signal{
		Name: "plimsoll_disk_queue_seconds_bucket", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "Requests that waited in the kernel for less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: append(ofDevice[:2:2], "le"), Source: fromRequests + " (request.start_time_ns)", ByHand: "biosnoop-bpfcc -Q",
	}
	bytesTotal = &model.Signal{
		Name: "plimsoll_disk_bytes_total", Kind: model.Counter, Unit: "bytes", StartsAtZero: true,
		Help:   "Bytes of the requests that the device completed.",
		Labels: ofDevice, Source: fromRequests, ByHand: "iostat -x 1",
	}
	inFlight = &model.Signal{
		Name: "plimsoll_disk_in_flight_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "Time that requests were at the device, those that are still there included: its rate is the mean queue depth.",
		Labels: []string{"device"}, Source: fromRequests, ByHand: "iostat -x 1",
	}
)

// Of processes.
var (
	requestsTotal = &model.Signal{
		Name: "plimsoll_disk_requests_total", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "I/O that a process submitted to a device, before the kernel splits or merges it; direct is yes past the page cache (O_DIRECT), else no. What the kernel writes back is its own thread's.",
		Labels: ofProcess, Source: fromBios, ByHand: "biosnoop-bpfcc",
	}
	processBytes = &model.Signal{
		Name: "plimsoll_disk_process_bytes_total", Kind: model.Counter, Unit: "bytes", StartsAtZero: true,
		Help:   "Bytes of the I/O that a process submitted to a device.",
		Labels: ofProcess, Source: fromBios, ByHand: "biotop-bpfcc",
	}
	processSeconds = &model.Signal{
		Name: "plimsoll_disk_process_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long the I/O of a process took from its submission to its end: its rate is how much of it was under way at once.",
		Labels: ofProcess, Source: fromBios, ByHand: "biosnoop-bpfcc -Q",
	}
	fileRequests = &model.Signal{
		Name: "plimsoll_disk_file_requests_total", Kind: model.Counter, Unit: "requests", StartsAtZero: true,
		Help:   "I/O that a process submitted, by the system call it was in (kernel, page fault where it was in none) and the file; metadata, swap, unknown and other (beyond the bound) stand in its place.",
		Labels: []string{"groupname", "syscall", "direct", "file"}, Source: fromBios, ByHand: "filetop-bpfcc",
	}
	fsyncSum = &model.Signal{
		Name: "plimsoll_disk_fsync_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long processes waited in fsync, fdatasync and synchronous writes until ext4 had their data on the disk.",
		Labels: []string{"groupname"}, Source: fromSyncs, ByHand: "strace -c -w -f -e trace=fsync,fdatasync -p PID",
	}
	fsyncCount = &model.Signal{
		Name: "plimsoll_disk_fsync_seconds_count", Kind: model.Counter, Unit: "syncs", StartsAtZero: true,
		Help:   "How often processes waited until ext4 had their data on the disk.",
		Labels: []string{"groupname"}, Source: fromSyncs, ByHand: "strace -c -f -e trace=fsync,fdatasync -p PID",
	}
	fsyncBucket = &model.Signal{
		Name: "plimsoll_disk_fsync_seconds_bucket", Kind: model.Counter, Unit: "syncs", StartsAtZero: true,
		Help:   "Syncs on ext4 that took less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "le"}, Source: fromSyncs, ByHand: "ext4dist-bpfcc",
	}
	lost = trace.LostSignal("disk", "events", "Events of the disk tracer that found no room: more devices, requests, processes, bios, files or syncs than it can hold; and ends, requests and I/O whose completion was not seen.")
)

var signals = []*model.Signal{
	ioSum, ioCount, ioBucket, queueSum, queueCount, queueBucket, bytesTotal, inFlight,
	requestsTotal, processBytes, processSeconds, fileRequests, fsyncSum, fsyncCount, fsyncBucket, lost,
}

var (
	onRequests = []string{atIssue, atRequeue, atComplete}
	onSubmits  = []string{atSubmit}
	onBios     = []string{atSubmit, atEnd, atEndOfAll}
	onSyncs    = []string{atSyncEnter, atSyncExit}
)

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	ioSum: onRequests, ioCount: onRequests, ioBucket: onRequests,
	queueSum: onRequests, queueCount: onRequests, queueBucket: onRequests,
	bytesTotal: onRequests, inFlight: onRequests,
	requestsTotal: onSubmits, processBytes: onSubmits, fileRequests: onSubmits,
	processSeconds: onBios,
	fsyncSum:       onSyncs, fsyncCount: onSyncs, fsyncBucket: onSyncs,
	lost: nil,
}
