package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/filter"
	"plimsoll/internal/capture/live"
	"plimsoll/internal/capture/pcap"
)

// apart runs a test on a thread in a network namespace of its own: lo, and the veth
// pair va (10.9.0.1) and vb, all up, without IPv6, which would speak by itself.
func apart(t *testing.T, test func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		if err := os.WriteFile("/proc/thread-self/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0); err != nil {
			_ = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) // a kernel without IPv6 has neither
		}
		for _, words := range []string{"link set lo up", "link add va type veth peer name vb", "link set va up", "link set vb up", "addr add 10.9.0.1/24 dev va"} {
			if !ip(t, words) {
				return
			}
		}
		test()
	}()
	<-done
}

// ip calls ip(8) in the thread's namespace.
func ip(t *testing.T, words string) bool {
	out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
	if err != nil {
		t.Errorf("ip %s: %v: %s", words, err, out)
	}
	return err == nil
}

// open opens a ring that ends with the function it returns.
func open(t *testing.T, o live.Options) (*live.Ring, func()) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	r, err := live.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, end
}

// counted is how many packets the kernel says an interface received and sent.
func counted(t *testing.T, name string) (received, sent int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if iface, values, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && iface == name {
			var bytes, x int64
			if _, err := fmt.Sscan(values, &bytes, &received, &x, &x, &x, &x, &x, &x, &bytes, &sent); err != nil {
				t.Fatal(err)
			}
			return received, sent
		}
	}
	t.Fatalf("no interface %s in %s", name, text)
	return 0, 0
}

// until waits for the kernel to have counted what it has to.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("a minute went by without %s", what)
		}
	}
}

// talk opens connections on loopback, each of which sends some bytes there and back.
func talk(t *testing.T, connections int) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range connections {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range [][2]net.Conn{{c, s}, {s, c}} {
			if _, err := x[0].Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(x[1], make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
		s.Close()
	}
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// blast sends datagrams to an address; nobody need be there.
func blast(t *testing.T, to string, n, size int) {
	t.Helper()
	c, err := net.Dial("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range n {
		_, _ = c.Write(make([]byte, size)) // the error is that nobody is there
	}
}

// all reads a ring to its end.
func all(t *testing.T, r *live.Ring) (packets []pcap.Packet) {
	t.Helper()
	for {
		var k pcap.Packet
		switch err := r.Next(&k); {
		case err == nil:
			k.Data = append([]byte(nil), k.Data...)
			packets = append(packets, k)
		case errors.Is(err, io.EOF):
			return packets
		case !errors.Is(err, pcap.Quiet):
			t.Fatal(err)
		}
	}
}

// segments counts the TCP segments among packets that fit.
func segments(packets []pcap.Packet, fits func(*decode.Segment) bool) (n int) {
	var d decode.Decoder
	var s decode.Segment
	for i := range packets {
		if d.Decode(&packets[i], &s) == decode.TCP && fits(&s) {
			n++
		}
	}
	return n
}

// Each packet on loopback is there once, though the kernel shows it twice; what
// was captured is what the interface counted.
func TestLoopbackIsCountedOnce(t *testing.T) {
	apart(t, func() {
		r, end := open(t, live.Options{Interface: "lo", Snap: filter.Whole})
		defer r.Close()
		one, endOne := open(t, live.Options{Interface: "lo", Filter: "tcp and not port 1", Snap: filter.Headers})
		defer one.Close()
		port := talk(t, 20)
		until(t, "as many packets as lo received", func() bool {
			received, _ := counted(t, "lo")
			return received > 0 && r.Counts().Passed == received
		})
		end()
		endOne()
		received, _ := counted(t, "lo")
		packets := all(t, r)
		if int64(len(packets)) != received {
			t.Errorf("%d packets, lo received %d", len(packets), received)
		}
		toPort := func(s *decode.Segment) bool {
			return s.DstPort == port && s.Flags&(decode.SYN|decode.ACK) == decode.SYN
		}
		if n := segments(packets, toPort); n != 20 {
			t.Errorf("%d SYNs, there were 20 connections", n)
		}
		cut := all(t, one)
		if len(cut) != len(packets) {
			t.Errorf("%d packets without payload, %d with it", len(cut), len(packets))
		}
		data := func(s *decode.Segment) bool { return s.Len == 1000 && len(s.Payload) == 0 }
		if n := segments(cut, data); n != 40 {
			t.Errorf("%d segments of 1000 bytes that were cut to their headers, want 40", n)
		}
	})
}

// any is all interfaces, both directions, and behind its cooked header the same packets.
func TestAnyIsAllInterfaces(t *testing.T) {
	apart(t, func() {
		r, end := open(t, live.Options{Interface: live.Any, Snap: filter.Whole})
		defer r.Close()
		ip(t, "neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev va")
		talk(t, 3)
		blast(t, "10.9.0.7:9", 50, 100) // nobody is at the other end: seen on va as it leaves, and on vb as it comes
		sum := func() int64 {
			lo, _ := counted(t, "lo")
			_, va := counted(t, "va")
			vb, _ := counted(t, "vb")
			return lo + va + vb
		}
		until(t, "as many packets as the interfaces counted", func() bool { return r.Counts().Passed == sum() && sum() > 100 })
		end()
		packets := all(t, r)
		if int64(len(packets)) != sum() {
			t.Errorf("%d packets, the interfaces counted %d", len(packets), sum())
		}
		syn := func(s *decode.Segment) bool { return s.Flags&(decode.SYN|decode.ACK) == decode.SYN }
		if n := segments(packets, syn); n != 3 {
			t.Errorf("%d SYNs behind cooked headers, want 3", n)
		}
		for _, k := range packets {
			if k.Link != pcap.LinkSLL2 || k.Wire != len(k.Data) {
				t.Fatalf("%+v", k)
			}
		}
	})
}

// What finds no room is counted, and nothing else is lost.
func TestDropsAreCounted(t *testing.T) {
	apart(t, func() {
		r, end := open(t, live.Options{Interface: "va", Filter: "udp", Snap: filter.Whole})
		defer r.Close()
		ip(t, "neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev va")
		const datagrams, size = 30_000, 1400
		blast(t, "10.9.0.7:9", datagrams, size)
		until(t, "all datagrams", func() bool { c := r.Counts(); return c.Passed+c.Dropped == datagrams })
		c := r.Counts()
		if c.Dropped == 0 || c.Passed == 0 {
			t.Errorf("of %d MB, in a ring of 32 MiB that nobody reads: %+v", datagrams*size>>20, c)
		}
		end()
		read, err := capture.Read(context.Background(), []capture.Source{{Name: "va", Packets: r}}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if read.Packets != c.Passed || read.Files[0].Dropped != c.Dropped || !strings.Contains(strings.Join(read.Notes, " "), "the capture itself lost") {
			t.Errorf("%+v read as %d packets, %d dropped, notes %q", c, read.Packets, read.Files[0].Dropped, read.Notes)
		}
	})
}

// inject puts a frame onto an interface as it is.
func inject(t *testing.T, name string, frame []byte) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: i.Index, Halen: 6}); err != nil {
		t.Fatal(err)
	}
}

// A tag that the kernel takes out of a packet when it comes is in it again.
func TestVLANTagsAreThere(t *testing.T) {
	frame := append(make([]byte, 12), 0x81, 0, 0, 7, 8, 0)
	frame = append(frame, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 7, 0, 9, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4)
	apart(t, func() {
		for _, name := range []string{"vb", live.Any} {
			r, end := open(t, live.Options{Interface: name, Filter: "udp port 9", Snap: filter.Whole})
			inject(t, "va", frame)
			until(t, "the datagram", func() bool { return r.Counts().Passed > 0 })
			end()
			packets := all(t, r)
			k := packets[len(packets)-1]
			var d decode.Decoder
			d.Decode(&k, new(decode.Segment))
			at := map[pcap.Link][2]int{pcap.LinkEthernet: {12, 14}, pcap.LinkSLL2: {0, 20}}[k.Link]
			tag := append(append([]byte(nil), k.Data[at[0]:at[0]+2]...), k.Data[at[1]:at[1]+4]...)
			if string(tag) != "\x81\x00\x00\x07\x08\x00" || d.Counts.UDP != 1 || k.Wire != len(k.Data) {
				t.Errorf("on %s: tag % x of % x, %+v", name, tag, k.Data, d.Counts)
			}
			r.Close()
		}
	})
}

// An interface that goes away ends the capture; what came before stands.
func TestInterfaceGoesAway(t *testing.T) {
	apart(t, func() {
		r, end := open(t, live.Options{Interface: "vb", Filter: "udp", Snap: filter.Whole})
		defer end()
		ip(t, "neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev va")
		blast(t, "10.9.0.7:9", 5, 100)
		until(t, "the datagrams", func() bool { return r.Counts().Passed == 5 })
		ip(t, "link delete va")
		read, err := capture.Read(context.Background(), []capture.Source{{Name: "vb", Packets: r}}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if read.Packets != 5 || !read.Partial || !strings.Contains(strings.Join(read.Notes, " "), "vb: the interface went down or away") {
			t.Errorf("%d packets, notes %q", read.Packets, read.Notes)
		}
	})
}

// Packets of several captures come in the order of time, and one that hears
// nothing does not hold up the others.
func TestASilentCaptureHoldsNothingUp(t *testing.T) {
	apart(t, func() {
		ctx, end := context.WithCancel(context.Background())
		defer end()
		var sources []capture.Source
		for _, name := range []string{"vb", "lo", "va"} {
			r, err := live.Open(ctx, live.Options{Interface: name, Filter: "ip", Snap: filter.Whole})
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, capture.Source{Name: name, Packets: r})
		}
		talk(t, 5)
		received, _ := counted(t, "lo")
		last, seen := int64(0), int64(0)
		read, err := capture.Read(context.Background(), sources, capture.Options{Frame: func(f *capture.Frame) error {
			if f.Packet.Time < last {
				t.Errorf("frame %d is %d ns earlier than the one before", f.Number, last-f.Packet.Time)
			}
			last = f.Packet.Time
			if seen++; seen == received { // they are given before anything ends
				end()
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if read.Packets != received || read.Files[1].Packets != received {
			t.Errorf("%d packets, lo received %d: %+v", read.Packets, received, read.Files)
		}
	})
}

func TestRefusals(t *testing.T) {
	apart(t, func() {
		if _, err := live.Open(context.Background(), live.Options{Interface: "eth7"}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `no interface "eth7"; there are`) {
			t.Errorf("an interface that is not there: %v", err)
		}
		var wrong *filter.Error
		if _, err := live.Open(context.Background(), live.Options{Interface: "lo", Filter: "prot 80"}); !errors.As(err, &wrong) {
			t.Errorf("a filter that is none: %v", err)
		}
	})
}
