// Package disk is the tracer of disk I/O: how long requests wait and how long
// the device takes, which process submits them, in which system call, for which
// file, past the page cache or not; and how long processes wait in fsync.
package disk

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "disk",
		Short:       "disk I/O: latency, queue, by process, call and file",
		About:       "how long disk requests wait and take, and which process submits them: in which system call, for which file, O_DIRECT or not; and fsync",
		Long:        long,
		Level:       trace.Light,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"block_rq_issue", "block_rq_complete", "block_bio_queue", "block_bio_complete"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 7, Replies: "1.013 (0.998–1.016)", CPU: "0.986 (0.982–1.002)"},
		Blind:       blind,
		ByHand:      "biolatency-bpfcc -D, biosnoop-bpfcc -Q, iostat -x 1",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches the requests to disks: how long they wait in the kernel (queue), how
long the device takes, and how many it has at once (depth); and who submits
them: which process, in which system call, for which file, past the page cache
(O_DIRECT) or through it. What the kernel writes back from the page cache is
shown under its own thread, with the file. Times are counted by powers of two:
99 % < 4 ms means that it lies between 2 and 4.`

const cost = "1.4 µs of BPF run time an I/O (submission 0.75, issue 0.2, completion 0.45), of which the kernel's measuring is 0.3: " +
	"direct reads of 4 KiB took 38 to 43 µs without it and 38 to 48 µs with it, which the spread does not resolve " +
	"(virtio, Linux 6.18, 2 CPUs, a shared machine); what does no disk I/O pays nothing"

var blind = []string{
	"writes through the page cache are submitted later, by a thread of the kernel's (kworker): it and the file are named, the process that wrote is not",
	"direct I/O by io_uring, or by AIO that submits several at once, is told from other I/O, but its file is not known",
	"time in fsync is read from ext4; of other file systems only the flushes that it causes are seen, and syscalls shows the call itself",
	"a process's I/O is counted as it submits it (bios), a device's as it gets it (requests, after splitting and merging): the two differ for large or neighbouring I/O",
	"devices stacked on others (LVM, RAID, dm-crypt) are counted on each level; below the first, the submitter may be a thread of the kernel's",
	"of a file, the last eight parts of a path are kept, of each 63 bytes, and its first name where it has several; a path is as seen from where Plimsoll runs",
	"the end of a request or an I/O may be missed: the kernel skips a program that would interrupt itself, and the kernel measured on skipped what interrupted process 1 (several in 100 when it was loaded); lost_total{what=\"ends\"} counts it, and its time is missing",
	"what a controller or a host below the driver does (a cache, a network) is time at the device",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// firstIsFile are the system calls whose first argument is the file that they
// are about.
var firstIsFile = []int{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV,
	unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_SYNC_FILE_RANGE, unix.SYS_FALLOCATE, unix.SYS_FTRUNCATE, unix.SYS_READAHEAD, unix.SYS_FADVISE64,
	unix.SYS_GETDENTS64, unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE, unix.SYS_IOCTL, unix.SYS_SYNCFS, unix.SYS_CLOSE,
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	mounts mounts
	files  files
	// atDevice is what was last put of each device's time in flight: a request that
	// ends between two reads of ours must not make the sum smaller.
	atDevice map[string]float64
	requests []bpfUnderWay // room for those at the devices
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs know this architecture's numbers.
func programs() (*ebpf.CollectionSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	var files [8]uint64
	for _, nr := range firstIsFile {
		files[nr/64] |= 1 << (nr % 64)
	}
	for name, value := range map[string]any{
		bpfVarFirstIsFd:       files,
		bpfVarSysSendfile:     uint32(unix.SYS_SENDFILE),
		bpfVarSysIoSubmit:     uint32(unix.SYS_IO_SUBMIT),
		bpfVarSysIoUringEnter: uint32(unix.SYS_IO_URING_ENTER),
		bpfVarO_direct:        uint32(unix.O_DIRECT),
	} {
		if err := trace.SetConstant(spec, name, value); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set, mounts{}, newFiles(), map[string]float64{}, make([]bpfUnderWay, maxRequests)}, nil
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	t.putDevices(out, s.Devices)
	t.putProcesses(out, s)
	trace.PutLost(out, lost, s.Lost)
	return nil
}

func (t *Trace) putDevices(out trace.Out, devices []Device) {
	if !t.Has(ioSum) { // all of them rest on the same programs
		return
	}
	for _, d := range devices {
		for _, o := range d.Operations {
			out.Put(ioSum, o.Time.Seconds(), d.Name, o.Name)
			out.Put(ioCount, float64(o.Requests), d.Name, o.Name)
			o.Times.Put(out, ioBucket, d.Name, o.Name)
			out.Put(bytesTotal, float64(o.Bytes), d.Name, o.Name)
			if o.Queued > 0 {
				out.Put(queueSum, o.Queue.Seconds(), d.Name, o.Name)
				out.Put(queueCount, float64(o.Queued), d.Name, o.Name)
				o.Queues.Put(out, queueBucket, d.Name, o.Name)
			}
		}
		t.atDevice[d.Name] = max(t.atDevice[d.Name], d.AtDevice.Seconds())
		out.Put(inFlight, t.atDevice[d.Name], d.Name)
	}
}

func (t *Trace) putProcesses(out trace.Out, s Snapshot) {
	for _, p := range s.Processes {
		labels := []string{p.Name, p.Device, p.Operation, yesNo(p.Direct)}
		if t.Has(requestsTotal) {
			out.In(p.Netns).Put(requestsTotal, float64(p.Requests), labels...)
			out.In(p.Netns).Put(processBytes, float64(p.Bytes), labels...)
		}
		if t.Has(processSeconds) {
			out.In(p.Netns).Put(processSeconds, p.Time.Seconds(), labels...)
		}
	}
	if t.Has(fileRequests) {
		for _, f := range t.files.series(s.Files) {
			out.In(f.Netns).Put(fileRequests, float64(f.Requests), f.Name, f.Syscall, yesNo(f.Direct), f.File)
		}
	}
	for _, y := range s.Syncs {
		if t.Has(fsyncSum) {
			in := out.In(y.Netns)
			in.Put(fsyncSum, y.Time.Seconds(), y.Name)
			in.Put(fsyncCount, float64(y.Count), y.Name)
			y.Times.Put(in, fsyncBucket, y.Name)
		}
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// resumedAt is when the programs were attached last, by the clock of bpf_ktime_get_ns.
func (t *Trace) resumedAt() (ns uint64, err error) {
	if err := t.Maps.Variables[bpfVarResumedAt].Get(&ns); err != nil {
		return 0, fmt.Errorf("read when the programs were attached: %w", err)
	}
	return ns, nil
}
