package program

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOfPoll(t *testing.T) {
	var b []byte
	for _, p := range []unix.PollFd{{Fd: 3, Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: 7, Events: unix.POLLIN | unix.POLLOUT}} {
		b = binary.NativeEndian.AppendUint32(b, uint32(p.Fd))
		b = binary.NativeEndian.AppendUint16(b, uint16(p.Events))
		b = binary.NativeEndian.AppendUint16(b, 0)
	}
	if got, want := ofPoll(b), []want{{3, false}, {7, true}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOfSelect(t *testing.T) {
	if got, want := ofSelect([]byte{0b1001, 0b10}, 10), []int{0, 3, 9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := ofSelect([]byte{0xff}, 3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("%v: more than it was asked for", got)
	}
}

// As of an epoll of redis-server on Linux 6.18.
const epollInfo = "pos:\t0\nflags:\t02\nmnt_id:\t16\nino:\t1061\n" +
	"tfd:        8 events: 80000019 data:                8  pos:0 ino:1d1b sdev:9\n" +
	"tfd:       11 events:        4 data:                b  pos:0 ino:1d1c sdev:9\n" +
	"tfd:       12 events: 80002005 data:                c  pos:0 ino:1d1d sdev:9\n"

func TestOfEpoll(t *testing.T) {
	if got, want := ofEpoll(epollInfo), []want{{8, false}, {11, true}, {12, false}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzOfEpoll(f *testing.F) {
	f.Add(epollInfo)
	f.Add("tfd: -1 events: zz\n")
	f.Fuzz(func(t *testing.T, info string) {
		list := ofEpoll(info)
		if len(list) > maxPolled || slices.ContainsFunc(list, func(w want) bool { return w.fd < 0 }) {
			t.Errorf("%v", list)
		}
	})
}

// As of Linux 6.18: listeners stand before the connections.
func TestListeners(t *testing.T) {
	ports := map[uint16]bool{}
	listeners("  sl  local_address rem_address   st tx_queue rx_queue\n"+
		"   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0\n"+
		"   1: 0100007F:C383 0100007F:1538 01 00000000:00000000 00:00000000 00000000 0\n   2: 01", ports)
	if len(ports) != 1 || !ports[5432] {
		t.Errorf("%v", ports)
	}
}

func TestIsTerminal(t *testing.T) {
	for link, want := range map[string]bool{"/dev/pts/3": true, "/dev/tty": true, "/dev/tty1": true, "/dev/ttyS0": false, "/dev/ttyUSB0": false, "/dev/null": false} {
		if got := isTerminal(link); got != want {
			t.Errorf("%s: %v", link, got)
		}
	}
}

// Whoever connects has a port that the kernel gave; a pair without names is of relatives.
func TestBetween(t *testing.T) {
	in := func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Addr: [4]byte{10, 0, 0, 1}, Port: port} }
	for _, tc := range []struct {
		own, peer unix.Sockaddr
		accepted  bool
		want      far
	}{
		{in(40000), in(5432), false, far{"peer", "10.0.0.1:5432"}},
		{in(80), in(40000), true, far{"clients", "clients@10.0.0.1:80"}},
		{in(40000), in(40001), false, far{"peer", "10.0.0.1:40001"}},
		{&unix.SockaddrUnix{Name: "@"}, &unix.SockaddrUnix{Name: "@"}, false, far{what: "inside"}},
		{&unix.SockaddrUnix{Name: "@"}, &unix.SockaddrUnix{Name: "/run/x.sock"}, false, far{"peer", "unix:/run/x.sock"}},
		{&unix.SockaddrUnix{Name: "/run/x.sock"}, &unix.SockaddrUnix{Name: "@"}, false, far{"clients", "clients@unix:/run/x.sock"}},
		{&unix.SockaddrNetlink{}, &unix.SockaddrNetlink{}, false, far{what: "unconnected"}},
	} {
		if got := between(tc.own, tc.peer, tc.accepted); got != tc.want {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}
