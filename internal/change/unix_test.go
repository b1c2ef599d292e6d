package change

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
)

func TestTheQueueOfAUnixSocket(t *testing.T) {
	t.Parallel()
	s := livetest.Start(t, map[string]string{
		"fpm.conf": "[global]\nerror_log = DIR/fpm.log\n[www]\nuser = root\ngroup = root\nlisten = DIR/php.sock\nlisten.backlog = 5\npm = static\npm.max_children = 1\n",
	}, livetest.PHPFPM(t), "-R", "-F", "--fpm-config", "DIR/fpm.conf")
	addr := "unix:" + s.Dir + "/php.sock"
	s.Until("PHP-FPM listens", func() bool {
		c, err := s.Dial("unix", s.Dir+"/php.sock")
		if err == nil {
			c.Close()
		}
		return err == nil && len((&service{Kind: PHPFPM, process: process{PID: s.PID}}).look()) > 0
	})
	before := snap(t, s.Host, s.Dir, s.PID)
	if before["backlog "+addr] != "5" {
		t.Fatalf("the backlog is %q at first", before["backlog "+addr])
	}
	j := open(t)
	e := must(t, j, s.Host, Change{Kind: Backlog, Listen: addr, To: "300"})
	if now := snap(t, s.Host, s.Dir, s.PID)["backlog "+addr]; now != "300" || e.Old != "5" || e.Restart != None {
		t.Errorf("the backlog is %s: %+v", now, e)
	}
	must(t, j, s.Host, Change{Kind: PHPFPM, Name: "listen.backlog", To: "200"})
	if now := snap(t, s.Host, s.Dir, s.PID)["backlog "+addr]; now != "200" || !strings.Contains(read(t, s.Dir+"/fpm.conf"), "listen.backlog = 200\n") {
		t.Errorf("the backlog is %s, the file\n%s", now, read(t, s.Dir+"/fpm.conf"))
	}
	must(t, j, s.Host, Change{Kind: PHPFPM, Name: "pm.max_children", To: "3"})
	if now := snap(t, s.Host, s.Dir, s.PID)["backlog "+addr]; now != "200" {
		t.Errorf("after a reload the backlog is %s", now)
	}
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

func TestTheQueueOfNginxsUnixSocket(t *testing.T) {
	t.Parallel()
	s := livetest.Start(t, map[string]string{
		"nginx.conf": "user root; daemon off; pid nginx.pid; error_log error.log; events { }\nhttp { access_log off; server { listen unix:DIR/web.sock; return 200 ok; } }\n",
	}, "nginx", "-p", "DIR", "-c", "nginx.conf")
	addr := "unix:" + s.Dir + "/web.sock"
	s.Until("nginx listens", func() bool {
		c, err := s.Dial("unix", s.Dir+"/web.sock")
		if err == nil {
			c.Close()
		}
		return err == nil && len((&service{Kind: Nginx, process: process{PID: s.PID}}).look()) > 0
	})
	before := snap(t, s.Host, s.Dir, s.PID)
	j := open(t)
	must(t, j, s.Host, Change{Kind: Nginx, Name: "backlog", To: "77"})
	if now := snap(t, s.Host, s.Dir, s.PID)["backlog "+addr]; now != "77" || !strings.Contains(read(t, s.Dir+"/nginx.conf"), "web.sock backlog=77;") {
		t.Errorf("the backlog is %s, the file\n%s", now, read(t, s.Dir+"/nginx.conf"))
	}
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// Whoever calls listen is who the kernel says listens there: what another user
// has opened must not become root's, and what has two values goes not into one.
func TestQueuesThatAreLeftAlone(t *testing.T) {
	s := sleeper(t)
	var fds []int
	socket := func(family int, at unix.Sockaddr, backlog int) (err error) {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		fds = append(fds, fd)
		if err == nil && family == unix.AF_INET {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		return errors.Join(err, unix.Bind(fd, at), unix.Listen(fd, backlog))
	}
	err := s.Host.Do(func() error {
		port := &unix.SockaddrInet4{Port: 8090, Addr: [4]byte{127, 0, 0, 1}}
		if err := errors.Join(socket(unix.AF_INET, port, 5), socket(unix.AF_INET, port, 6)); err != nil {
			return err
		}
		const same = ^uintptr(0) // of this thread alone
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, nobody, same); e != 0 {
			return e
		}
		err := socket(unix.AF_UNIX, &unix.SockaddrUnix{Name: "@plimsoll-nobody"}, 5)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); e != 0 {
			panic("the thread stays nobody's")
		}
		return err
	})
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{"unix:@plimsoll-nobody": "belongs to user 65534", "127.0.0.1:8090": "backlogs of 5 and 6"} {
		if _, err := Prepare(s.Host, Change{Kind: Backlog, Listen: addr, To: "9"}); !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
