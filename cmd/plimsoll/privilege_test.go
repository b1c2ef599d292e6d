package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/privilege"
	"plimsoll/internal/probe/livetest"
)

// programs makes the helpers of the scripts, and plimsoll itself, runnable in a
// folder that every user may enter.
func programs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "plimsoll-privileges-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, names[0]), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names[1:] {
		if err := os.Link(to.Name(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// services starts nginx and PHP-FPM as root, with a configuration, logs and a socket
// that are root's alone, and calls doctor with each set of capabilities: in
// namespaces of its own, in which nobody else is.
const services = `set -e
ip link set lo up
nginx -c $PWD/private/nginx.conf
$FPM -y $PWD/private/fpm.conf -D
nft add table inet t
echo $SETS | xargs -n 1 -P 4 sh -c 'with=; [ $0 = root ] || with="with $0"; exec $with plimsoll doctor --json >private/$0'
kill $(cat private/nginx.pid private/fpm.pid)
`

const nginxConf = `user www-data; pid %[1]s/nginx.pid; error_log %[1]s/error.log; worker_processes 1;
events { worker_connections 64; }
http { access_log %[1]s/access.log; server { listen 127.0.0.1:80; location /s { stub_status; } } }
`

const fpmConf = `[global]
pid = %[1]s/fpm.pid
error_log = %[1]s/fpm.log
[www]
user = www-data
listen = %[1]s/fpm.sock
listen.mode = 0660
pm = static
pm.max_children = 1
pm.status_path = /status
`

// setOf is a set as the helper "with" takes it.
func setOf(caps []privilege.Cap) string {
	var words []string
	for _, c := range caps {
		words = append(words, strings.ToLower(strings.TrimPrefix(c.String(), "CAP_")))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ",")
}

// less are the sets that lack one, by what they lack.
func less(caps []privilege.Cap) map[privilege.Cap]string {
	sets := map[privilege.Cap]string{}
	for i, c := range caps {
		sets[c] = setOf(slices.Delete(slices.Clone(caps), i, i+1))
	}
	return sets
}

// checkups calls doctor with all sets of the table, and as root.
func checkups(t *testing.T) map[string]map[string]probeCheckup {
	t.Helper()
	fpm := livetest.PHPFPM(t)
	for _, program := range []string{"nginx", "unshare", "setpriv", "ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v; scripts/install-deps tests installs it", err)
		}
	}
	sets := []string{"root"}
	for _, n := range privilege.Table {
		if n.Kind == "host" {
			continue
		}
		sets = append(sets, setOf(n.Caps))
		for _, set := range less(n.Caps) {
			sets = append(sets, set)
		}
	}
	slices.Sort(sets)
	sets = slices.Compact(sets)
	dir := programs(t, "plimsoll", "with")
	private := filepath.Join(dir, "private")
	if err := os.Mkdir(private, 0o711); err != nil { // nobody may connect to what lets him, and see nothing
		t.Fatal(err)
	}
	for name, conf := range map[string]string{"nginx.conf": nginxConf, "fpm.conf": fpmConf} {
		if err := os.WriteFile(filepath.Join(private, name), fmt.Appendf(nil, conf, private), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "--net", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", services)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "FPM="+fpm, "SETS="+strings.Join(sets, " "))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := map[string]map[string]probeCheckup{}
	for _, set := range sets {
		all[set] = parts(t, filepath.Join(private, set))
	}
	return all
}

// parts reads what doctor says of each probe and tracer.
func parts(t *testing.T, path string) map[string]probeCheckup {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c checkup
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	by := map[string]probeCheckup{}
	for _, p := range c.Hosts[0].Probes {
		by["probe "+p.Probe] = p
	}
	for _, p := range c.Tracers {
		by["tracer "+p.Probe] = p
	}
	return by
}

// lost are the signals that root reads and somebody else does not.
func lost(root, other probeCheckup) (names []string) {
	for name, st := range root.Signals {
		if st.State == model.Read && other.Signals[name].State != model.Read {
			names = append(names, fmt.Sprintf("%s (%s: %s)", name, other.Signals[name].State, other.Signals[name].Why))
		}
	}
	return names
}

// needless says of a capability that this kernel is set to do without it.
func needless(t *testing.T, kind string, c privilege.Cap) bool {
	t.Helper()
	if c != unix.CAP_SYSLOG {
		return false
	}
	value := func(name string) int {
		text, err := os.ReadFile("/proc/sys/kernel/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if kind == "probe" {
		return value("dmesg_restrict") == 0
	}
	return value("kptr_restrict") == 0 && value("perf_event_paranoid") <= 1
}

// With exactly what the table says each part does all that it does for root, with one
// less it does not; and what needs nothing does all without anything.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("privileges are root's to give")
	}
	all := checkups(t)
	for part, root := range all["root"] {
		kind, name, _ := strings.Cut(part, " ")
		caps := privilege.For(kind, name)
		if names := lost(root, all[setOf(caps)][part]); len(names) > 0 {
			t.Errorf("%s with %s lacks %q", part, setOf(caps), names)
		}
		for c, set := range less(caps) {
			names := lost(root, all[set][part])
			if slices.Contains([]string{"probe postgres", "probe mysql", "probe haproxy", "probe redis", "probe memcached", "probe varnish"}, part) {
				continue // none of them runs here, and that there is none can be seen without rights
			}
			if len(names) == 0 && root.Read > 0 && !needless(t, kind, c) {
				t.Errorf("%s reads the same without %s, with %s", part, c, set)
			}
			for _, name := range names { // what we may not see is not absent
				if strings.Contains(name, "("+string(model.Absent)+":") {
					t.Errorf("%s without %s: %s", part, c, name)
				}
			}
			if kind == "tracer" && len(names) > 0 && !strings.Contains(names[0], part+" lacks "+c.String()) {
				t.Errorf("%s without %s says %s", part, c, names[0])
			}
		}
	}
	for _, part := range []string{"probe nginx", "probe phpfpm", "probe service_log", "probe processes", "probe nftables", "probe kernel_log", "tracer offcpu"} {
		if all["root"][part].Read == 0 {
			t.Errorf("even root reads nothing of %s", part)
		}
	}
}

func TestPrivilegesOfHosts(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("privileges are root's to give")
	}
	dir := programs(t, "plimsoll", "with")
	other := exec.Command("unshare", "--net", "sh", "-c", "echo ready; exec sleep 600")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	name := "plimsoll-privileges-" + strconv.Itoa(os.Getpid())
	if said, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }()
	opens := func(set, spec string) bool {
		cmd := exec.Command(filepath.Join(dir, "with"), set, "plimsoll", "watch", "-d", "100ms", "--trace", "off", "--host", "x="+spec,
			"--dir", strings.ReplaceAll(set+spec, ":", "-"))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		var said bytes.Buffer
		cmd.Stderr = &said
		err := cmd.Run()
		t.Logf("%s with %s: %v %s", spec, set, err, said.Bytes())
		return err == nil
	}
	for part, spec := range map[string]string{"netns:NAME": "netns:" + name, "pid:N": fmt.Sprintf("pid:%d", other.Process.Pid)} {
		caps := privilege.For("host", part)
		if !opens(setOf(caps), spec) {
			t.Errorf("%s is not opened with %s", part, setOf(caps))
		}
		for c, set := range less(caps) {
			if opens(set, spec) {
				t.Errorf("%s is opened without %s", part, c)
			}
		}
	}
}

func TestPrivilegesOfCapture(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("privileges are root's to give")
	}
	dir := programs(t, "plimsoll", "with")
	captures := func(set string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, "with"), set, "plimsoll", "capture", "-i", "lo", "-d", "1ms")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	caps := privilege.For("command", captureLivePart)
	if said, err := captures(setOf(caps)); err != nil {
		t.Errorf("with %s: %v %s", setOf(caps), err, said)
	}
	for c, set := range less(caps) {
		said, err := captures(set)
		if want := "the command capture -i lacks " + c.String(); err == nil || !strings.Contains(said, want) {
			t.Errorf("without %s: %v %s", c, err, said)
		}
	}
}
