package requests

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/trace"
)

// since is the first kernel that was tried with all of it.
var since = trace.Kernel{Major: 6, Minor: 1}

// way is by which programs turns are told.
type way int

const (
	byTracepoints way = iota
	// byFunctions is on functions of the kernel in which these tracepoints stand, or would if it had them.
	byFunctions
)

var (
	// turnPoints are the tracepoints that tell turns.
	turnPoints = []string{"sk_data_ready", "sock_recv_length", "sock_send_length"}
	// functions are those that every kernel has.
	functions = []string{"sock_def_readable", "inet_recvmsg", "inet_sendmsg"}
	// pages are gone where what is spliced is written as all else is (since Linux 6.5).
	pages = []string{"inet_sendpage", "unix_stream_sendpage"}
	// inIPv6 may be of a module, whose functions the kernel's own types do not name.
	inIPv6 = []string{"inet6_recvmsg", "inet6_sendmsg"}
)

// programs are those that this kernel is to take.
func programs() (*ebpf.CollectionSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	wayOn(kernel).choose(spec, kernel, hasIPv6())
	return spec, nil
}

func wayOn(kernel *btf.Spec) way {
	for _, name := range turnPoints {
		if _, err := trace.Arguments(kernel, name); err != nil {
			return byFunctions
		}
	}
	return byTracepoints
}

// hasIPv6 is true where that is not known: a program too many is refused, and told.
func hasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return !errors.Is(err, fs.ErrNotExist)
}

// choose leaves out what is of the other way, and what this kernel has no need of.
func (w way) choose(spec *ebpf.CollectionSpec, kernel *btf.Spec, ipv6 bool) {
	for name, p := range spec.Programs {
		if w == byTracepoints && trace.OnFunction(p) || w == byFunctions && slices.Contains(turnPoints, p.AttachTo) ||
			slices.Contains(pages, p.AttachTo) && !trace.HasFunction(kernel, p.AttachTo) ||
			slices.Contains(inIPv6, p.AttachTo) && !ipv6 {
			delete(spec.Programs, name)
		}
	}
}
