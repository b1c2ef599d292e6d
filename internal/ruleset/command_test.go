package ruleset

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// commandLine is what CommandFor says, as a shell reads it.
func commandLine(kind, name, to string) string {
	var text strings.Builder
	for _, p := range CommandFor(kind, name, to, map[string]string{"groupname": name}) {
		text.WriteString(p.Text)
	}
	return text.String()
}

// sh runs a command line, with a folder of programs before all others.
func sh(t *testing.T, line, programs string) {
	t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Env = []string{"PATH=" + programs + ":/usr/bin:/bin"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil { // programs among them
		t.Fatal(err)
	}
}

// A mask of CPUs has a comma after each 32 of them, and a shell's numbers end at 64 bits.
func TestMaskOfAllCPUs(t *testing.T) {
	for cpus, want := range map[string]string{"1": "1", "2": "3", "32": "ffffffff", "33": "1,ffffffff", "64": "ffffffff,ffffffff", "65": "1,ffffffff,ffffffff"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "net/eth0/queues/rx-0/rps_cpus")
		put(t, file, "0")
		put(t, filepath.Join(dir, "bin/nproc"), "#!/bin/sh\necho "+cpus+"\n")
		sh(t, strings.ReplaceAll(commandLine(model.ChangeRPS, "eth0", "all"), "/sys/class", dir), filepath.Join(dir, "bin"))
		if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s CPUs: %q, %v; want %s", cpus, got, err, want)
		}
	}
}

// What is typed for a quota can be read before it is run.
func TestQuotaIsTyped(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "web/cpu.max")
	put(t, file, "80000 100000\n")
	sh(t, strings.ReplaceAll(commandLine(model.ChangeQuota, "/web", "160000 100000"), "/sys/fs/cgroup", dir), "/bin")
	if got, err := os.ReadFile(file); err != nil || string(got) != "160000 100000\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got := commandLine(model.ChangeQuota, "/web", layout.NotKnown); got != "echo … > /sys/fs/cgroup/web/cpu.max" {
		t.Error(got)
	}
}

// Of a process's limit only the soft one is set, where the hard one lets it.
func TestLimitLeavesTheHardOne(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "pgrep"), "#!/bin/sh\necho 7\n")
	for hard, want := range map[string]string{"more": "--nofile=10:", "less": "--nofile=10: --nofile=10"} {
		log := filepath.Join(dir, hard)
		put(t, filepath.Join(dir, "prlimit"), `#!/bin/sh
printf '%s ' "$1" >> `+log+`
case `+hard+`$1 in less*:) exit 1;; esac
`)
		sh(t, commandLine(model.ChangeLimit, "nofile", "10"), dir)
		if got, err := os.ReadFile(log); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%q, %v; want %s", got, err, want)
		}
	}
}
