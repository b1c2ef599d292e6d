package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where cgroups are mounted: v1 has a folder for each controller
// there, v2 the file cgroup.controllers.
const cgroupRoot = "/sys/fs/cgroup"

// cpuPeriod is the kernel's default period of a CPU limit, and minQuota the
// least that it accepts, in microseconds.
const (
	cpuPeriod = 100000
	minQuota  = 1000
)

// cgroupLimit is one limit as both versions of cgroups write it.
type cgroupLimit struct {
	controller, v1, v2 string // v1 and v2 are file names
	value1, value2     string
}

// limits fills in the group's templates.
func (g *Cgroup) limits(v values) ([]cgroupLimit, error) {
	text, err := v.renderAll("cgroup "+g.Name, g.texts())
	if err != nil {
		return nil, err
	}
	var limits []cgroupLimit
	if text[0] != "" {
		cpus, err := strconv.ParseFloat(text[0], 64)
		if err != nil || cpus*cpuPeriod < minQuota {
			return nil, fmt.Errorf("cgroup %s: cpus %q: expected a number of CPUs, as 0.5", g.Name, text[0])
		}
		quota := strconv.Itoa(int(cpus * cpuPeriod))
		limits = append(limits, cgroupLimit{"cpu", "cpu.cfs_quota_us", "cpu.max", quota, fmt.Sprintf("%s %d", quota, cpuPeriod)})
	}
	if text[1] != "" {
		limits = append(limits, cgroupLimit{"memory", "memory.limit_in_bytes", "memory.max", text[1], text[1]})
	}
	if text[2] != "" {
		limits = append(limits, cgroupLimit{"pids", "pids.max", "pids.max", text[2], text[2]})
	}
	if text[3] != "" {
		disk, err := diskNumber(diskRoot)
		if err != nil {
			return nil, fmt.Errorf("cgroup %s: %w", g.Name, err)
		}
		limits = append(limits, cgroupLimit{ioController(), "blkio.throttle.write_bps_device", "io.max", disk + " " + text[3], disk + " wbps=" + text[3]})
	}
	return limits, nil
}

// ioController is the name of the controller of disks.
func ioController() string {
	if unifiedCgroups() {
		return "io"
	}
	return "blkio"
}

// diskNumber is the number of the whole disk, as 8:0, that a directory is on.
// A limit is the disk's; the kernel refuses a partition's number.
func diskNumber(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", fmt.Errorf("disk of %s: %w", dir, err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	device, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return "", fmt.Errorf("disk of %s: expected a file system on one disk, such as ext4: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		device = filepath.Dir(device)
	}
	data, err := os.ReadFile(filepath.Join(device, "dev"))
	if err != nil {
		return "", fmt.Errorf("disk of %s: %w", dir, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// cgroupDir is a group's directory: in v2 one, in v1 one for each controller.
func (l *Lab) cgroupDir(controller, name string) string {
	if unifiedCgroups() {
		controller = ""
	}
	return filepath.Join(cgroupRoot, controller, l.prefix()+"."+name)
}

func unifiedCgroups() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

func (l *Lab) makeCgroup(g *Cgroup, v values) error {
	limits, err := g.limits(v)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		dir, file, value := l.cgroupDir(limit.controller, g.Name), limit.v1, limit.value1
		if unifiedCgroups() {
			file, value = limit.v2, limit.value2
			if err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+"+limit.controller), 0); err != nil {
				return fmt.Errorf("cgroup %s: switch controller %s on: %w", g.Name, limit.controller, err)
			}
		}
		if err := l.note(entry{Do: "cgroup", Name: g.Name, Path: dir}); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cgroup %s: controller %s: %w", g.Name, limit.controller, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			return fmt.Errorf("cgroup %s: set %s to %q: %w", g.Name, file, value, err)
		}
	}
	return nil
}

// enterCgroup puts words before a command line that make it begin inside the
// group. A group without limits was not made, and leaves the words out.
func (l *Lab) enterCgroup(name string, argv []string) []string {
	var enter strings.Builder
	for _, controller := range []string{"cpu", "memory", "pids", ioController()} {
		dir := l.cgroupDir(controller, name)
		if _, err := os.Stat(dir); err == nil {
			fmt.Fprintf(&enter, "echo $$ >%s/cgroup.procs && ", dir)
		}
	}
	if enter.Len() == 0 {
		return argv
	}
	return append([]string{"/bin/sh", "-c", enter.String() + `exec "$@"`, "sh"}, argv...)
}

// removeCgroup takes a group away once its processes are gone, which the
// kernel notices a moment after they have ended.
func (l *Lab) removeCgroup(e entry) error {
	path := filepath.Clean(e.Path)
	if !strings.HasPrefix(path, cgroupRoot+"/") || !strings.HasPrefix(filepath.Base(path), l.prefix()+".") {
		return fmt.Errorf("journal names cgroup %s, which is not the lab's: left alone", e.Path)
	}
	var err error
	for range 100 {
		err = os.Remove(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove cgroup: %w", err)
}
