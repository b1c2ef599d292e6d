package reason

import (
	"encoding/binary"
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
	for want, p := range map[string]Peer{
		"":                      {},
		"10.0.0.5:5432":         {Addr: [16]byte{10, 0, 0, 5}, Port: 5432, Kind: peerIPv4},
		"clients@10.0.0.1:9000": {Addr: [16]byte{10, 0, 0, 1}, Port: 9000, Kind: peerIPv4, Client: true},
		"[fd00::5]:5432":        {Addr: [16]byte{0xfd, 15: 5}, Port: 5432, Kind: peerIPv6},
		"127.0.0.1:80":          {Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, Port: 80, Kind: peerIPv6},
		"unix:/run/x.sock":      {Addr: unixKey(7), Kind: peerUnix},
		"clients@unix:@name":    {Addr: unixKey(8), Kind: peerUnix, Client: true},
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
	if len(names) != int(Stopped)+1 || Stopped.String() != "stopped" || Reason(200).String() != "other" {
		t.Error(names)
	}
}

func TestCalls(t *testing.T) {
	of := Calls()
	for nr, want := range map[int]uint8{
		unix.SYS_READ: callRead, unix.SYS_SENDMSG: callWrite, unix.SYS_FUTEX: callLock, unix.SYS_PPOLL: callPoll,
		unix.SYS_FSYNC: callDisk, unix.SYS_GETPID: callOther, futexWait: callLock,
	} {
		if of[nr] != want {
			t.Errorf("system call %d: want %d, got %d", nr, want, of[nr])
		}
	}
}
