package kernel

import (
	"bytes"
	"fmt"
	"strconv"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// softnetColumns are the columns of softnet_stat that are told apart, in the
// kernel's order; nil ones are always zero.
var softnetColumns = []*model.Signal{
	softnetSignal("processed_total", model.Counter, "packets", "Packets taken from the network by each CPU."),
	softnetSignal("dropped_total", model.Counter, "packets", "Packets thrown away because the CPU's backlog (net.core.netdev_max_backlog) was full."),
	softnetSignal("times_squeezed_total", model.Counter, "times", "Times reception stopped with packets left because its budget or time was used up."),
	nil, nil, nil, nil, nil,
	softnetSignal("cpu_collision_total", model.Counter, "times", "Times two CPUs wanted to send on one device at once; zero on kernels since 4.8."),
	softnetSignal("received_rps_total", model.Counter, "times", "Times this CPU was woken by another to process packets (RPS)."),
	softnetSignal("flow_limit_count_total", model.Counter, "times", "Times a flow was held back by the backlog's flow limit."),
	softnetSignal("backlog_len", model.Gauge, "packets", "Packets in the CPU's backlog at this moment."),
}

func softnetSignal(name string, kind model.Kind, unit, help string) *model.Signal {
	return &model.Signal{Name: "node_softnet_" + name, Kind: kind, Unit: unit, Help: help,
		Labels: []string{"cpu"}, Source: "/proc/net/softnet_stat", ByHand: "cat /proc/net/softnet_stat  # hexadecimal, one row a CPU"}
}

// Softnet reads /proc/net/softnet_stat, which is the machine's, whatever the namespace.
func Softnet() probe.Probe {
	p := probe.Probe{Name: "softnet", Scope: probe.PerMachine, Cost: costSoftnet,
		Blind: []string{"packets that cross a veth are counted on the CPU that sent them"}}
	return fromFiles(p, func() []source {
		var signals []*model.Signal
		for _, s := range softnetColumns {
			if s != nil {
				signals = append(signals, s)
			}
		}
		return []source{{path: "proc/net/softnet_stat", hint: "this kernel has no network", signals: signals, put: putSoftnet}}
	})
}

func putSoftnet(b []byte, out *probe.Out) error {
	rows, err := parseSoftnet(b)
	if err != nil {
		return err
	}
	for i, sig := range softnetColumns {
		if sig == nil {
			continue
		}
		for _, r := range rows {
			if i < len(r.columns) {
				out.Put(sig, float64(r.columns[i]), r.cpu)
			} else {
				out.Mark(sig, errNoField("/proc/net/softnet_stat", fmt.Sprintf("column %d", i+1)))
			}
		}
	}
	return nil
}

type softnetRow struct {
	cpu     string
	columns []uint64
}

// parseSoftnet parses hexadecimal rows. Since Linux 5.14 column 13 is the
// CPU's number; before, the rows are those of the online CPUs in order.
func parseSoftnet(b []byte) ([]softnetRow, error) {
	const cpuColumn = 12
	var rows []softnetRow
	for line := range bytes.Lines(b) {
		var r softnetRow
		for _, f := range bytes.Fields(line) {
			v, err := strconv.ParseUint(string(f), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d, column %d: want hex: %w", len(rows)+1, len(r.columns)+1, err)
			}
			r.columns = append(r.columns, v)
		}
		if len(r.columns) < 3 {
			return nil, fmt.Errorf("line %d: want 9 columns or more, got %d", len(rows)+1, len(r.columns))
		}
		r.cpu = strconv.Itoa(len(rows))
		if len(r.columns) > cpuColumn {
			r.cpu = strconv.FormatUint(r.columns[cpuColumn], 10)
		}
		rows = append(rows, r)
	}
	return rows, nil
}
