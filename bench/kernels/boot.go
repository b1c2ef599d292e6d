package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience is how long a kernel may take in all: emulated, on a busy machine.
const patience = 3 * time.Hour

// pace ties the machine's clock to what it executes, 2 ns an instruction, and to time only while it sleeps. By the host's
// clock an emulated CPU is slower the busier the host is, and what a case's service then lacks is CPU.
const pace = "shift=1,sleep=on"

// modules are what the tracers and their tests look at; kernels have many of them built in.
var modules = []string{
	"virtio_pci", "virtio_blk", "9p", "9pnet_virtio", "ext4", "overlay", "loop", "veth", "dummy", "inet_diag", "tcp_diag", "nf_conntrack",
	"nf_tables", "nf_conntrack_netlink", "nft_counter", "nft_ct", "nft_numgen", "nft_limit", "nft_reject_inet", "sch_tbf",
}

//go:embed init.sh
var initScript []byte

//go:embed inside.sh
var insideScript []byte

// prepare builds what is run on every kernel into a folder.
func prepare() (string, error) {
	work, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "inside.sh"), insideScript, 0o755); err != nil {
		return "", err
	}
	fmt.Println("building what is run on every kernel")
	if _, err := build("build", filepath.Join(work, "plimsoll"), "./cmd/plimsoll"); err != nil {
		return "", err
	}
	tests, err := filepath.Glob("internal/trace/*/*.bpf.c")
	if err != nil || len(tests) == 0 {
		return "", fmt.Errorf("no tracers are here, %v; run this in the project's folder", err)
	}
	for _, name := range append(tracersOf(tests), "runqueue", "wait") {
		if _, err := build("test", filepath.Join(work, name+".test"), "./internal/trace/"+name); err != nil {
			return "", err
		}
	}
	return work, nil
}

// tracersOf returns the folders of C sources that are a tracer's.
func tracersOf(sources []string) []string {
	var names []string
	for _, s := range sources {
		if name := filepath.Base(filepath.Dir(s)); name != "sched" && name != "symbol" {
			names = append(names, name)
		}
	}
	return names
}

func build(how, into, what string) ([]byte, error) {
	args := []string{how, "-trimpath", "-ldflags", "-s -w", "-o", into, what}
	if how == "test" {
		args = append([]string{"test", "-c"}, args[1:]...)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", what, err, out)
	}
	return out, nil
}

// boot starts a kernel, and returns what inside.sh says on it.
func boot(u unpacked, work string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "kernel")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	initramfs, disk, said, console := temp+"/initramfs", temp+"/disk", temp+"/said", temp+"/console"
	if err := packInitramfs(u, initramfs); err != nil {
		return nil, err
	}
	if err := makeDisk(disk); err != nil {
		return nil, err
	}
	tracers, err := filepath.Abs("internal/trace")
	if err != nil {
		return nil, err
	}
	share := func(folder, tag string) []string {
		return []string{"-virtfs", "local,path=" + folder + ",mount_tag=" + tag + ",security_model=none,readonly=on,multidevs=remap"}
	}
	args := []string{
		fmt.Sprint(int(patience.Seconds())), "nice", "-n", "15", "qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount", pace, "-rtc", "clock=vm", "-cpu", "max", "-smp", "1", "-m", "1536",
		"-nodefaults", "-nographic", "-no-reboot", "-serial", "file:" + console, "-serial", "file:" + said,
		"-kernel", u.image, "-initrd", initramfs, "-append", "console=ttyS0 quiet no_timer_check tsc=reliable panic=-1", "-drive", "file=" + disk + ",format=raw,if=virtio",
	}
	args = append(append(append(args, share("/", "root")...), share(work, "work")...), share(tracers, "tracers")...)
	problem := exec.Command("timeout", args...).Run()
	out, err := os.ReadFile(said)
	if err != nil {
		return nil, err
	}
	out = []byte(strings.ReplaceAll(string(out), "\r", ""))
	if problem == nil && strings.HasSuffix(string(out), "@ end\n") {
		return out, nil
	}
	text, _ := os.ReadFile(console) // as far as it came
	return nil, fmt.Errorf("boot %s: it did not come to an end (%v); it said:\n%s\n%s", u.release, problem, text, out)
}

func makeDisk(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := f.Truncate(1 << 30); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = command("mkfs.ext4", "-q", "-F", path)
	return err
}

// packInitramfs puts busybox, the script that init is, and modules with all that they
// need, in the order in which they are to be loaded, into an archive.
func packInitramfs(u unpacked, archive string) error {
	root, err := os.MkdirTemp("", "initramfs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	for _, folder := range []string{"bin", "proc", "sys", "dev", "root", "lower", "disk", "modules"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			return err
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	if err := os.WriteFile(root+"/bin/busybox", program, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(root+"/init", initScript, 0o755); err != nil {
		return err
	}
	if err := copyModules(u, root+"/modules"); err != nil {
		return err
	}
	_, err = command("sh", "-c", `cd "$0" && find . | busybox cpio -o -H newc >"$1"`, root, archive)
	return err
}

func copyModules(u unpacked, into string) error {
	if _, err := command("depmod", "-b", u.modules, u.release); err != nil {
		return err
	}
	var order []string
	seen := map[string]bool{}
	for _, name := range modules {
		out, err := exec.Command("modprobe", "-d", u.modules, "-S", u.release, "--show-depends", name).Output()
		if err != nil {
			continue // not every kernel has every one
		}
		for _, line := range strings.Split(string(out), "\n") {
			path, is := strings.CutPrefix(strings.TrimSpace(line), "insmod ")
			if path, _, _ = strings.Cut(path, " "); !is || seen[path] {
				continue
			}
			seen[path] = true
			file, err := unpackModule(path, into)
			if err != nil {
				return err
			}
			order = append(order, file)
		}
	}
	return os.WriteFile(into+"/order", []byte(strings.Join(order, "\n")+"\n"), 0o644)
}

// unpackModule returns its file's name.
func unpackModule(path, into string) (string, error) {
	name := filepath.Base(path)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for suffix, program := range map[string]string{".xz": "xz", ".zst": "zstd"} {
		if plain, packed := strings.CutSuffix(name, suffix); packed {
			name = plain
			if data, err = command(program, "-dcq", path); err != nil {
				return "", err
			}
		}
	}
	return name, os.WriteFile(filepath.Join(into, name), data, 0o644)
}
