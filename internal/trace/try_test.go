package trace

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"plimsoll/internal/model"
)

// A report of which an indispensable part is missing is none, since it would show
// zeros for it; one that lacks something else is.
func TestLacks(t *testing.T) {
	no := errors.New("no")
	tracer := Tracer{Tracepoints: []string{"needed"}}
	for name, c := range map[string]struct {
		programs []Program
		want     error
	}{
		"nothing":       {[]Program{{Tracepoint: "needed"}, {Tracepoint: "more"}}, nil},
		"something":     {[]Program{{Tracepoint: "needed"}, {Tracepoint: "more", Err: no}}, nil},
		"what it needs": {[]Program{{Tracepoint: "more"}, {Tracepoint: "needed", Err: no}}, no},
		"all that is":   {[]Program{{Tracepoint: "more", Err: no}}, no},
	} {
		if got := tracer.Lacks(c.programs); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The kernel is asked, once: what it refuses is known before anything is attached.
func TestKernelIsAskedOnce(t *testing.T) {
	if err := (Tracer{}).MayRun(); errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Skip(err)
	}
	there, refused := &model.Signal{Name: "there"}, &model.Signal{Name: "refused"}
	asked := 0
	tracer := Tracer{
		Name: "asked", FirstKernel: Kernel{9, 9}, Needs: map[*model.Signal][]string{there: {"good"}, refused: {"good", "bad"}},
		Programs: func() (*ebpf.CollectionSpec, error) {
			asked++
			program := func(code ...asm.Instruction) *ebpf.ProgramSpec {
				return &ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_switch", License: "GPL", Instructions: code}
			}
			return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{
				"good": program(asm.Mov.Imm(asm.R0, 0), asm.Return()),
				"bad":  program(asm.LoadMem(asm.R0, asm.R9, 0, asm.DWord), asm.Return()), // of a register that was never set
			}}, nil
		},
	}
	for range 2 {
		status, err := tracer.Try()
		if err != nil || status["there"].State != model.Read || status["refused"].State != model.Absent {
			t.Errorf("%+v, %v; want there read, refused absent", status, err)
		}
		if err := tracer.CanRun(); err != nil {
			t.Errorf("it can run in part, and says %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("the kernel was asked %d times", asked)
	}
	tracer.Tracepoints = []string{"sched_switch"}
	if err := tracer.CanRun(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that it needs is refused: %v", err)
	}
}
