package requests

import (
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/trace"
)

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
	wayOn(kernel).choose(spec, kernel)
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

// choose leaves out what is of the other way.
func (w way) choose(spec *ebpf.CollectionSpec, kernel *btf.Spec) {
	for name, p := range spec.Programs {
		if w == byTracepoints && trace.OnFunction(p) || w == byFunctions && slices.Contains(turnPoints, p.AttachTo) ||
			slices.Contains(pages, p.AttachTo) && !trace.HasFunction(kernel, p.AttachTo) {
			delete(spec.Programs, name)
		}
	}
}
