package servicelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/probe/logtail"
)

func TestErrorOf(t *testing.T) {
	for line, want := range map[string]string{
		`2026/11/21 12:00:00 [crit] 7#7: *1 pwrite() "/tmp/b/01" failed (28: No space left on device), client: c`:     "ENOSPC",
		`PHP message: PHP Warning: file_put_contents(): Only -1 of 12 bytes written, possibly out of free disk space`: "ENOSPC",
		`write /var/lib/app/x: read-only file system`:                                                                 "EROFS",
		`OSError: [Errno 122] Disk quota exceeded`:                                                                    "EDQUOT",
		`accept4() failed (24: Too many open files)`:                                                                  "EMFILE",
		`open() failed (23: Too many open files in system)`:                                                           "ENFILE",
		`inotify_add_watch(7, "/srv") failed: No space left on device`:                                                "inotify",
		`sh: 1: Cannot fork`: "",
		`fork() failed while spawning "worker process" (11: Resource temporarily unavailable)`:                        "fork",
		`connect() to unix:/run/x.sock failed (11: Resource temporarily unavailable) while connecting to upstream`:    "",
		`PHP Fatal error: Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes) in /x.php`: "php_memory_limit",
		`PHP Fatal error: Maximum execution time of 1 second exceeded`:                                                "php_max_execution_time",
		`RedisException: ERR max number of clients reached`:                                                           "too_many_clients",
		`FATAL: sorry, too many clients already`:                                                                      "too_many_clients",
		`OOM command not allowed when used memory > 'maxmemory'.`:                                                     "maxmemory",
		`inotify is on`: "",
		`all is well`:   "",
	} {
		if got := errorOf([]byte(line)); got != want {
			t.Errorf("%s: want %q, got %q", line, want, got)
		}
	}
}

func TestFullOf(t *testing.T) {
	for line, want := range map[string]string{
		`[Sat Nov 28 12:00:00 2026] [mpm_event:error] [pid 7:tid 7] AH03490: scoreboard is full, not at MaxRequestWorkers.Increase ServerLimit.`:                   "scoreboard",
		`[Sat Nov 28 12:00:00 2026] [mpm_worker:error] [pid 7:tid 7] AH00288: scoreboard is full, not at MaxRequestWorkers`:                                        "scoreboard",
		`[Sat Nov 28 12:00:00 2026] [mpm_prefork:error] [pid 7] AH00161: server reached MaxRequestWorkers setting, consider raising the MaxRequestWorkers setting`: "",
		`10.0.0.9 - - [28/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "[mpm_event:error] scoreboard is full, not at MaxRequestWorkers"`:                    "",
		`[core:info] [client 10.0.0.9:5] a header that says, in so many words and more, [mpm_event:error] scoreboard is full, not at MaxRequestWorkers`:            "",
		`[Sat Nov 28 12:00:00 2026] [core:notice] [pid 7] AH00094: Command line: 'apache2 -D FOREGROUND'`:                                                          "",
	} {
		if got := errorOf([]byte(line)); got != "" {
			t.Errorf("%s: want no error, got %q", line, got)
		}
		lower := []byte(line)
		toLower(lower)
		if got := fullOf(lower); got != want {
			t.Errorf("%s: want %q, got %q", line, want, got)
		}
	}
}

func TestAlarmOf(t *testing.T) {
	type said struct {
		name string
		set  bool
	}
	for line, want := range map[string]said{
		`2026-11-30 10:00:00.1+00:00 [warning] <0.455.0> disk resource limit alarm set on node rabbit@localhost.`: {"rabbitmq_disk", true},
		`2026-11-30 10:00:00.1+00:00 [warning] <0.455.0> memory resource limit alarm set on node rabbit@a.`:       {"rabbitmq_memory", true},
		`2026-11-30 10:00:00.1+00:00 [warning] <0.455.0> disk resource limit alarm cleared on node rabbit@a`:      {},
		`2026-11-30 10:00:00.1+00:00 [warning] <0.455.0> disk resource limit alarm cleared across the cluster`:    {"rabbitmq_disk", false},
		`2026-11-30 10:00:00.1+00:00 [info] <0.222.0>  Starting RabbitMQ 3.10.8 on Erlang 25.2.3 [jit]`:           {everyAlarm, false},
		`2026-11-30 10:00:00.1+00:00 [warning] <0.455.0> alarm 'disk resource limit alarm' set`:                   {},
		`2026-11-30 10:00:00.1+00:00 [info] <0.230.0> Disk free limit set to 50000000MB`:                          {},
	} {
		name, set := alarmOf([]byte(line))
		if got := (said{name, set}); got != want {
			t.Errorf("%s: want %v, got %v", line, want, got)
		}
	}
}

// An alarm that stood in the log before is still set, until a line clears it; of other programs it is none.
func TestAlarms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rabbit.log")
	if err := os.WriteFile(path, []byte("memory resource limit alarm set on node a.\nStarting RabbitMQ 3\ndisk resource limit alarm set on node a.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &reader{alarms: map[alarm]bool{}, told: map[alarm]int{}, counts: map[fact]uint64{}}
	tail, err := logtail.Open(logtail.Place{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	l := &log{group: rabbitMQ, tail: tail}
	if err := tail.Earlier(lookBack, func(line []byte) { r.takeAlarm(l, line, "earlier") }); err != nil {
		t.Fatal(err)
	}
	earlier, watched := alarm{key{rabbitMQ, "rabbitmq_disk"}, "earlier"}, alarm{key{rabbitMQ, "rabbitmq_disk"}, "watched"}
	if !r.alarms[earlier] || r.alarms[alarm{key{rabbitMQ, "rabbitmq_memory"}, "earlier"}] {
		t.Errorf("want the disk's alarm alone, got %v", r.alarms)
	}
	r.take(l, []byte("disk resource limit alarm cleared across the cluster"))
	if r.alarms[earlier] {
		t.Error("want it cleared")
	}
	r.take(l, []byte("disk resource limit alarm set on node a."))
	r.take(&log{group: "python3", tail: tail}, []byte("memory resource limit alarm set on node a."))
	if r.alarms[earlier] || !r.alarms[watched] || len(r.alarms) != 3 {
		t.Errorf("want the disk's alarm, as it was set while we watched, got %v", r.alarms)
	}
	if len(r.counts) != 0 {
		t.Errorf("want no errors counted, got %v", r.counts)
	}
	for range 100 {
		r.take(l, []byte("disk resource limit alarm set on node "+strings.Repeat("a", 2*maxLine)))
	}
	// Two of before, and three of one that is set again and again.
	if last := r.events[len(r.events)-1]; len(r.events) != 2+eventsEach || len(last.line) > len(tail.Path())+maxLine+20 {
		t.Errorf("want %d events, none longer than a line, got %d, the last of %d bytes", 2+eventsEach, len(r.events), len(last.line))
	}
}

// A shell that logs to a file is found by what it has open; what stood there
// before is not counted, and a file that it only reads is none of its logs.
func TestLogOfALiveProcess(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "app.log")
	if err := os.WriteFile(log, []byte("old: No space left on device\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `exec 9>>"$0"; echo open; read x; echo "new: No space left on device" >&9; echo "[Sat Nov 28 12:00:00 2026] [mpm_event:error] [pid 7:tid 7] AH03490: scoreboard is full, not at MaxRequestWorkers" >&9; echo fine >&9; echo done; read x`, log)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, err := All()[0].Open(h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid := host.Proc{PID: cmd.Process.Pid, Start: 1, Comm: "shell"}
	r.(*reader).list = func() ([]host.Proc, error) { return []host.Proc{pid}, nil }
	rec := livetest.NewRecord()
	now := time.Unix(1, 0)
	round := func() {
		now = now.Add(time.Minute)
		_ = r.Read(probe.NewOut(rec, "here", now, time.Second))
	}
	if _, err := io.ReadFull(said, make([]byte, len("open\n"))); err != nil {
		t.Fatal(err)
	}
	round()
	fmt.Fprintln(in, "go")
	if _, err := io.ReadFull(said, make([]byte, len("done\n"))); err != nil {
		t.Fatal(err)
	}
	round()
	if got := rec.Values["plimsoll_service_log_errors_total{shell,ENOSPC}"]; got != 1 {
		t.Errorf("want 1 line, got %v of %v", got, rec.Values)
	}
	if got := rec.Values["plimsoll_service_log_full_total{shell,scoreboard}"]; got != 1 {
		t.Errorf("want 1 line of a full scoreboard, got %v of %v", got, rec.Values)
	}
	if len(rec.Lines) != 2 || !strings.Contains(rec.Lines[0], "new: No space left") {
		t.Errorf("want the line as an event, got %q", rec.Lines)
	}
}

// There are machines on which root may not look into init. It serves nobody, so nothing is missed; of any other it is told.
func TestInitIsNotMissed(t *testing.T) {
	if first, err := host.InFirstPIDs(); err != nil {
		t.Fatal(err)
	} else if !first {
		t.Skip("in a PID namespace process 1 may be a service")
	}
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r := &reader{host: h, looked: map[int]look{}, list: func() ([]host.Proc, error) { return []host.Proc{{PID: 1, Start: 1, Comm: "init"}}, nil }}
	if err := r.Read(probe.NewOut(livetest.NewRecord(), "here", time.Unix(1, 0), time.Second)); errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	r.looked[2] = look{at: time.Unix(1, 0), refused: true}
	r.list = func() ([]host.Proc, error) { return []host.Proc{{PID: 2}}, nil }
	if err := r.Read(probe.NewOut(livetest.NewRecord(), "here", time.Unix(1, 0), time.Second)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("want a refusal, got %v", err)
	}
}

func FuzzErrorOf(f *testing.F) {
	f.Add([]byte("Inotify: Too many open files"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := len(b)
		errorOf(b)
		if alarmOf(b); len(b) != n {
			t.Error("the line changed its length")
		}
	})
}
