package deepcpu

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"go.opentelemetry.io/ebpf-profiler/libpf"
	"go.opentelemetry.io/ebpf-profiler/reporter/samples"
	"go.opentelemetry.io/ebpf-profiler/times"
)

// sampled hands a collector one sample, of a stack of PHP functions, as the library does.
func sampled(c *collector, pid int, thread string, functions ...string) {
	var t libpf.Trace
	for i, name := range functions {
		t.Frames.Append(&libpf.Frame{Type: libpf.PHPFrame, FunctionName: libpf.Intern(name), SourceFile: libpf.Intern("/srv/x.php"), SourceLine: libpf.SourceLineno(i + 1)})
	}
	meta := &samples.TraceEventMeta{PID: libpf.PID(pid), Comm: libpf.NewCommFromString(thread), ExecutablePath: libpf.Intern("/usr/sbin/a-program-with-a-long-name"),
		Timestamp: libpf.UnixTime64(times.GetKTime().UnixNano())}
	if err := c.ReportTraceEvent(&t, meta); err != nil {
		panic(err)
	}
}

func stacksIn(t *testing.T, c *collector) map[string]int64 {
	t.Helper()
	data, err := c.profile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, s := range p.Sample {
		names := []string{s.Label["groupname"][0], s.Label["thread"][0]}
		for _, l := range s.Location {
			names = append(names, l.Line[0].Function.Name)
		}
		found[strings.Join(names, " ")] += s.Value[0]
	}
	return found
}

const nobody = 1 << 30 // no process has this id

func TestCollectorAddsUp(t *testing.T) {
	c := newCollector(Hertz, nil)
	defer c.close()
	for range 7 {
		sampled(c, nobody, "one", "busy", "<module>")
	}
	sampled(c, nobody, "one", "idle", "<module>") // at the same places as busy
	sampled(c, nobody, "two", "busy", "<module>")
	sampled(c, os.Getpid(), "ours", "busy")
	c.pause()
	sampled(c, nobody, "one", "paused")
	c.resume()
	c.setOnly([]int{nobody + 1})
	sampled(c, nobody, "one", "not wanted")
	sampled(c, nobody+1, "wanted", "wanted")
	want := map[string]int64{
		"a-program-with- one busy <module>": 7, "a-program-with- one idle <module>": 1, "a-program-with- two busy <module>": 1,
		"a-program-with- wanted wanted": 1,
	}
	if diff := cmp.Diff(want, stacksIn(t, c)); diff != "" {
		t.Errorf("stacks (-want +got):\n%s", diff)
	}
}

func TestCollectorCountsWhatHasNoRoom(t *testing.T) {
	c := newCollector(Hertz, nil)
	defer c.close()
	for pid := range maxStacks + 3 {
		sampled(c, nobody+pid, "thread", "busy")
	}
	sampled(c, nobody, "thread", "busy") // known, so there is room
	if lost := c.lost(); lost[lostStacks] != 3 || len(c.stacks) != maxStacks {
		t.Errorf("%d stacks are kept, and lost: %v; want %d and 3", len(c.stacks), lost, maxStacks)
	}
}

func TestUnreadStacksAreCountedAndShown(t *testing.T) {
	c := newCollector(Hertz, nil)
	defer c.close()
	var broken libpf.Trace
	broken.Frames.Append(&libpf.Frame{Type: libpf.KernelFrame, FunctionName: libpf.Intern("do_syscall_64")})
	broken.Frames.Append(&libpf.Frame{Type: libpf.UnknownFrame.Error()})
	meta := &samples.TraceEventMeta{PID: nobody, Comm: libpf.NewCommFromString("kworker/0:1-x"), Timestamp: libpf.UnixTime64(times.GetKTime().UnixNano())}
	if err := c.ReportTraceEvent(&broken, meta); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"kworker kworker/0:1-x do_syscall_64 [stack not read]": 1}
	if diff := cmp.Diff(want, stacksIn(t, c)); diff != "" {
		t.Errorf("stacks (-want +got):\n%s", diff)
	}
	if lost := c.lost(); lost[lostUnread] != 1 {
		t.Errorf("lost %v, want one unread", lost)
	}
}

func TestReport(t *testing.T) {
	place := func(id uint64, name, file string, line int64, module string) *profile.Location {
		return &profile.Location{ID: id, Mapping: &profile.Mapping{File: module}, Line: []profile.Line{{Function: &profile.Function{Name: name, Filename: file}, Line: line}}}
	}
	leaf, sqrt := place(1, "zif_sqrt", "", 0, "/usr/sbin/php-fpm8.2"), place(2, "sqrt", "", 0, "[php]")
	busy, main := place(3, "busy", "/srv/www/shop/busy.php", 5, "[php]"), place(4, "main", "", 0, "/usr/sbin/php-fpm8.2")
	epoll := place(5, "do_epoll_wait", "", 0, "[kernel]")
	sample := func(group string, n int64, l ...*profile.Location) *profile.Sample {
		return &profile.Sample{Location: l, Value: []int64{n, n * 10_000_000}, Label: map[string][]string{"groupname": {group}}}
	}
	p := &profile.Profile{Sample: []*profile.Sample{
		sample("php-fpm8.2", 300, leaf, sqrt, busy, main), sample("php-fpm8.2", 500, busy, main), sample("php-fpm8.2", 100, main),
		sample("nginx", 99, epoll, main), sample("nginx", 1), sample("e\x1bvil", 1, epoll),
	}}
	s := summarise(p, map[string]uint64{lostUnread: 7, lostBuffer: 3}, 10*time.Second, 11*time.Second)
	s.CPUs = 2
	const want = `10 s on 2 CPUs: 10 s of CPU time sampled, of 11 s used

 89.9 %  php-fpm8.2
 50.0 %    busy  busy.php:5
 30.0 %    sqrt
 10.0 %    main

 10.0 %  nginx
  9.9 %    do_epoll_wait
  0.1 %    [unknown]

  0.1 %  e\u001bvil
  0.1 %    do_epoll_wait

note: 3 events were lost (buffer)

note: of 7 samples the stack of
      the process could not be read, or
      not to its end
`
	if diff := cmp.Diff(want, s.Text(40)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if long := s.Text(90); !strings.Contains(long, "busy  /srv/www/shop/busy.php:5\n") {
		t.Errorf("no full path where there is room:\n%s", long)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
