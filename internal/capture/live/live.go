// Package live captures packets from an interface of Linux: a ring that the
// kernel fills (packet(7), TPACKET_V3), behind a filter that the kernel runs. What
// it takes of memory is fixed; what finds no room in it is counted.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/capture/filter"
	"plimsoll/internal/capture/pcap"
)

// Any is the name for all interfaces at once.
const Any = "any"

// Options say what to capture.
type Options struct {
	Interface string // a name, or Any
	Filter    string // see capture/filter; "" takes everything
	Snap      int    // how much is kept of each packet: filter.Whole, filter.Headers, or bytes
}

// The ring: so many blocks of such a size, 32 MiB in all. A block that is not full is handed
// over after retire, or twice that.
const (
	blockSize = 1 << 20
	blocks    = 32
	retire    = 10 * time.Millisecond
)

// Ring is an open capture. Its owner calls Next and Close from one goroutine at a
// time; Counts is safe for others, too.
type Ring struct {
	fd, wake int
	memory   []byte
	link     pcap.Link
	release  func() bool // of the context
	stopped  atomic.Bool
	down     error // what the interface ended with
	rest     time.Time

	block int   // that is read, or is to be read next
	open  bool  // it is ours
	left  int   // packets in it that were not read yet
	at    int   // of the next, within the ring
	taken int64 // packets that Next has returned
	last  int64 // time of the last of them
	told  time.Time

	counting sync.Mutex
	counts   Counts
}

// Counts is what the kernel counted.
type Counts struct {
	Passed  int64 // packets that the filter took and that had room
	Dropped int64 // packets that the filter took, and for which there was no room
}

// Open opens a capture on an interface of the network namespace of the calling
// thread; it may be read by others. It ends when ctx does. A lack of rights
// matches fs.ErrPermission, an interface that is not there fs.ErrNotExist, an
// expression that is not understood is a *filter.Error.
func Open(ctx context.Context, o Options) (*Ring, error) {
	if _, err := filter.Compile(o.Filter, filter.Options{Snap: o.Snap}); err != nil {
		return nil, err
	}
	r := &Ring{fd: -1, wake: -1, link: pcap.LinkSLL2}
	if err := r.begin(ctx, o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Ring) begin(ctx context.Context, o Options) error {
	index, kind, loops, err := interfaces(o.Interface)
	if err != nil {
		return err
	}
	link, socket := filter.Cooked, unix.SOCK_DGRAM
	if kind == unix.ARPHRD_ETHER || kind == unix.ARPHRD_LOOPBACK {
		link, socket, r.link = filter.Ethernet, unix.SOCK_RAW, pcap.LinkEthernet
	}
	program, err := filter.Compile(o.Filter, filter.Options{Link: link, Snap: o.Snap, Loopback: loops})
	if err != nil {
		return err
	}
	// Protocol 0: nothing comes until the filter stands, and bind says what.
	if r.fd, err = unix.Socket(unix.AF_PACKET, socket|unix.SOCK_CLOEXEC, 0); errors.Is(err, unix.EPERM) {
		return fmt.Errorf("capture on %s: that needs CAP_NET_RAW: run it as root: %w", o.Interface, fs.ErrPermission)
	} else if err != nil {
		return fmt.Errorf("capture on %s: open a packet socket: %w", o.Interface, err)
	}
	if err := r.ring(program); err != nil {
		return fmt.Errorf("capture on %s: %w", o.Interface, err)
	}
	if err := unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fmt.Errorf("capture on %s: %w", o.Interface, err)
	}
	if r.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("capture on %s: eventfd: %w", o.Interface, err)
	}
	wake := r.wake
	r.release = context.AfterFunc(ctx, func() {
		r.stopped.Store(true)
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	return nil
}

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }

// interfaces finds an interface's number and kind (ARPHRD_…; 0 for any), and the
// numbers of those among what is captured that show each packet twice.
func interfaces(name string) (index int, kind uint16, loops []int, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, 0, nil, fmt.Errorf("list the interfaces: %w", err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
		if name != Any && name != i.Name {
			continue
		}
		if i.Flags&net.FlagLoopback != 0 {
			loops = append(loops, i.Index)
		}
		if name == i.Name {
			if kind, err = hardware(name); err != nil {
				return 0, 0, nil, err
			}
			return i.Index, kind, loops, nil
		}
	}
	if name != Any {
		return 0, 0, nil, fmt.Errorf("there is no interface %q; there are %s, and any: %w", name, strings.Join(names, ", "), fs.ErrNotExist)
	}
	return 0, 0, loops, nil
}

// hardware is the kind of an interface's hardware, ARPHRD_….
func hardware(name string) (uint16, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("look at interface %s: %w", name, err)
	}
	defer unix.Close(fd)
	q, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, q)
	}
	if err != nil {
		return 0, fmt.Errorf("look at interface %s: %w", name, err)
	}
	return q.Uint16(), nil
}

// ring attaches the filter and maps the ring.
func (r *Ring) ring(program []bpf.RawInstruction) error {
	if err := attach(r.fd, program); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("the kernel has no TPACKET_V3 (Linux 3.2): %w", err)
	}
	request := unix.TpacketReq3{Block_size: blockSize, Block_nr: blocks, Frame_size: 2048, Frame_nr: blockSize / 2048 * blocks,
		Retire_blk_tov: uint32(retire / time.Millisecond)}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("make a ring of %d MiB in the kernel: %w", blockSize*blocks>>20, err)
	}
	memory, err := unix.Mmap(r.fd, 0, blockSize*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the ring: %w", err)
	}
	r.memory = memory
	return nil
}

func attach(fd int, raw []bpf.RawInstruction) error {
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return fmt.Errorf("attach a filter of %d instructions: %w", len(raw), err)
	}
	return nil
}

// Close ends the capture and frees what it holds. Packets that Next returned are
// not good any more.
func (r *Ring) Close() {
	if r.release != nil {
		r.release()
	}
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
	}
	for _, fd := range []int{r.fd, r.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	r.fd, r.wake, r.memory, r.left, r.open = -1, -1, nil, 0, false
}

// Counts reads what the kernel has counted so far.
func (r *Ring) Counts() Counts {
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.fd < 0 {
		return r.counts
	}
	if s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil { // it begins anew with each reading
		r.counts.Passed += int64(s.Packets) - int64(s.Drops)
		r.counts.Dropped += int64(s.Drops)
	}
	return r.counts
}

// Dropped is how many packets found no room in the ring.
func (r *Ring) Dropped() int64 { return r.Counts().Dropped }

const (
	tick    = 50 * time.Millisecond  // how often a reader is told that there is nothing
	hold    = 100 * time.Millisecond // within which a packet is handed over, timers that are late included
	atMost  = 2 * time.Second        // the wait for the last packets, once nothing new is taken
	pollFor = int(tick / time.Millisecond)
)

// Next reads the next packet into k, whose bytes are good until the next call.
// The error is pcap.Quiet, at least every 50 ms: k.Time is then a moment before
// which nothing comes any more; io.EOF when all was read that was captured before
// the end; a *pcap.Damage where the interface went away.
func (r *Ring) Next(k *pcap.Packet) error {
	for {
		if r.left > 0 {
			r.packet(k)
			return nil
		}
		if r.open {
			r.giveBack()
		}
		ready := r.ready()
		if now := time.Now(); now.Sub(r.told) >= tick {
			r.told = now
			if k.Time = r.last; !ready {
				k.Time = max(k.Time, now.Add(-hold).UnixNano())
			}
			return pcap.Quiet
		}
		if ready {
			continue
		}
		if ended, err := r.ended(); ended {
			return err
		}
		if err := r.wait(); err != nil {
			return err
		}
	}
}

// ended says whether all was read that was captured before the end, and with which error.
func (r *Ring) ended() (bool, error) {
	if r.fd < 0 {
		return true, io.EOF
	}
	if !r.stopped.Load() {
		return false, nil
	}
	if r.rest.IsZero() { // from now on nothing new is taken
		none, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
		if err == nil {
			err = attach(r.fd, none)
		}
		if err != nil {
			return true, err
		}
		r.rest = time.Now().Add(atMost)
	}
	if r.taken < r.Counts().Passed && time.Now().Before(r.rest) {
		return false, nil
	}
	if r.down != nil {
		return true, &pcap.Damage{Offset: pcap.NoOffset, What: "the interface went down or away", Err: r.down}
	}
	return true, io.EOF
}
