package disk

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
)

// Device is what is known of one disk since the start.
type Device struct {
	Name string `json:"device"`
	// AtDevice is the time that requests were at the device, added up, those that
	// are still there included; by the time that went by, it is the mean depth.
	AtDevice time.Duration `json:"at_device_ns"`
	// InFlight is how many are there now.
	InFlight   int         `json:"in_flight"`
	Operations []Operation `json:"operations"`
}

// Operation is what is known of a disk's reads, writes, flushes, discards, or
// other requests.
type Operation struct {
	Name string `json:"operation"`
	// Requests counts those completed, Time and Times are from their issue to the
	// driver until then.
	Requests uint64          `json:"requests"`
	Bytes    uint64          `json:"bytes"`
	Time     time.Duration   `json:"time_ns"`
	Times    trace.Histogram `json:"times"`
	// Queued counts those of which the wait in the kernel before is known.
	Queued uint64          `json:"queued"`
	Queue  time.Duration   `json:"queue_ns"`
	Queues trace.Histogram `json:"queues"`
}

// Process is what the processes of one command in one network namespace
// submitted to a disk.
type Process struct {
	Netns     uint32 `json:"netns"`
	Name      string `json:"groupname"`
	Device    string `json:"device"`
	Operation string `json:"operation"`
	// Direct is past the page cache.
	Direct   bool   `json:"direct"`
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"`
	// Completed counts those that ended, Time is from their submission until then.
	Completed uint64        `json:"completed"`
	Time      time.Duration `json:"time_ns"`
}

// File is how often the processes of one command submitted I/O in one system
// call for one file.
type File struct {
	Netns uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// Syscall is "kernel" of its own threads, and "page fault" in no call.
	Syscall string `json:"syscall"`
	Direct  bool   `json:"direct"`
	// File is a path, cut off before "…/", or one of metadata, swap, unknown, other.
	File     string `json:"file"`
	Requests uint64 `json:"requests"`
}

// Sync is how the processes of one command waited until their data was safe.
type Sync struct {
	Netns uint32          `json:"netns"`
	Name  string          `json:"groupname"`
	Count uint64          `json:"count"`
	Time  time.Duration   `json:"time_ns"`
	Times trace.Histogram `json:"times"`
}

// Snapshot is everything since the start: what took longest, or is most
// frequent, first.
type Snapshot struct {
	Devices   []Device  `json:"devices"`
	Processes []Process `json:"processes"`
	Files     []File    `json:"files"`
	Syncs     []Sync    `json:"syncs"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// As disk.bpf.c numbers them.
var operations = []string{"read", "write", "flush", "discard", "other"}

// maxRequests is how many requests can be at the disks at once.
const maxRequests = 4096

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (s Snapshot, err error) {
	names, err := t.names()
	if err != nil {
		return s, err
	}
	if s.Devices, err = t.devices(names); err != nil {
		return s, err
	}
	if s.Processes, err = t.processes(names); err != nil {
		return s, err
	}
	if s.Files, err = t.readFiles(); err != nil {
		return s, err
	}
	if s.Syncs, err = t.syncs(); err != nil {
		return s, err
	}
	s.Lost, err = t.Lost()
	return s, err
}

// diskNames are the names of disks, by number.
type diskNames map[uint32]string

func (n diskNames) of(dev uint32) string {
	if name := n[dev]; name != "" {
		return name
	}
	return fmt.Sprintf("%d:%d", dev>>20, dev&0xfffff)
}

func (t *Trace) names() (diskNames, error) {
	names := diskNames{}
	err := trace.Each(t.Maps.Maps[bpfMapNames], func(dev *uint32, name *bpfDiskName) { names[*dev] = trace.Comm(name.Name[:]) })
	if err != nil {
		return nil, fmt.Errorf("read the names of disks: %w", err)
	}
	return names, nil
}

func (t *Trace) devices(names diskNames) ([]Device, error) {
	found := map[uint32]*Device{}
	of := func(dev uint32) *Device {
		if found[dev] == nil {
			found[dev] = &Device{Name: names.of(dev)}
		}
		return found[dev]
	}
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapDevices], func(key *bpfDeviceOp, cpus []bpfDevice) {
		d := of(key.Dev)
		d.Operations = append(d.Operations, sumDevice(key.Op, cpus))
		d.AtDevice += d.Operations[len(d.Operations)-1].Time
	})
	if err != nil {
		return nil, fmt.Errorf("read what disks did: %w", err)
	}
	if err := t.addInFlight(of); err != nil {
		return nil, err
	}
	var list []Device
	for _, d := range found {
		slices.SortFunc(d.Operations, func(a, b Operation) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
		})
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Device) int {
		return cmp.Or(cmp.Compare(b.AtDevice, a.AtDevice), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

// sumDevice adds up what each CPU counted.
func sumDevice(op uint32, cpus []bpfDevice) Operation {
	o := Operation{Name: operations[op], Times: make(trace.Histogram, len(bpfDevice{}.Io)), Queues: make(trace.Histogram, len(bpfDevice{}.Queue))}
	for i := range cpus {
		c := &cpus[i]
		o.Requests += c.Requests
		o.Bytes += c.Bytes
		o.Time += time.Duration(c.IoNs)
		o.Queued += c.Queued
		o.Queue += time.Duration(c.QueueNs)
		for slot := range c.Io {
			o.Times[slot] += c.Io[slot]
			o.Queues[slot] += c.Queue[slot]
		}
	}
	return o
}

// addInFlight adds the requests that are at the devices now. What was there
// before the programs were attached is left out, as its end may have been missed.
func (t *Trace) addInFlight(of func(dev uint32) *Device) error {
	resumed, err := t.resumedAt()
	if err != nil {
		return err
	}
	if err := t.Maps.Variables[bpfVarRequests].Get(t.requests); err != nil {
		return fmt.Errorf("read what is at the disks: %w", err)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	since := map[uint32][]uint64{}
	for i := range t.requests {
		if u := &t.requests[i]; u.Address != 0 && u.At >= resumed {
			dev := u.Owner.Device.Dev
			since[dev] = append(since[dev], u.At)
		}
	}
	for dev, at := range since {
		d := of(dev)
		for _, begin := range youngest(at, kernelInFlight(d.Name)) {
			d.InFlight++
			d.AtDevice += time.Duration(max(0, ts.Nano()-int64(begin)))
		}
	}
	return nil
}

// youngest returns so many of the latest: where there are more than the kernel
// says, the end of the older ones was not seen.
func youngest(at []uint64, n int) []uint64 {
	slices.Sort(at)
	return at[max(0, len(at)-n):]
}

// kernelInFlight is how many requests the kernel itself says are at a disk; as
// many as you like, where it does not say.
func kernelInFlight(name string) int {
	text, err := os.ReadFile("/sys/block/" + strings.ReplaceAll(name, "/", "!") + "/inflight")
	if err != nil {
		return maxRequests
	}
	return parseInFlight(string(text))
}

// parseInFlight reads the numbers of reads and of writes.
func parseInFlight(text string) int {
	var reads, writes int
	if n, err := fmt.Sscan(text, &reads, &writes); n != 2 || err != nil || reads < 0 || writes < 0 {
		return maxRequests
	}
	return reads + writes
}

func (t *Trace) processes(names diskNames) ([]Process, error) {
	var list []Process
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapOwners], func(key *bpfOwner, cpus []bpfOwned) {
		p := Process{Netns: key.Netns, Name: trace.Comm(key.Comm[:]), Device: names.of(key.Device.Dev),
			Operation: operations[key.Device.Op], Direct: key.Direct != 0}
		for _, c := range cpus {
			p.Requests += c.Submitted
			p.Bytes += c.Bytes
			p.Completed += c.Completed
			p.Time += time.Duration(c.Ns)
		}
		list = append(list, p)
	})
	if err != nil {
		return nil, fmt.Errorf("read which processes use disks: %w", err)
	}
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Device, b.Device), strings.Compare(a.Operation, b.Operation), cmp.Compare(a.Netns, b.Netns))
	})
	return list, nil
}

func (t *Trace) syncs() ([]Sync, error) {
	var list []Sync
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapSyncers], func(key *bpfSyncer, cpus []bpfSyncs) {
		y := Sync{Netns: key.Netns, Name: trace.Comm(key.Comm[:]), Times: make(trace.Histogram, len(bpfSyncs{}.Time))}
		for i := range cpus {
			y.Count += cpus[i].Count
			y.Time += time.Duration(cpus[i].Ns)
			for slot, n := range cpus[i].Time {
				y.Times[slot] += n
			}
		}
		list = append(list, y)
	})
	if err != nil {
		return nil, fmt.Errorf("read who waits for syncs: %w", err)
	}
	slices.SortFunc(list, func(a, b Sync) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name), cmp.Compare(a.Netns, b.Netns))
	})
	return list, nil
}
