package reason

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func TestTowards(t *testing.T) {
	paths := map[uint64]string{7: "/run/x.sock", 8: "@name"}
	unixKey := func(n uint64) (a [16]byte) {
		binary.NativeEndian.PutUint64(a[:], n)
		return a
	}
	deviceKey := func(major, minor uint32) (a [16]byte) {
		binary.NativeEndian.PutUint32(a[:], major<<20|minor)
		return a
	}
	for want, p := range map[string]Peer{
		"":                      {},
		"10.0.0.5:5432":         {Addr: [16]byte{10, 0, 0, 5}, Port: 5432, Kind: peerIPv4},
		"clients@10.0.0.1:9000": {Addr: [16]byte{10, 0, 0, 1}, Port: 9000, Kind: peerIPv4, Client: true},
		"[fd00::5]:5432":        {Addr: [16]byte{0xfd, 15: 5}, Port: 5432, Kind: peerIPv6},
		"127.0.0.1:80":          {Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, Port: 80, Kind: peerIPv6},
		"unix:/run/x.sock":      {Addr: unixKey(7), Kind: peerUnix},
		"clients@unix:@name":    {Addr: unixKey(8), Kind: peerUnix, Client: true},
		"fuse":                  {Kind: peerFileSystem},
		"/dev/pts/258":          {Addr: deviceKey(137, 2), Kind: peerDevice},
		"/dev/null":             {Addr: deviceKey(1, 3), Kind: peerDevice},
		"device 511:7":          {Addr: deviceKey(511, 7), Kind: peerDevice},
		"clients@[::]:443":      {Port: 443, Kind: peerIPv6, Client: true},
		"unix:":                 {Addr: unixKey(9), Kind: peerUnix},
	} {
		if got := p.Towards(func(key uint64) string { return paths[key] }); got != want {
			t.Errorf("%+v: want %q, got %q", p, want, got)
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"/run/x.sock\x00", "/run/x.sock"},
		{"/run/x.sock", "/run/x.sock"},
		{"\x00name", "@name"},
		{"", ""},
		{"a\nb", "a\uFFFDb"},
	} {
		if got := Path([]byte(c.raw), len(c.raw)); got != c.want {
			t.Errorf("%q: want %q, got %q", c.raw, c.want, got)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add([]byte("/run/x.sock\x00"), 12)
	f.Add([]byte("\x00\x00"), -5)
	f.Fuzz(func(t *testing.T, raw []byte, length int) {
		if s := Path(raw, length); !utf8.ValidString(s) || strings.ContainsAny(s, "\n\x00\x1b") {
			t.Errorf("%q", s)
		}
	})
}

func TestReasonsHaveNames(t *testing.T) {
	if len(names) != int(DeviceWrite)+1 || Stopped.String() != "stopped" || Reason(200).String() != "other" {
		t.Error(names)
	}
}

func TestCalls(t *testing.T) {
	of := Calls()
	for nr, want := range map[int]uint8{
		unix.SYS_READ: callRead, unix.SYS_SENDMSG: callWrite, unix.SYS_FUTEX: callLock, unix.SYS_PPOLL: callPoll,
		unix.SYS_FSYNC: callSync, unix.SYS_GETPID: callOther, futexWait: callLock,
	} {
		if of[nr] != want {
			t.Errorf("system call %d: want %d, got %d", nr, want, of[nr])
		}
	}
}

// Each kind of call has a reason.
func TestCallsHaveReasons(t *testing.T) {
	for nr, call := range Calls() {
		if int(call) >= len(reasonOf) {
			t.Errorf("system call %d is of kind %d, which has no reason", nr, call)
		}
	}
}

func TestOfCall(t *testing.T) {
	links := map[uint64]string{3: "socket:[77]", 4: "pipe:[78]", 5: "/var/lib/data", 6: "/dev/pts/0", 8: "/dev/ttyS0", 10: "/dev/rtc0", 7: "anon_inode:[eventpoll]"}
	call := func(nr int, fd int) string {
		return fmt.Sprintf("%d 0x%x 0x7f12 0x1 0x0 0x0 0x0 0x7ffd 0x7f13\n", nr, fd)
	}
	for line, want := range map[string]string{
		"running\n":                   "",
		"":                            "",
		"x 0x1":                       "",
		"-1 0x7ffd 0x7f13\n":          "page_fault",
		"99999 0x1\n":                 "other",
		call(unix.SYS_FUTEX, 0):       "lock",
		call(unix.SYS_READ, 3):        "socket_read",
		call(unix.SYS_WRITE, 3):       "socket_write",
		call(unix.SYS_READ, 4):        "pipe",
		call(unix.SYS_WRITE, 4):       "pipe_write",
		call(unix.SYS_PREAD64, 5):     "disk",
		call(unix.SYS_READ, 6):        "other",
		call(unix.SYS_WRITE, 6):       "device_write",
		call(unix.SYS_WRITE, 8):       "device_write",
		call(unix.SYS_WRITE, 10):      "other",
		call(unix.SYS_READ, 7):        "other",
		call(unix.SYS_READ, 9):        "other",
		call(unix.SYS_FSYNC, 5):       "disk",
		call(unix.SYS_EPOLL_PWAIT, 7): "poll",
		call(unix.SYS_WAIT4, 7):       "child",
		call(unix.SYS_FLOCK, 5):       "file_lock",
		call(unix.SYS_GETPID, 5):      "other",
		call(unix.SYS_STATX, 5):       "other",
		call(unix.SYS_OPENAT, 5):      "other",
		call(unix.SYS_FSTAT, 5):       "other",
	} {
		got := ""
		if r, waits := OfCall(line, func(fd uint64) string { return links[fd] }); waits {
			got = r.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
