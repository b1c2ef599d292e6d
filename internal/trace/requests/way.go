package requests

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
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
	chooseWalk(spec, mayWalkMaps())
	return spec, nil
}

// byFile is the program that walks over the files of all processes, in atOpen's place where that is refused.
const byFile = "requests_open_by_file"

// overFiles is what it iterates over.
const overFiles = "task_file"

// chooseWalk leaves one of the two programs that look at the sockets, under the name of the first.
func chooseWalk(spec *ebpf.CollectionSpec, mayWalkMaps bool) {
	if !mayWalkMaps {
		spec.Programs[atOpen] = spec.Programs[byFile]
	}
	delete(spec.Programs, byFile)
}

// mayWalkMaps asks the kernel whether it lets a program look at all sockets of a map. There are kernels whose makers
// took away iterators over what maps hold; what an older one lacks is told when the program is loaded.
var mayWalkMaps = sync.OnceValue(func() bool {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "bpf_sk_storage_map",
		License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		return !errors.Is(err, fs.ErrPermission)
	}
	return p.Close() == nil
})

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
