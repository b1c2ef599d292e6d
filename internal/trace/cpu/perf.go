package cpu

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// How often each CPU is looked at in a second: not 100 or 20, so as not to run in
// step with what happens as often. What a look costs is the timer's interrupt, on
// a virtual machine some 100 µs of each CPU.
const (
	Hertz       = 99
	SparseHertz = 19
)

// events are the clocks that run the program, one on each CPU.
type events []int

// attach starts a clock on every CPU that is there.
func (t *Trace) attach(program *ebpf.Program) (io.Closer, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count the CPUs: %w", err)
	}
	var all events
	for cpu := range cpus {
		fd, err := clock(cpu, t.hertz, program)
		if errors.Is(err, unix.ENODEV) { // it is switched off
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a clock on CPU %d (perf_event_open): %w", cpu, err), all.Close())
		}
		all = append(all, fd)
	}
	return all, nil
}

func clock(cpu, hertz int, program *ebpf.Program) (int, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(hertz), Bits: unix.PerfBitFreq | unix.PerfBitDisabled | unix.PerfBitExcludeIdle,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program.FD())
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// Close stops the clocks.
func (e events) Close() error {
	var errs []error
	for _, fd := range e {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
