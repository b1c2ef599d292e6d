package kernel

import (
	"bytes"
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// pressures are the files of /proc/pressure with node_exporter's names. cpu
// "full" has no meaning for a whole machine (the kernel prints zero), and irq
// has no "some".
var pressures = []struct {
	resource   string
	some, full *model.Signal
}{
	{"cpu", pressureSignal("cpu", "waiting", "some threads waited for a CPU"), nil},
	{"io", pressureSignal("io", "waiting", "some threads waited for a disk"),
		pressureSignal("io", "stalled", "all threads that were not idle waited for a disk")},
	{"memory", pressureSignal("memory", "waiting", "some threads waited for memory"),
		pressureSignal("memory", "stalled", "all threads that were not idle waited for memory")},
	{"irq", nil, pressureSignal("irq", "stalled", "interrupts kept threads from running")},
}

func pressureSignal(resource, kind, help string) *model.Signal {
	return &model.Signal{Name: "node_pressure_" + resource + "_" + kind + "_seconds_total", Kind: model.Counter, Unit: "seconds",
		Help: "Time during which " + help + " (PSI).", Source: "/proc/pressure/" + resource, ByHand: "cat /proc/pressure/" + resource}
}

// Pressure reads pressure stall information (PSI), Linux 4.20 and later.
func Pressure() probe.Probe {
	p := probe.Probe{Name: "pressure", Scope: probe.PerMachine, Cost: costPressure,
		Blind: []string{"whose threads waited is not told"}}
	return fromFiles(p, func() []source {
		var sources []source
		for _, r := range pressures {
			var signals []*model.Signal
			for _, sig := range []*model.Signal{r.some, r.full} {
				if sig != nil {
					signals = append(signals, sig)
				}
			}
			sources = append(sources, source{path: "proc/pressure/" + r.resource, signals: signals,
				hint: pressureHint(r.resource),
				put: func(b []byte, out *probe.Out) error {
					return putPressure(b, r.some, r.full, out)
				}})
		}
		return sources
	})
}

func pressureHint(resource string) string {
	if resource == "irq" {
		return "this kernel does not count time lost to interrupts (Linux 6.1 and CONFIG_IRQ_TIME_ACCOUNTING do)"
	}
	return "this kernel has no pressure stall information (Linux 4.20 and CONFIG_PSI do; some need psi=1 at boot)"
}

func putPressure(b []byte, some, full *model.Signal, out *probe.Out) error {
	totals, err := parsePressure(b)
	if err != nil {
		return err
	}
	for line, sig := range map[string]*model.Signal{"some": some, "full": full} {
		if sig == nil {
			continue
		}
		if us, ok := totals[line]; ok {
			out.Put(sig, float64(us)/1e6)
		} else {
			out.Mark(sig, errNoField(sig.Source, "line "+line))
		}
	}
	return nil
}

// parsePressure returns the totals in microseconds of the lines
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" and "full …".
func parsePressure(b []byte) (map[string]uint64, error) {
	totals := map[string]uint64{}
	for line := range bytes.Lines(b) {
		name, rest := nextField(line)
		_, total, ok := bytes.Cut(rest, []byte("total="))
		if !ok {
			return nil, fmt.Errorf("line %q: want total=MICROSECONDS", line)
		}
		us, err := parseUint(bytes.TrimSpace(total))
		if err != nil {
			return nil, fmt.Errorf("line %s: total: %w", name, err)
		}
		totals[string(name)] = us
	}
	return totals, nil
}
