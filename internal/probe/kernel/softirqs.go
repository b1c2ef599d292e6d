package kernel

import (
	"bytes"
	"errors"
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var softirqs = &model.Signal{Name: "node_softirqs_functions_total", Kind: model.Counter, Unit: "runs",
	Help:   "How often each CPU ran each soft interrupt; NET_RX is packet reception.",
	Labels: []string{"cpu", "type"}, Source: "/proc/softirqs", ByHand: "watch -d cat /proc/softirqs"}

// Softirqs reads /proc/softirqs.
func Softirqs() probe.Probe {
	p := probe.Probe{Name: "softirqs", Scope: probe.PerMachine, Cost: costSoftirqs,
		Blind: []string{"counts runs, not the time they took"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/softirqs", hint: "this kernel does not show soft interrupts",
			signals: []*model.Signal{softirqs}, put: putSoftirqs}}
	})
}

func putSoftirqs(b []byte, out *probe.Out) error {
	rows, err := parseSoftirqs(b)
	if err != nil {
		return err
	}
	for _, r := range rows {
		out.Put(softirqs, float64(r.count), r.cpu, r.kind)
	}
	return nil
}

type softirqRow struct {
	cpu, kind string
	count     uint64
}

// parseSoftirqs parses a header of "CPU0 CPU1 …" and a line "NET_RX: 1 2 …"
// for each kind. CPUs that are offline have a column of their own, too.
func parseSoftirqs(b []byte) ([]softirqRow, error) {
	header, rest, _ := bytes.Cut(b, []byte("\n"))
	var cpus []string
	for _, f := range bytes.Fields(header) {
		n, ok := bytes.CutPrefix(f, []byte("CPU"))
		if !ok || len(n) == 0 {
			return nil, fmt.Errorf("header: want CPU0 CPU1 …, got %q", f)
		}
		cpus = append(cpus, string(n))
	}
	if len(cpus) == 0 {
		return nil, errors.New("header: want CPU0 CPU1 …, got nothing")
	}
	var rows []softirqRow
	for line := range bytes.Lines(rest) {
		name, numbers, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return nil, fmt.Errorf("want NAME: numbers, got %q", line)
		}
		counts, err := parseUints(numbers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bytes.TrimSpace(name), err)
		}
		if len(counts) != len(cpus) {
			return nil, fmt.Errorf("%s: want %d numbers, got %d", bytes.TrimSpace(name), len(cpus), len(counts))
		}
		kind := string(bytes.TrimSpace(name))
		for i, c := range counts {
			rows = append(rows, softirqRow{cpus[i], kind, c})
		}
	}
	return rows, nil
}
