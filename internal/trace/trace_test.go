package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

func TestParseKernel(t *testing.T) {
	for release, want := range map[string]Kernel{"6.1.0-18-amd64": {6, 1}, "5.15.0": {5, 15}, "6.18.44-fc-v509": {6, 18}, "7.0-rc1": {7, 0}} {
		if got, err := ParseKernel(release); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", release, got, err)
		}
	}
	for _, bad := range []string{"", "x", "6", "-6.1"} {
		if k, err := ParseKernel(bad); err == nil {
			t.Errorf("%q is read as %v", bad, k)
		}
	}
	if !(Kernel{5, 13}).Less(Kernel{6, 1}) || (Kernel{6, 1}).Less(Kernel{6, 1}) || (Kernel{6, 2}).Less(Kernel{5, 13}) {
		t.Error("versions are not compared as versions")
	}
}

func FuzzParseKernel(f *testing.F) {
	f.Add("6.1.0-18-amd64")
	f.Fuzz(func(t *testing.T, release string) {
		if k, err := ParseKernel(release); err == nil && (k.Major < 0 || k.Minor < 0) {
			t.Errorf("%q is read as %v", release, k)
		}
	})
}

func TestHistogram(t *testing.T) {
	h := Histogram{1, 0, 3, 0, 1} // under 1 µs, …, [2, 4) µs, …, 8 µs and more
	if h.Count() != 5 {
		t.Errorf("count %d", h.Count())
	}
	for q, want := range map[float64]time.Duration{0.1: time.Microsecond, 0.5: 4 * time.Microsecond, 0.8: 4 * time.Microsecond} {
		if got, ok := h.Quantile(q); !ok || got != want {
			t.Errorf("quantile %v is %v, %v; want %v", q, got, ok, want)
		}
	}
	if got, ok := h.Quantile(0.99); ok {
		t.Errorf("what lies in the last slot has no bound, and got %v", got)
	}
	if _, ok := (Histogram{0, 0}).Quantile(0.5); ok {
		t.Error("of nothing there is no quantile")
	}
}

type row struct {
	Value  float64
	Labels []string
}

type rows []row

func (r *rows) Put(_ *model.Signal, v float64, labels ...string) {
	*r = append(*r, row{v, append([]string(nil), labels...)})
}

// Buckets hold all that is below, and those that never held anything are absent.
func TestHistogramAsBuckets(t *testing.T) {
	var got rows
	Histogram{0, 2, 0, 1, 4}.Put(&got, &model.Signal{Labels: []string{"groupname", "le"}}, "x")
	want := rows{{2, []string{"x", "2e-06"}}, {2, []string{"x", "4e-06"}}, {3, []string{"x", "8e-06"}}, {7, []string{"x", "+Inf"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestComm(t *testing.T) {
	for raw, want := range map[string]string{"nginx\x00\x00junk": "nginx", "exactly16letters": "exactly16letters", "": "", "a\xffb": "a\uFFFDb"} {
		if got := Comm([]byte(raw)); got != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
	}
}

func TestErrorsHaveTheirClass(t *testing.T) {
	old, first, new := Kernel{5, 10}, Kernel{5, 15}, Kernel{6, 1}
	verifier := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R1 invalid mem access"}}
	for name, c := range map[string]struct {
		err  error
		want model.State
	}{
		"no error":          {nil, model.Read},
		"refused":           {plainOn(new, "attach", unix.EPERM, first), model.Denied},
		"not in the kernel": {plainOn(new, "load", fmt.Errorf("map create: %w", ebpf.ErrNotSupported), first), model.Absent},
		"no such type":      {plainOn(new, "load", btf.ErrNotFound, first), model.Absent},
		"verifier":          {plainOn(new, "load", verifier, first), model.Failed},
		"verifier, older":   {plainOn(old, "load", verifier, first), model.Absent},
		"map, older":        {plainOn(old, "create the BPF maps", unix.EINVAL, first), model.Absent},
		"refused, older":    {plainOn(old, "attach", unix.EPERM, first), model.Denied},
		"anything else":     {plainOn(old, "load", unix.ENOMEM, first), model.Failed},
	} {
		if st := host.StatusOf(c.err); st.State != c.want || (st.Why == "") != (c.err == nil) {
			t.Errorf("%s: %+v, want %s", name, st, c.want)
		}
	}
}

// A signal is absent as soon as one program that it rests on is; the others stand.
func TestSignalsRestOnTheirPrograms(t *testing.T) {
	a, b := &model.Signal{Name: "a"}, &model.Signal{Name: "b"}
	s := &Set{
		needs:    map[*model.Signal][]string{a: {"one"}, b: {"one", "two"}},
		programs: []Program{{Name: "one"}, {Name: "two", Err: plain("load the BPF program two", ebpf.ErrNotSupported, Kernel{5, 15})}},
	}
	if !s.Has(a) || s.Has(b) {
		t.Errorf("has a %v, b %v; want true, false", s.Has(a), s.Has(b))
	}
	status := s.Status()
	if status["a"].State != model.Read || status["b"].State != model.Absent {
		t.Errorf("%+v", status)
	}
}

func TestArgumentsOfTracepoints(t *testing.T) {
	kernel, err := KernelTypes()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Arguments(kernel, "sched_wakeup"); err != nil || n != 1 {
		t.Errorf("sched_wakeup has %d arguments, %v; want 1", n, err)
	}
	if _, err := Arguments(kernel, "no_such_tracepoint"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tracepoint that there is not: %v", err)
	}
}
