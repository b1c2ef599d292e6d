package netlink

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// message builds one netlink message as the kernel sends it.
func message(msgType uint16, seq uint32, payload []byte) []byte {
	b := appendRequest(nil, msgType, seq, payload)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func collect(b []byte, seq uint32) (got []string, done bool, err error) {
	done, err = parse(b, seq, func(p []byte) error {
		got = append(got, string(p))
		return nil
	})
	return got, done, err
}

func TestParse(t *testing.T) {
	ok := message(unix.NLMSG_DONE, 7, []byte{0, 0, 0, 0})
	denied := message(unix.NLMSG_ERROR, 7, []byte{0xff, 0xff, 0xff, 0xff}) // -EPERM
	unmade := message(unix.NLMSG_DONE, 7, []byte{0xfe, 0xff, 0xff, 0xff})  // -ENOENT
	lone := message(20, 7, []byte("lone"))
	for _, tc := range []struct {
		name string
		in   []byte
		want []string
		done bool
		err  error
	}{
		{name: "two messages and more to come", in: append(message(20, 7, []byte("one")), message(20, 7, []byte("two"))...), want: []string{"one", "two"}},
		{name: "the end", in: append(lone, ok...), want: []string{"lone"}, done: true},
		{name: "an answer to an earlier request is skipped", in: append(message(20, 6, []byte("old")), ok...), done: true},
		{name: "the end of an earlier answer is not ours", in: message(unix.NLMSG_DONE, 6, nil)},
		{name: "a refusal is denied", in: denied, done: true, err: fs.ErrPermission},
		{name: "an error in the end mark counts", in: unmade, done: true, err: fs.ErrNotExist},
		{name: "nothing", in: nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, done, err := collect(tc.in, 7)
			if diff := cmp.Diff(tc.want, got); diff != "" || done != tc.done || !errors.Is(err, tc.err) {
				t.Errorf("done %v, error %v, want %v, %v; messages (-want +got):\n%s", done, err, tc.done, tc.err, diff)
			}
		})
	}
}

func TestParseRefusesWhatDoesNotFit(t *testing.T) {
	short := message(20, 7, nil)
	short[0] = 4
	long := message(20, 7, nil)
	long[0] = 200
	for name, in := range map[string][]byte{"half a header": make([]byte, 5), "length under the header's": short, "length over the datagram's": long} {
		if _, _, err := collect(in, 7); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNextAttr(t *testing.T) {
	b := []byte{5, 0, 7, 0, 'x', 0, 0, 0, 4, 0, 9, 0x80, 9, 0, 1}
	typ, value, rest, ok := NextAttr(b)
	if typ != 7 || string(value) != "x" || !ok {
		t.Errorf("first attribute: type %d, value %q, %v", typ, value, ok)
	}
	typ, value, rest, ok = NextAttr(rest)
	if typ != 9 || len(value) != 0 || !ok {
		t.Errorf("second attribute, nested flag set: type %d, value %q, %v", typ, value, ok)
	}
	if _, _, _, ok = NextAttr(rest); ok {
		t.Error("a cut-off attribute was accepted")
	}
}

// TestDump asks the kernel for our own network namespace's listeners, twice on
// one socket and once more after a dump that its caller broke off.
func TestDump(t *testing.T) {
	c, err := Open(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Skip("no sock_diag here:", err)
	}
	defer c.Close()
	req := make([]byte, 24) // struct unix_diag_req: all states, no attributes
	req[0] = unix.AF_UNIX
	req[4], req[5], req[6], req[7] = 0xff, 0xff, 0xff, 0xff
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	count := func() (n int, err error) {
		err = c.Dump(20, req, time.Minute, func([]byte) error { n++; return nil })
		return n, err
	}
	for range 2 {
		if n, err := count(); err != nil || n < 2 {
			t.Fatalf("%d sockets, %v; want 2 at least", n, err)
		}
	}
	enough := errors.New("enough")
	if err := c.Dump(20, req, time.Minute, func([]byte) error { return enough }); err != enough {
		t.Fatalf("broken off: %v, want the caller's own error", err)
	}
	if n, err := count(); err != nil || n < 2 {
		t.Fatalf("after a dump that was broken off: %d sockets, %v", n, err)
	}
	if err := c.Dump(20, req[:4], time.Minute, func([]byte) error { return nil }); !errors.Is(err, unix.EINVAL) {
		t.Errorf("request cut short: %v, want EINVAL", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(append(message(20, 7, []byte("one")), message(unix.NLMSG_DONE, 7, nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parse(b, 7, func(p []byte) error {
			for rest, ok := p, true; ok; {
				_, _, rest, ok = NextAttr(rest)
			}
			return nil
		})
	})
}
