package load

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

func TestThreadsForALimitOfFiles(t *testing.T) {
	for _, c := range []struct {
		connections, threads int
		limit                int64
		want                 int
	}{
		{100, 2, 1000, 2},
		{100, 1, 118, 1},
		{100, 1, 117, 2},
		{30_000, 1, 20_000, 2},
		{1_000_000, 2, 20_000, 51},
		{10_000_000, 1, 20_000, 529},
		{100, 1, 40, 0}, // more threads need more themselves
		{1_000_000, 1, 1024, 0},
	} {
		plan := model.LoadPlan{URL: "http://a/", Connections: c.connections, Threads: c.threads}
		got := ThreadsFor(plan, c.limit)
		if got != c.want {
			t.Errorf("%+v: %d threads", c, got)
		}
		if plan.Threads = got; got > 0 && NeededFiles(plan, true) > c.limit {
			t.Errorf("%+v: %d threads, each of which needs %d", c, got, NeededFiles(plan, true))
		}
	}
}

// What a thread opens with a table of its own nobody else has, and the process's own table stays what it is.
func TestDescriptorsOfAThreadsOwn(t *testing.T) {
	if !OwnTables(model.LoadPlan{URL: "http://a/"}) {
		t.Fatal("no thread may have a table of descriptors of its own here (a filter of system calls?)")
	}
	if OwnTables(model.LoadPlan{URL: "https://a/"}) {
		t.Error("with TLS other threads do the handshakes")
	}
	opened, end := make(chan string), make(chan bool)
	go onOwnThread(func() {
		th := &thread{shared: &shared{ownTables: true}, poller: &poller{}}
		th.setUpThread()
		fd, errno := sysSocket(unix.AF_INET)
		if errno != 0 {
			opened <- errno.Error()
			return
		}
		name, _ := os.Readlink(fmt.Sprintf("/proc/self/task/%d/fd/%d", unix.Gettid(), fd))
		opened <- name
		<-end
		sysClose(fd)
	})
	defer close(end)
	name := <-opened
	if !strings.HasPrefix(name, "socket:") {
		t.Fatalf("the thread's descriptor is %q, want a socket", name)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if other, _ := os.Readlink("/proc/self/fd/" + f.Name()); other == name {
			t.Errorf("descriptor %s of the process is the thread's %s", f.Name(), name)
		}
	}
}
