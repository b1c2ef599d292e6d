package privilege

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestWiderCapabilities(t *testing.T) {
	for name, c := range map[string]struct {
		have Set
		want bool
	}{
		"nobody":         {0, false},
		"the old way":    {Of(unix.CAP_SYS_ADMIN), true},
		"the narrow way": {Of(unix.CAP_BPF, unix.CAP_PERFMON), true},
		"half of it":     {Of(unix.CAP_BPF), false},
		"the other half": {Of(unix.CAP_PERFMON), false},
		"all others":     {^Of(unix.CAP_SYS_ADMIN, unix.CAP_BPF, unix.CAP_PERFMON), false},
	} {
		if got := c.have.Has(For("tracer", "exec")...); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Of(unix.CAP_SYS_ADMIN).Has(For("tracer", "offcpu")...) {
		t.Error("CAP_SYS_ADMIN shows no kernel addresses")
	}
}

func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Table {
		for _, p := range n.Parts {
			if seen[n.Kind+p] {
				t.Errorf("%s %s stands there twice", n.Kind, p)
			}
			seen[n.Kind+p] = true
		}
		for _, c := range n.Caps {
			if c.String() == "" {
				t.Errorf("%s %v: capability %d has no name", n.Kind, n.Parts, int(c))
			}
		}
		if n.Why == "" {
			t.Errorf("%s %v: no reason", n.Kind, n.Parts)
		}
	}
	if got := Join([]Cap{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYSLOG}); got != "CAP_BPF, CAP_PERFMON and CAP_SYSLOG" {
		t.Error(got)
	}
	if got := For("probe", "loadavg"); got != nil {
		t.Errorf("%v for what all may read", got)
	}
}
