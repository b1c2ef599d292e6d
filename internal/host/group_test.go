package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseGroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/nginx.service\n":                                "/system.slice/nginx.service",
		"2:cpu:/docker/x\n1:name=systemd:/system.slice/a.service\n0::/\n": "/system.slice/a.service",
		"2:cpu:/docker/x\n1:name=systemd:/\n0::/\n":                       "/docker/x",
		"3:cpu:/a\n1:name=systemd:/b\n0::/user.slice/c.service\n":         "/user.slice/c.service",
		"0::/a:b c\n": "/a:b c", "": "", "0::": "", "x": "", "0::relative\n": "", "0::/\n": "",
	} {
		if got := parseGroup([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseGroup(f *testing.F) {
	f.Add([]byte("1:name=systemd:/\n0::/docker/x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := parseGroup(b); got != "" && (got[0] != '/' || strings.Contains(got, "\n")) {
			t.Errorf("%q", got)
		}
	})
}

// tree is a /proc with the control groups of processes.
func tree(t *testing.T, groups map[int]string) string {
	t.Helper()
	root := t.TempDir()
	for pid, text := range groups {
		dir := filepath.Join(root, "proc", strconv.Itoa(pid))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/cgroup", []byte("0::"+text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// anybodys trusts every control group.
func anybodys(string) error { return nil }

func TestUnit(t *testing.T) {
	id := strings.Repeat("ab", 32)
	root := tree(t, map[int]string{
		1: "/init.scope", 30: "/system.slice/nginx.service", 31: "/system.slice/nginx.service", 20: "/docker/" + id + "/system.slice/nginx.service",
		40: "/system.slice/system-php.slice/php@8.service/pool", 50: "/user.slice/u/app.service", 51: "/user.slice/v/app.service", 60: "/system.slice/nginx.service.d",
	})
	for name, want := range map[string]group{
		"nginx": {"/system.slice/nginx.service", 30}, "nginx.service": {"/system.slice/nginx.service", 30},
		"php@8": {"/system.slice/system-php.slice/php@8.service", 40}, "system-php.slice": {"/system.slice/system-php.slice", 40},
	} {
		if got, err := unit(root+"/proc", name, anybodys); got != want || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := unit(root+"/proc", "app", anybodys); err == nil || !strings.Contains(err.Error(), "several units are called app.service: /user.slice/u/app.service (process 50), /user.slice/v/app.service") {
		t.Error(err)
	}
	if _, err := unit(root+"/proc", "none", anybodys); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// The files are those of docker, podman and containerd, each with a container that ran.
func TestContainer(t *testing.T) {
	const root = "testdata/containers"
	const web = "4b5e57f6eb2f42b9039b3d1e13929295f231749c510cbe341cd68036d9af97e2" // containerd's
	ids := map[string]string{
		"plim-dock": "a5c31b2394e34f345b1cc41623429d4c9d6c68141ec78f4cd7b516450f2143de", "plim-web": "bb6e976545cc3553d42d9fa7911cf9de232e5a857efa291ef21f67f9976da0c4", "plim-n": web,
		web[:4]: web, web: web,
	}
	for name, id := range ids {
		got, err := container(root, name, anybodys)
		if err != nil || containerID(filepath.Base(got.path)) != id || got.pid == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"none", "4b5", "conmon", "../x", "plim"} {
		if got, err := container(root, bad, anybodys); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there run 4b5e57f6eb2f plim-n, a5c31b2394e3 plim-dock, bb6e976545cc plim-web;") {
			t.Errorf("%s: %+v, %v", bad, got, err)
		}
	}
}

// A user who names a control group of his own after a container, or a unit, is not taken
// for it, nor does he hide it.
func TestAUsersOwnGroupIsNobodyElse(t *testing.T) {
	id := strings.Repeat("ab", 32)
	real, own := "/system.slice/docker-"+id+".scope", "/user.slice/user-7.slice/user@7.service/"+id
	users := func(path string) error {
		if within(path, "/user.slice") {
			return errors.New("user 7's")
		}
		return nil
	}
	both := tree(t, map[int]string{5: own, 9: real})
	if got, err := container(both, id[:12], users); err != nil || got != (group{real, 9}) {
		t.Errorf("%+v, %v", got, err)
	}
	alone := tree(t, map[int]string{5: own, 6: "/user.slice/user-7.slice/user@7.service/nginx.service"})
	if _, err := container(alone, id, users); err == nil || !strings.Contains(err.Error(), "user 7's; name a process of it") {
		t.Error(err)
	}
	if _, err := unit(alone+"/proc", "nginx", users); err == nil || !strings.Contains(err.Error(), "user 7's; name a process of it") {
		t.Error(err)
	}
}

// The same with real control groups: one that was handed to a user, and what he makes in it.
func TestTrustedGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("handing a control group to a user needs root")
	}
	name := "/plimsoll-trust-" + strconv.Itoa(os.Getpid())
	top := ""
	for _, mount := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(mount + "/cgroup.procs"); err == nil && os.Mkdir(mount+name, 0o755) == nil {
			top = mount
			break
		}
	}
	if top == "" {
		t.Skip("no control group of version 2 can be made here")
	}
	t.Cleanup(func() { _ = os.Remove(top + name) })
	inner := name + "/docker-" + strings.Repeat("ab", 32) + ".scope"
	if err := os.Mkdir(top+inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(top + inner) })
	if err := TrustedGroup(inner); err != nil {
		t.Error(err)
	}
	if err := os.Chown(top+name, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := TrustedGroup(inner); err == nil || !strings.Contains(err.Error(), "user 65534's") {
		t.Errorf("beneath a user's: %v", err)
	}
	if err := TrustedGroup(name + "/none"); err == nil {
		t.Error("one that is not there is trusted")
	}
	if err := TrustedGroup("/../x"); err == nil {
		t.Error("one outside is trusted")
	}
}

func TestContainerID(t *testing.T) {
	id := strings.Repeat("0f", 32)
	for part, want := range map[string]string{
		id: id, "docker-" + id + ".scope": id, "libpod-" + id + ".scope": id, "crio-" + id: id, "cri-containerd-" + id + ".scope": id, "nerdctl-" + id + ".scope": id,
		"libpod-conmon-" + id + ".scope": "", "crio-conmon-" + id + ".scope": "", id[:63]: "", id + "0": "", "x" + id: "", "kubepods.slice": "",
	} {
		if got := containerID(part); got != want {
			t.Errorf("%s: %q", part, got)
		}
	}
}

// A unit on the machine's own network has its processes alone; the rest stays the machine's.
func TestAUnitHasItsProcessesAlone(t *testing.T) {
	const unit = "/system.slice/nginx.service"
	h, machine := &Host{netns: 1, group: unit}, &Host{netns: 1, machine: true}
	for group, mine := range map[string]bool{unit: true, unit + "/worker": true, unit + "2": false, "/": false, "": false} {
		p := &Proc{PID: 7, NetNS: 1, group: group}
		if h.owns(p, []*Host{machine}) != mine || machine.owns(p, []*Host{h}) == mine {
			t.Errorf("%q: the unit's: %v", group, !mine)
		}
	}
}

// The same with a real control group.
func TestOpenAUnit(t *testing.T) {
	name := "plimsoll-host-" + strconv.Itoa(os.Getpid()) + ".service"
	dir := ""
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(top + "/cgroup.procs"); err == nil && os.Mkdir(filepath.Join(top, name), 0o755) == nil {
			dir = filepath.Join(top, name)
			break
		}
	}
	if dir == "" {
		t.Skip("no control group of version 2 can be made here")
	}
	t.Cleanup(func() { // its processes are gone by now, which the kernel may notice later
		for deadline := time.Now().Add(time.Minute); os.Remove(dir) != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
	})
	pid := sleeper(t, "env")
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Skip(err)
	}
	h, local := mustOpen(t, "web", "unit:"+name), openLocal(t)
	Join([]*Host{h, local})
	has := func(h *Host, pid int) bool {
		procs, err := h.Procs()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(procs, func(p Proc) bool { return p.PID == pid })
	}
	if !has(h, pid) || has(h, os.Getpid()) || has(local, pid) || !has(local, os.Getpid()) {
		t.Error("processes are not where they belong")
	}
}
