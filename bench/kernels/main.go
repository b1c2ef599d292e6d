// Kernels boots the kernels that people run, one after the other, and writes what
// Plimsoll sees on each into docs/kernels.md.
//
//	go run ./bench/kernels [-ubuntu MIRROR] [-o docs/kernels.md] [KERNEL…]
//	go run ./bench/kernels -record [-ubuntu MIRROR] [KERNEL…]
//
// KERNEL is one of the table's (5.10, 5.15, 6.1, 6.12, newest), or here, which is this machine
// without any other kernel; none is all of them. Of those that are not named the table has what was seen last. The kernels come from the packages of Debian and Ubuntu, by apt-get,
// from this machine's own mirror of Debian and the one of Ubuntu that is named; they are kept in
// ~/.cache/plimsoll-kernels. Nothing is installed.
//
// Each is booted by qemu in software emulation, since not every machine has more, with
// this machine's files, over which a disk of its own lies for what is written. There it runs
// doctor, each tracer for three seconds, of its tests those that count workloads of known
// size, a run on an nginx, six lab cases, and a tuning that is taken back. What is slow
// because it is emulated is no finding. A kernel takes ten to twenty minutes of one CPU.
//
// -record cuts the types that our BPF objects ask for out of each kernel, also of those
// for arm64, and puts them where the test of internal/trace looks for them.
//
// It needs Debian, qemu-system-x86, busybox-static, kmod, xz-utils and zstd, and the
// packages of scripts/install-deps tests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "kernels: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	page := flag.String("o", "docs/kernels.md", "write the table to this `FILE`")
	ubuntu := flag.String("ubuntu", "", "Ubuntu's packages are at this `MIRROR`")
	record := flag.Bool("record", false, "record the kernels' types for the tests")
	flag.Parse()
	names := flag.Args()
	home, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	s := store{folder: filepath.Join(home, "plimsoll-kernels"), ubuntu: *ubuntu}
	if *record {
		return recordAll(&s, names)
	}
	if missing := lacks("qemu-system-x86_64", "busybox", "depmod", "modprobe", "xz", "zstd", "mkfs.ext4"); len(missing) > 0 {
		fmt.Printf("kernels: skipped: %v is not here; apt-get install qemu-system-x86 busybox-static kmod xz-utils zstd e2fsprogs\n", missing)
		return nil
	}
	work, err := prepare()
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var all []*seen
	var failed error
	for _, k := range kernels {
		again := len(names) == 0 || slices.Contains(names, k.name)
		one, err := s.last(k)
		if again {
			one, err = s.look(k, work)
		} else if errors.Is(err, os.ErrNotExist) { // it was never looked at
			continue
		}
		if errors.Is(err, errSkipped) {
			fmt.Printf("%s: skipped: %v\n", k.name, err)
			continue
		}
		if err != nil { // the others are worth having all the same
			failed = errors.Join(failed, fmt.Errorf("%s: %w", k.name, err))
			continue
		}
		fmt.Printf("%s: Linux %s\n", k.name, one.release)
		all = append(all, one)
	}
	if len(all) == 0 {
		return failed
	}
	return errors.Join(failed, os.WriteFile(*page, []byte(table(all)), 0o644))
}

func lacks(programs ...string) []string {
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// look says what is seen on one kernel, and keeps it.
func (s *store) look(k kernel, work string) (*seen, error) {
	out, err := s.ask(k, work)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.keptAt(k)), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.keptAt(k), out, 0o644); err != nil {
		return nil, err
	}
	return s.last(k)
}

// ask runs inside.sh on a kernel; without a suite that is this machine's.
func (s *store) ask(k kernel, work string) ([]byte, error) {
	if k.suite == "" {
		out, err := exec.Command("/bin/sh", filepath.Join(work, "inside.sh"), work, "internal/trace").Output()
		if err != nil {
			return nil, fmt.Errorf("look at this machine: %w", err)
		}
		return out, nil
	}
	at, err := s.fetch(k, "amd64")
	if err != nil {
		return nil, err
	}
	return boot(at, work)
}

func (s *store) keptAt(k kernel) string { return filepath.Join(s.folder, "seen", k.name) }

// last is what was seen when a kernel was looked at last.
func (s *store) last(k kernel) (*seen, error) {
	out, err := os.ReadFile(s.keptAt(k))
	if err != nil {
		return nil, err
	}
	about, err := os.Stat(s.keptAt(k))
	if err != nil {
		return nil, err
	}
	return read(k, out, about.ModTime())
}

// recordAll keeps the types of each kernel, for each architecture that it is had for.
func recordAll(s *store, names []string) error {
	need, err := readNeeded("internal/trace/*/bpf_bpfel.o")
	if err != nil {
		return err
	}
	for _, k := range kernels {
		if k.suite == "" || len(names) > 0 && !slices.Contains(names, k.name) {
			continue
		}
		for _, arch := range k.types {
			at, err := s.fetch(k, arch)
			if errors.Is(err, errSkipped) {
				fmt.Printf("%s: skipped: %v\n", k.name, err)
				continue
			}
			if err != nil {
				return err
			}
			if err := recordTypes(at, arch, need); err != nil {
				return err
			}
		}
	}
	return nil
}
