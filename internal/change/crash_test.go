package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/orphans/heldtest"
)

// child is the variable that makes the test binary another process of a test:
// "what journal pid…".
const child = "PLIMSOLL_CHANGE_CHILD"

func TestMain(m *testing.M) {
	if bePretender() {
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == BenchName {
		if Bench() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if f := strings.Fields(os.Getenv(child)); len(f) > 0 {
		if err := beChild(f[0], f[1], f[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	heldtest.Main(m)
}

func beChild(what, dir string, pids []string) error {
	switch what {
	case "take":
		j, err := Open(dir, pids[0])
		if err == nil {
			err = j.Close()
		}
		return err
	case "masked":
		return masked(dir, pids[0])
	case "quota":
		return halved(dir, pids[0])
	case "lift":
		return lifted(pids[0])
	case "hold":
		f, err := os.Open(dir)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	var hosts []*host.Host
	for _, pid := range pids {
		spec := "pid:" + pid
		if what == "user" { // who may not enter namespaces, and is in it
			spec = "local"
		}
		h, err := host.Open("web", spec)
		if err != nil {
			return err
		}
		hosts = append(hosts, h)
	}
	j, err := Open(dir, filepath.Dir(dir))
	if err != nil {
		return err
	}
	if what == "user" {
		return changedByUser(j, hosts[0])
	}
	if what == "pair" {
		return tunedForEver(j, hosts[0], filepath.Join(filepath.Dir(dir), "services"))
	}
	if what == "drop" {
		return dropped(j, hosts[0], atoi(pids[0]))
	}
	for { // until we are killed
		for _, c := range crashed(atoi(pids[0]), atoi(pids[1])) {
			h := hosts[0]
			if c.Kind == PHPFPM {
				h = hosts[1]
			}
			step, err := Prepare(h, c)
			if err == nil {
				_, err = j.Apply(context.Background(), step)
			}
			if err != nil {
				return err
			}
		}
		if _, err := j.UndoAll(context.Background(), false); err != nil {
			return err
		}
	}
}

// crashed are the changes in the midst of which plimsoll is killed.
func crashed(nginx, fpm int) []Change {
	list := []Change{
		{Kind: Sysctl, Name: "net.core.somaxconn", To: "1000"},
		{Kind: Nginx, Name: "worker_connections", To: "100"},
		{Kind: Limit, Name: "nofile", To: "500", PID: nginx},
		{Kind: Nginx, Name: "backlog", To: "700", Listen: "127.0.0.1:8080"},
		{Kind: Sysctl, Name: "net.ipv4.tcp_tw_reuse", To: "1"},
		{Kind: PHPFPM, Name: "listen.backlog", To: "99"},
		{Kind: PHPFPM, Name: "pm.max_children", To: "5"},
		{Kind: Sysctl, Name: "net.core.somaxconn", To: "2000"},
		{Kind: Nginx, Name: "keepalive", To: "4"},
		{Kind: Nice, To: "3", PID: fpm},
		{Kind: Policy, To: "5", PID: fpm},
	}
	rand.Shuffle(len(list), func(i, k int) {
		if list[i].Name != "net.core.somaxconn" && list[k].Name != "net.core.somaxconn" {
			list[i], list[k] = list[k], list[i]
		}
	})
	return list
}

func startChild(t *testing.T, what, dir string, pids ...int) *exec.Cmd {
	t.Helper()
	words := []string{what, dir}
	for _, pid := range pids {
		words = append(words, strconv.Itoa(pid))
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+strings.Join(words, " "))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// rounds is how often the test below kills; PLIMSOLL_KILLS asks for more.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_KILLS")); err == nil {
		return n
	}
	return 15
}

func TestKilledAtAnyMomentThenUndone(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	f := startFPM(t)
	dir := filepath.Join(t.TempDir(), "changes")
	web, fpm := snap(t, w.Host, w.Dir, w.PID), snap(t, f.Host, f.Dir, f.PID)
	met := map[State]int{}
	for n := range rounds() {
		cmd := startChild(t, "loop", dir, w.PID, f.PID)
		time.Sleep(time.Duration(50+rand.IntN(1200)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("round %d: the child ended by itself: %v", n, err)
		}
		j, err := Open(dir, filepath.Dir(dir))
		if err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
		for _, e := range j.Entries() {
			met[e.State]++
		}
		if _, err := j.UndoAll(t.Context(), false); err != nil {
			t.Errorf("round %d: %v", n, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		w.answers(t)
		d := cmp.Diff(web, snap(t, w.Host, w.Dir, w.PID)) + cmp.Diff(fpm, snap(t, f.Host, f.Dir, f.PID))
		if d != "" {
			t.Fatalf("round %d (-before +after):\n%s", n, d)
		}
	}
	t.Logf("killed %d times; met %v", rounds(), met)
}

// dropped loses its privileges between looking and changing.
func dropped(j *Journal, h *host.Host, pid int) error {
	var steps []Step
	for _, c := range []Change{
		{Kind: Sysctl, Name: "net.core.somaxconn", To: "1000"},
		{Kind: Limit, Name: "nofile", To: "500", PID: pid},
		{Kind: Nginx, Name: "worker_connections", To: "100"},
	} {
		s, err := Prepare(h, c)
		if err != nil {
			return err
		}
		steps = append(steps, s)
	}
	if err := os.Chown(j.dir.path, nobody, nobody); err != nil {
		return err
	}
	if err := syscall.Setuid(nobody); err != nil {
		return err
	}
	for _, s := range steps {
		e, err := j.Apply(context.Background(), s)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "nothing was changed") && e.State != Failed {
			return fmt.Errorf("%s without privileges: %v, %w", s.Change, e.State, err)
		}
		if _, err := Prepare(h, s.Change); err == nil {
			return fmt.Errorf("%s: could be prepared without privileges", s.Change)
		}
	}
	return nil
}

func TestPrivilegesLostMidway(t *testing.T) {
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	dir, err := os.MkdirTemp("", "plcg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := startChild(t, "drop", dir+"/changes", w.PID).Wait(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// tunedForEver changes two nginx and two PHP-FPM in the background, whose processes
// are others by then, and takes that back, until it is killed.
func tunedForEver(j *Journal, h *host.Host, dir string) error {
	for {
		for _, c := range []Change{
			{Kind: Sysctl, Name: "net.core.somaxconn", To: "60"},
			{Kind: PHPFPM, Name: "pm.max_children", To: "4", Pool: "one"},
			{Kind: Nginx, Name: "worker_connections", To: "99", Pool: "left"},
			{Kind: Limit, Name: "nofile", To: "500", Pool: "two"},
			{Kind: Backlog, To: "50", Listen: "127.0.0.1:8081"},
			{Kind: PHPFPM, Name: "pm.max_requests", To: "77", Pool: "two"},
			{Kind: Nginx, Name: "worker_processes", To: "3", Pool: "right"},
			{Kind: Nice, To: "3", Pool: "one"},
		} {
			if name := c.Pool; name != "" { // whose process it is
				b, err := os.ReadFile(filepath.Join(dir, name+".pid"))
				if err != nil {
					return err
				}
				c.PID, c.Pool = atoi(strings.TrimSpace(string(b))), ""
			}
			now, err := host.Open(h.Name, h.Spec)
			if err != nil {
				return err
			}
			step, err := Prepare(now, c)
			if err = errors.Join(err, now.Close()); err == nil {
				_, err = j.Apply(context.Background(), step)
			}
			if err != nil && !errors.Is(err, ErrAlready) {
				return fmt.Errorf("%s: %w", c, err)
			}
		}
		if _, err := j.UndoAll(context.Background(), false); err != nil {
			return err
		}
	}
}

// Two of each on one host, in the background; scripts/kills does it with the whole
// program and with supervisors.
func TestKilledOverTwoOfEachThenUndone(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.fpm("one", 9000)
	c.fpm("two", 9001)
	c.nginx("left", 8080)
	c.nginx("right", 8081)
	all := []string{"one", "two", "left", "right"}
	before := c.state(all...)
	run := t.TempDir()
	if err := os.Symlink(c.Dir, run+"/services"); err != nil {
		t.Fatal(err)
	}
	dir := run + "/changes"
	for n := range max(3, rounds()/10) {
		cmd := startChild(t, "pair", dir, c.PID)
		time.Sleep(time.Duration(100+rand.IntN(2500)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("round %d: the child ended by itself: %v", n, err)
		}
		j, err := Open(dir, run)
		if err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
		if _, err := j.UndoAll(t.Context(), false); err != nil || len(j.Skipped()) > 0 {
			t.Errorf("round %d: %v, %v", n, err, j.Skipped())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		c.same(before, all...)
	}
}
