package change

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withMore is an nginx whose configuration includes what lies in a directory.
const withMore = "user root; worker_processes 2; pid one.pid; error_log one.log; worker_rlimit_nofile 4096;\nevents { worker_connections 64; }\n" +
	"http { access_log off; include DIR/more/*.conf; server { listen 127.0.0.1:8081; return 200 ok; } }\n"

// conf writes the configuration of a service "one", and a directory for more of it.
func (c cluster) conf(text string) {
	c.t.Helper()
	if err := errors.Join(os.MkdirAll(c.Dir+"/more", 0o755), os.Chmod(c.Dir, 0o755)); err != nil {
		c.t.Fatal(err)
	}
	c.Write("one.conf", strings.ReplaceAll(text, "DIR", c.Dir))
}

// start starts it in the background; it ends with the test.
func (c cluster) start(args ...string) {
	c.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = c.Dir
	if err := c.Host.Do(cmd.Run); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.end("one") })
	c.Until("it has workers", func() bool { return len(c.workers("one")) == 2 })
}

// reload reloads it by hand, and waits for its workers.
func (c cluster) reload() {
	c.t.Helper()
	before := c.workers("one")
	if err := unix.Kill(c.master("one").PID, unix.SIGHUP); err != nil {
		c.t.Fatal(err)
	}
	c.Until("it has reloaded", func() bool {
		now := c.workers("one")
		return len(now) == 2 && now[0] != before[0] && now[0] != before[1] && now[1] != before[0] && now[1] != before[1]
	})
}

// What the service does not take as things are now is not put in its place: it runs, and would not
// start again.
func TestAnOldFileThatIsRefusedIsNotPutBack(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.conf(withMore)
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	var site strings.Builder
	for port := 9001; port < 9100; port++ {
		fmt.Fprintf(&site, "server { listen 127.0.0.1:%d; }\n", port)
	}
	c.Write("more/site.conf", site.String())
	c.reload()
	_, err := j.Undo(t.Context(), e.ID, false)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "nothing was put back") || !strings.Contains(err.Error(), "64 worker_connections are not enough") {
		t.Error(err)
	}
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 256;") {
		t.Errorf("its file:\n%s", text)
	}
	if err := os.Remove(c.Dir + "/more/site.conf"); err != nil {
		t.Fatal(err)
	}
	c.reload()
	undoAll(t, j)
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 64;") {
		t.Errorf("its file:\n%s", text)
	}
	if names, _ := os.ReadDir(c.Dir); len(names) == 0 {
		t.Fatal("its directory is empty")
	} else {
		for _, n := range names {
			if strings.HasSuffix(n.Name(), ".plimsoll") {
				t.Errorf("%s is left", n.Name())
			}
		}
	}
}

// The arguments of a service's test are those with which it runs now, and what they name is looked
// at: the journal's may name a file that somebody else's is by now.
func TestATestAtUndoTakesNoArgumentsFromTheJournal(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be misused here")
	}
	c := startCluster(t)
	c.conf(withMore)
	c.Write("extra.inc", "# nothing\n")
	option := "include " + c.Dir + "/extra.inc;"
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf", "-g", option)
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	own(t, nobody, c.Dir+"/extra.inc")
	c.Write("extra.inc", "no_directive_of_nginx;\n")
	own(t, nobody, c.Dir+"/extra.inc")
	if _, err := j.Undo(t.Context(), e.ID, false); err == nil || !strings.Contains(err.Error(), "extra.inc belongs to user") {
		t.Errorf("it runs with that option: %v", err)
	}
	c.end("one")
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	undoAll(t, j) // the test would fail with the option
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 64;") {
		t.Errorf("its file:\n%s", text)
	}
}

// What an old file includes may be somebody else's by now.
func TestWhatAnOldFileIncludesIsLookedAt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be misused here")
	}
	c := startCluster(t)
	c.conf(strings.Replace(withMore, "DIR/more/*.conf", "DIR/theirs.inc", 1))
	c.Write("theirs.inc", "# nothing\n")
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	edited := strings.Replace(read(t, c.Dir+"/one.conf"), "include "+c.Dir+"/theirs.inc;", "", 1)
	c.Write("one.conf", edited)
	c.reload()
	own(t, nobody, c.Dir+"/theirs.inc")
	if _, err := j.Undo(t.Context(), e.ID, true); err == nil || !strings.Contains(err.Error(), "theirs.inc belongs to user") {
		t.Errorf("by force: %v", err)
	}
	if text := read(t, c.Dir+"/one.conf"); text != edited {
		t.Errorf("its file:\n%s", text)
	}
}

// A service is known again however its file is called, and one that may be it is not passed over.
func TestAServiceStartedOtherwiseIsFound(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(c cluster) []string{
		"another spelling": func(c cluster) []string { return []string{"nginx", "-p", c.Dir, "-c", c.Dir + "/./more/../one.conf"} },
		"by a link":        func(c cluster) []string { return []string{"nginx", "-p", c.Dir, "-c", c.Dir + "/link.conf"} },
		"another program":  func(c cluster) []string { return []string{c.Dir + "/nginx2", "-p", c.Dir, "-c", c.Dir + "/one.conf"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t)
			c.conf(withMore)
			path, err := exec.LookPath("nginx")
			if err != nil {
				t.Fatal(err)
			}
			program, err := os.ReadFile(path)
			if err := errors.Join(err, os.WriteFile(c.Dir+"/nginx2", program, 0o755), os.Symlink(c.Dir+"/one.conf", c.Dir+"/link.conf")); err != nil {
				t.Fatal(err)
			}
			c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
			j := open(t)
			must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
			c.end("one")
			c.start(start(c)...)
			before := c.workers("one")
			results := undoAll(t, j)
			if said := strings.Join(results[0].Sentences, " "); strings.Contains(said, "does not run") {
				t.Error(said)
			}
			c.Until("it has read its old file", func() bool {
				now := c.workers("one")
				return len(now) == 2 && now[0] != before[0] && now[1] != before[1]
			})
		})
	}
}

func TestOneThatMayBeTheServiceIsNotPassedOver(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.fpm("one", 9000)
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: PHPFPM, Name: "pm.max_requests", To: "77"})
	program, err := executable(c.master("one").PID)
	if err != nil {
		t.Fatal(err)
	}
	c.end("one")
	c.start(program, "-R", "-y", "one.conf") // from its directory: nobody can tell which file that is
	if _, err := j.Undo(t.Context(), e.ID, false); err == nil || !strings.Contains(err.Error(), "may be it") {
		t.Error(err)
	}
	c.end("one")
	undoAll(t, j)
	if text := read(t, c.Dir+"/one.conf"); strings.Contains(text, "pm.max_requests") {
		t.Errorf("its file:\n%s", text)
	}
}

// A directory that was made anew under its name has another number, and the same service's files.
func TestAServiceWhoseDirectoryWasMadeAnewIsFound(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.conf(strings.Replace(withMore, "pid one.pid; error_log one.log;", "pid DIR/one.pid; error_log DIR/one.log;", 1))
	at := c.Dir + "/etc"
	if err := errors.Join(os.Mkdir(at, 0o755), os.Rename(c.Dir+"/one.conf", at+"/one.conf")); err != nil {
		t.Fatal(err)
	}
	c.start("nginx", "-c", at+"/one.conf")
	j := open(t)
	must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	c.end("one")
	if out, err := exec.Command("cp", "-a", at, at+".new").CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	if err := errors.Join(os.Rename(at, at+".old"), os.Rename(at+".new", at)); err != nil {
		t.Fatal(err)
	}
	c.start("nginx", "-c", at+"/one.conf")
	before := c.workers("one")
	undoAll(t, j)
	c.Until("it has read its old file", func() bool {
		now := c.workers("one")
		return len(now) == 2 && now[0] != before[0] && now[1] != before[1]
	})
}

// After a reboot, too, one that may be the service is not passed over, and what it does not take is not put back.
func TestAfterARebootTheServiceIsLookedAtAsWell(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.conf(withMore)
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	j.entries[0].Boot = "11111111-2222-4333-8444-555555555555"
	c.Write("more/theirs.conf", "# nothing\n")
	own(t, nobody, c.Dir+"/more/theirs.conf")
	if _, err := j.Undo(t.Context(), e.ID, false); err == nil || !strings.Contains(err.Error(), "may be it") {
		t.Error(err)
	}
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 256;") {
		t.Errorf("its file:\n%s", text)
	}
	if err := os.Remove(c.Dir + "/more/theirs.conf"); err != nil {
		t.Fatal(err)
	}
	before := c.workers("one")
	undoAll(t, j)
	c.Until("it has read its old file", func() bool {
		now := c.workers("one")
		return len(now) == 2 && now[0] != before[0] && now[1] != before[1]
	})
}

// By force a file is put back that cures what is broken now.
func TestForceCuresAFileThatIsBroken(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.conf(withMore)
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	j := open(t)
	e := must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	c.Write("one.conf", read(t, c.Dir+"/one.conf")+"}\n")
	if _, err := j.Undo(t.Context(), e.ID, true); err != nil {
		t.Error(err)
	}
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 64;") {
		t.Errorf("its file:\n%s", text)
	}
}

// An nginx with other files stands in nobody's way, whatever is wrong with them.
func TestAnotherServiceStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.conf(withMore)
	c.start("nginx", "-p", c.Dir, "-c", c.Dir+"/one.conf")
	j := open(t)
	must(t, j, c.Host, Change{Kind: Nginx, Name: "worker_connections", To: "256", ListensAt: "127.0.0.1:8081"})
	c.end("one")
	c.nginx("two", 8082)
	c.Write("two.conf", read(t, c.Dir+"/two.conf")+"}\n")
	undoAll(t, j)
	if text := read(t, c.Dir+"/one.conf"); !strings.Contains(text, "worker_connections 64;") {
		t.Errorf("its file:\n%s", text)
	}
}
