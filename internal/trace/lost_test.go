package trace

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// TestRecursionMissesAreLost has a program at the kernel's page faults make one itself,
// at which the kernel does not run it.
func TestRecursionMissesAreLost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("BPF needs root")
	}
	kernel, err := KernelTypes()
	if err != nil {
		t.Skip(err)
	}
	const tracepoint = "page_fault_kernel"
	if _, err := Arguments(kernel, tracepoint); err != nil {
		t.Skip(err) // as on other architectures than x86
	}
	if !tellsMisses() {
		t.Skip("kernels before 5.12 do not count recursion misses")
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: tracepoint, License: "GPL",
		Instructions: asm.Instructions{ // probe_read_user(stack, 8, an address that nobody maps)
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -8), asm.Mov.Imm(asm.R2, 8), asm.Mov.Imm(asm.R3, 8),
			asm.FnProbeReadUser.Call(), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	s := &Set{Maps: &ebpf.Collection{}, tellsMisses: true, counted: []*ebpf.Program{program}}
	before := missed(t, s)
	on, err := attachTracing(program)
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	faultInKernel(t)
	if after := missed(t, s); before != 0 || after == 0 {
		t.Errorf("%d misses before, %d after the program had run", before, after)
	}
}

func missed(t *testing.T, s *Set) uint64 {
	t.Helper()
	lost, err := s.Lost()
	if err != nil {
		t.Fatal(err)
	}
	return lost[recursion]
}

// faultInKernel has the kernel write to a page of ours that is not there yet.
func faultInKernel(t *testing.T) {
	t.Helper()
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if _, err := zero.Read(page); err != nil {
		t.Fatal(err)
	}
}
