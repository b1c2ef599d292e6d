package change

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
)

const (
	background = "[global]\nerror_log = DIR/NAME.log\npid = DIR/NAME.pid\ndaemonize = yes\n" +
		"[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:PORT\nlisten.backlog = 33\npm = static\npm.max_children = 2\n"
	// supervised starts a program again whenever it has ended.
	supervised = "while :; do \"$@\" & echo $! >DIR/super.pid; wait $!; done"
)

// cluster is a namespace with a process that does nothing but hold it, and with
// services of the test's in it.
type cluster struct {
	*livetest.Service
	t *testing.T
}

func startCluster(t *testing.T) cluster {
	t.Helper()
	livetest.PHPFPM(t)
	return cluster{sleeper(t), t}
}

// fpm starts a PHP-FPM in the background, which ends with the test.
func (c cluster) fpm(name string, port int) {
	c.t.Helper()
	c.Write(name+".conf", strings.NewReplacer("NAME", name, "PORT", fmt.Sprint(port)).Replace(background))
	cmd := exec.Command(livetest.PHPFPM(c.t), "-R", "--fpm-config", c.Dir+"/"+name+".conf")
	if err := c.Host.Do(cmd.Run); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.end(name) })
	c.Until(name+" has workers", func() bool { return len(c.workers(name)) == 2 })
}

// nginx starts one in the background, which ends with the test.
func (c cluster) nginx(name string, port int) {
	c.t.Helper()
	c.Write(name+".conf", fmt.Sprintf("user root; worker_processes 2; pid %s.pid; error_log %s.log;\nevents { worker_connections 64; }\nhttp { access_log off; server { listen 127.0.0.1:%d backlog=100; return 200 ok; } }\n", name, name, port))
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	cmd := exec.Command("nginx", "-p", c.Dir, "-c", c.Dir+"/"+name+".conf")
	if err := errors.Join(os.Chtimes(c.Dir+"/"+name+".conf", old, old), c.Host.Do(cmd.Run)); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.end(name) })
	c.Until(name+" has workers", func() bool { return len(c.workers(name)) == 2 })
}

// end ends a service, and waits for it.
func (c cluster) end(name string) {
	p := c.master(name)
	if p.PID > 0 && p.alive() {
		_ = unix.Kill(p.PID, unix.SIGTERM)
		c.Until(name+" has ended", func() bool { return !p.alive() })
	}
}

// master is the process in a service's PID file; the zero one when there is none.
func (c cluster) master(name string) process {
	b, err := os.ReadFile(c.Dir + "/" + name + ".pid")
	if err != nil {
		return process{}
	}
	p, _ := processOf(atoi(strings.TrimSpace(string(b))))
	return p
}

func (c cluster) workers(name string) []process {
	targetKind := PHPFPM
	if strings.HasPrefix(title(c.master(name).PID), "nginx: ") {
		targetKind = Nginx
	}
	return (&service{Kind: targetKind, process: c.master(name)}).look()
}

// state is all that a change could have touched, whatever the processes' numbers
// are by now.
func (c cluster) state(names ...string) snapshot {
	c.t.Helper()
	s := snap(c.t, c.Host, c.Dir)
	for _, name := range names {
		master := c.master(name)
		all := append([]process{master}, c.workers(name)...)
		for i, p := range all {
			for what, x := range map[string]setting{"CPUs": affinity(p), "nice": nice(p), "policy": policy(p), "nofile": limit{p, "nofile"}} {
				v, err := x.get()
				if err != nil {
					c.t.Fatal(err)
				}
				s[fmt.Sprint(name, " process ", i, " ", what)] = v
			}
		}
	}
	return s
}

func (c cluster) same(before snapshot, names ...string) {
	c.t.Helper()
	// A reload is done when the first new worker is there; the others follow.
	for _, name := range names {
		c.Until(name+" has its workers", func() bool { return len(c.workers(name)) == 2 })
	}
	if d := cmp.Diff(before, c.state(names...)); d != "" {
		c.t.Errorf("(-before +after):\n%s", d)
	}
}

func TestFPMInTheBackgroundIsFollowed(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.fpm("one", 9000)
	c.fpm("two", 9001)
	before := c.state("one", "two")
	first, other := c.master("one"), c.master("two")
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: PHPFPM, Name: "pm.max_children", To: "5", PID: first.PID})
	now := c.master("one")
	if now == first || e.Service.process != now || e.State != Done {
		t.Errorf("the master was %v and is %v; the entry says %v, %s", first, now, e.Service.process, e.State)
	}
	c.Until("five workers", func() bool { return len(c.workers("one")) == 5 })
	if list, _, err := ReadEntries(j.dir.path); err != nil || len(list) != 1 || list[0].Service.process != now {
		t.Errorf("in the journal: %+v, %v", list, err)
	}
	// What lies upon it is found, too, though each change has made another process of it.
	must(t, j, c.Host, Change{Kind: PHPFPM, Name: "pm.max_requests", To: "77", PID: now.PID})
	again, err := j.LeaveOut(t.Context(), e.ID)
	if err != nil || len(again) != 1 || !strings.Contains(read(t, c.Dir+"/one.conf"), "pm.max_requests = 77") {
		t.Errorf("left out: %+v, %v", again, err)
	}
	undoAll(t, j)
	c.same(before, "one", "two")
	if c.master("two") != other {
		t.Error("the other PHP-FPM was reloaded, too")
	}
}

// It was reloaded by somebody else meanwhile, so that nothing but its sockets and
// its configuration tells that it is the same.
func TestFPMThatOthersReloadedIsFound(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.fpm("one", 9000)
	c.fpm("two", 9001)
	before := c.state("one", "two")
	j := open(t)
	must(t, j, c.Host, Change{Kind: Limit, Name: "nofile", To: "500", PID: c.master("one").PID})
	must(t, j, c.Host, Change{Kind: Nice, To: "3", PID: c.master("one").PID})
	must(t, j, c.Host, Change{Kind: PHPFPM, Name: "pm.max_requests", To: "77", PID: c.master("one").PID})
	for range 2 {
		was := c.master("one")
		if err := unix.Kill(was.PID, unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		c.Until("it is another process", func() bool { return c.master("one") != was && len(c.workers("one")) == 2 })
	}
	must(t, j, c.Host, Change{Kind: Limit, Name: "nofile", To: "400", PID: c.master("one").PID})
	if _, err := j.Undo(t.Context(), 1, false); err == nil || !strings.Contains(err.Error(), "change 4 was made upon it") {
		t.Errorf("what lies beneath, of a process that is another one now: %v", err)
	}
	if v, err := (limit{c.workers("one")[0], "nofile"}).get(); err != nil || !strings.HasPrefix(v, "500:") {
		t.Fatalf("a worker's limit is %s, %v", v, err)
	}
	undoAll(t, j)
	c.same(before, "one", "two")
}

func TestServiceUnderASupervisorIsFound(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"fpm":   livetest.FindPHPFPM() + " -R -F --fpm-config DIR/super.conf",
		"nginx": "nginx -p DIR -c DIR/nginx.conf",
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t)
			c.Write("super.conf", strings.NewReplacer("NAME", "own", "PORT", "9000").Replace(background))
			c.Write("nginx.conf", "user root; worker_processes 2; pid own.pid; daemon off; error_log error.log;\nevents { worker_connections 64; }\nhttp { access_log off; server { listen 127.0.0.1:8080; return 200 ok; } }\n")
			c.Write("run", strings.ReplaceAll("set -- "+command+"\n"+supervised, "DIR", c.Dir))
			cmd := exec.Command("sh", c.Dir+"/run")
			if err := c.Host.Do(cmd.Start); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				c.end("super")
			})
			targetKind := PHPFPM
			what := Change{Kind: PHPFPM, Name: "pm.max_requests", To: "77"}
			if name == "nginx" {
				targetKind, what = Nginx, Change{Kind: Nginx, Name: "worker_connections", To: "99"}
			}
			workers := func() int { return len((&service{Kind: targetKind, process: c.master("super")}).look()) }
			c.Until("it runs", func() bool { return workers() == 2 })
			before := c.state("super")
			j := open(t)
			must(t, j, c.Host, what)
			was := c.master("super")
			if err := unix.Kill(was.PID, unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.Until("it runs again", func() bool { return c.master("super") != was && workers() == 2 })
			now := c.master("super")
			results := undoAll(t, j)
			if len(results) != 1 || strings.Contains(strings.Join(results[0].Sentences, " "), "does not run") {
				t.Errorf("%+v", results)
			}
			if c.master("super") != now {
				t.Error("it was restarted, want reloaded")
			}
			c.Until("it has its workers", func() bool { return workers() == 2 })
			if d := cmp.Diff(before, c.state("super")); d != "" {
				t.Errorf("(-before +after):\n%s", d)
			}
		})
	}
}

// Two of the same configuration, one of which ended: nobody is taken for it.
func TestAnotherServiceIsNotTakenForOneThatEnded(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.fpm("one", 9000)
	conf := c.Dir + "/one.conf"
	j := open(t)
	must(t, j, c.Host, Change{Kind: PHPFPM, Name: "pm.max_requests", To: "77"})
	c.end("one")
	// Its configuration, but another's program that was there before.
	e := &j.entries[0]
	for i := range e.Service.Sockets {
		e.Service.Sockets[i] = strconv.Itoa(i + 1)
	}
	cmd := exec.Command(livetest.PHPFPM(t), "-R", "--fpm-config", conf)
	if err := c.Host.Do(cmd.Run); err != nil {
		t.Fatal(err)
	}
	c.Until("it runs", func() bool { return len(c.workers("one")) == 2 })
	e.Service.Seen = c.master("one").Start + 1
	stranger := c.master("one")
	results := undoAll(t, j)
	if len(results) != 1 || !strings.Contains(strings.Join(results[0].Sentences, " "), "does not run") {
		t.Errorf("%+v", results)
	}
	if c.master("one") != stranger {
		t.Error("a service was reloaded that was there before")
	}
}

// heir makes a child of a process that has children on demand: a shell that
// starts one for each line that it reads.
func startParent(t *testing.T) (s *livetest.Service, bear func() process) {
	t.Helper()
	fifo := t.TempDir() + "/fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s = livetest.Start(t, nil, "sh", "-c", "while read -r line; do sleep 600 & done <>"+fifo+"; wait")
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, q := range readFamily().since(s.PID, 0) {
			_ = unix.Kill(q.PID, unix.SIGKILL)
		}
		w.Close()
	})
	return s, func() process {
		t.Helper()
		had := readFamily().since(s.PID, 0)
		fmt.Fprintln(w, "one more")
		var born process
		s.Until("a child", func() bool {
			for _, q := range readFamily().since(s.PID, 0) {
				if !slices.Contains(had, q) && strings.HasPrefix(title(q.PID), "sleep") {
					born = q
				}
			}
			return born.PID > 0
		})
		return born
	}
}

func TestWhatChildrenWereBornWithIsTakenBack(t *testing.T) {
	t.Parallel()
	s, bear := startParent(t)
	older := bear()
	p := process{PID: s.PID}
	p, err := processOf(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	settings := func(q process) map[string]setting {
		return map[string]setting{"nofile": limit{q, "nofile"}, "nice": nice(q), "CPUs": affinity(q), "policy": policy(q)}
	}
	for name, x := range settings(older) {
		if before[name], err = x.get(); err != nil {
			t.Fatal(err)
		}
	}
	j := open(t)
	cpu, choice := oneCPU(t)
	for _, c := range []Change{{Kind: Limit, Name: "nofile", To: "500"}, {Kind: Nice, To: "3"}, {Kind: Affinity, To: cpu}, {Kind: Policy, To: "5"}} {
		if c.Kind == Affinity && !choice {
			continue
		}
		c.PID = s.PID
		must(t, j, s.Host, c)
	}
	heir, other := bear(), bear()
	if v, _ := nice(heir).get(); v != "3" {
		t.Fatalf("a child's nice value is %s", v)
	}
	if err := nice(other).set("7"); err != nil {
		t.Fatal(err)
	}
	results := undoAll(t, j)
	for _, q := range []process{p, older, heir, other} {
		for name, x := range settings(q) {
			want := before[name]
			if q == other && name == "nice" {
				want = "7"
			}
			if v, err := x.get(); err != nil || v != want {
				t.Errorf("process %d: %s is %q, %v; want %q", q.PID, name, v, err, want)
			}
		}
	}
	said := ""
	for _, r := range results {
		said += strings.Join(r.Sentences, "\n") + "\n"
	}
	if !strings.Contains(said, "2 processes begun since had it from their parents") || !strings.Contains(said, fmt.Sprintf("left alone, since others set them: processes begun since that have neither value (%d)", other.PID)) {
		t.Errorf("said:\n%s", said)
	}
}

// A queue is as long as the kernel allows just then: what caps it is put back
// first, whatever was changed last.
func TestWhatCapsIsPutBackFirst(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	sysctl := func(v string) {
		t.Helper()
		if err := w.Host.Do(func() error { return os.WriteFile("/proc/sys/net/core/somaxconn", []byte(v), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	sysctl("5000")
	must(t, open(t), w.Host, Change{Kind: Nginx, Name: "backlog", To: "4096", Listen: "127.0.0.1:8080"})
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	must(t, j, w.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "128"})
	must(t, j, w.Host, Change{Kind: Nginx, Name: "backlog", To: "100", Listen: "127.0.0.1:8080"})
	must(t, j, w.Host, Change{Kind: Backlog, To: "90", Listen: "127.0.0.1:8080"})
	must(t, j, w.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "80"})
	// One alone is refused before anything is touched, and says what to do.
	if _, err := j.Undo(t.Context(), 3, false); !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), "net.core.somaxconn, which is 80") {
		t.Errorf("undo of the newer queue alone: %v", err)
	}
	if now := snap(t, w.Host, w.Dir, w.PID)["backlog 127.0.0.1:8080"]; now != "90" {
		t.Errorf("the backlog is %s", now)
	}
	if results := undoAll(t, j); len(results) != 4 {
		t.Errorf("%+v", results)
	}
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if results := undoAll(t, j); len(results) != 0 {
		t.Errorf("once more: %+v", results)
	}
}

// What one's own reload left half way is known for ours, whatever the kernel
// allowed at that time.
func TestQueueHalfOfTheWayBack(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	write := func(v string) {
		t.Helper()
		if err := w.Host.Do(func() error { return os.WriteFile("/proc/sys/net/core/somaxconn", []byte(v), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	w.Write("available/a", strings.Replace(nginxSite, " backlog=100", "", 1))
	write("60")
	w.Signal(unix.SIGHUP)
	w.Until("nginx has a queue of 60", func() bool { return snap(t, w.Host, w.Dir)["backlog 127.0.0.1:8080"] == "60" })
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	e := must(t, j, w.Host, Change{Kind: Nginx, Name: "backlog", To: "50", Listen: "127.0.0.1:8080"})
	write("300")
	todo := e.plan(target.get, false, false).todo(e)
	if err := j.takeBackParts(t.Context(), e, todo, &Result{}); err != nil {
		t.Fatal(err)
	}
	// Killed right behind the reload: the queue is what nginx asked for.
	at := e.others()[0].Target
	if err := at.set("300"); err != nil {
		t.Fatal(err)
	}
	write("60")
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// One that cannot be taken back does not hold up the others.
func TestWhatCannotBeTakenBackBlocksNothing(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	before := snap(t, s.Host, s.Dir, s.PID)
	j := open(t)
	must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	must(t, j, s.Host, Change{Kind: Nice, To: "3", PID: s.PID})
	must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.ipv4.tcp_tw_reuse", To: "0"})
	const somebodys = "7" // neither what it was, unless we run so nice ourselves, nor ours
	if err := (target{Kind: inNice, Process: j.entries[1].Parts[0].Target.Process}).set(somebodys); err != nil {
		t.Fatal(err)
	}
	results, err := j.UndoAll(t.Context(), false)
	if len(results) != 2 || !errors.Is(err, ErrChanged) || strings.Count(err.Error(), "undo ") != 1 {
		t.Errorf("%+v, %v", results, err)
	}
	results, err = j.UndoAll(t.Context(), true)
	if len(results) != 1 || err != nil {
		t.Errorf("%+v, %v", results, err)
	}
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// A service that was started again while somaxconn was ours has less than it asks for.
func TestQueueOfAServiceThatRestartedUnderOurCap(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"the cap first": "backlog", "the queue first": "cap"} {
		t.Run(name, func(t *testing.T) {
			w := startNginx(t)
			j := open(t)
			before := snap(t, w.Host, w.Dir, w.PID)
			changes := []Change{{Kind: Backlog, To: "40", Listen: "127.0.0.1:8080"}, {Kind: Sysctl, Name: "net.core.somaxconn", To: "60"}}
			if last == "backlog" {
				slices.Reverse(changes)
			}
			for _, c := range changes {
				must(t, j, w.Host, c)
			}
			// What a new socket would get that nginx asks 100 for.
			if err := (target{Kind: inSocket, Listen: "127.0.0.1:8080", Net: backlogPart(j).Target.Net}).set("100"); err != nil {
				t.Fatal(err)
			}
			if now := snap(t, w.Host, w.Dir)["backlog 127.0.0.1:8080"]; now != "60" {
				t.Fatalf("the queue is %s", now)
			}
			undoAll(t, j)
			if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
				t.Errorf("(-before +after):\n%s", d)
			}
		})
	}
}

func backlogPart(j *Journal) part {
	for _, e := range j.entries {
		if e.Change.Kind == Backlog {
			return e.Parts[0]
		}
	}
	return part{}
}

// The network namespace of a service was made anew, and the service started in it with
// the files as we left them: it has to read the old ones again.
func TestAServiceInAnotherNamespaceIsFollowed(t *testing.T) {
	t.Parallel()
	c, elsewhere := startCluster(t), startCluster(t)
	c.nginx("one", 8081)
	j := open(t)
	must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "200", ListensAt: "127.0.0.1:8081"})
	c.end("one")
	again := exec.Command("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	if err := elsewhere.Host.Do(again.Run); err != nil {
		t.Fatal(err)
	}
	c.Until("it has workers again", func() bool { return len(c.workers("one")) == 2 })
	before := c.workers("one")
	undoAll(t, j)
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 64;") {
		t.Errorf("its file:\n%s", text)
	}
	c.Until("it has read its old file", func() bool {
		now := c.workers("one")
		return len(now) == 2 && !slices.ContainsFunc(now, func(p process) bool { return slices.Contains(before, p) })
	})
}

// A container that has ended is not taken for the machine's own service, whose files
// have the same names.
func TestTheMachinesServiceIsNoContainers(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	j := open(t)
	e := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	s := *e.Service
	s.Seen = 0
	for root, want := range map[string]int{s.Root: 1, "": 1, "7:4711": 0} {
		s.Root = root
		if found, err := s.candidates(w.Host); err != nil || len(found) != want {
			t.Errorf("of a service in %q: %d found, %v", root, len(found), err)
		}
	}
	// Mounts may lay another directory over the same name.
	s.Root, s.Dir, s.Elsewhere = e.Service.Root, "7:4711", true
	if found, err := s.candidates(w.Host); err != nil || len(found) != 0 {
		t.Errorf("of a service whose files lie elsewhere: %d found, %v", len(found), err)
	}
	undoAll(t, j)
}
