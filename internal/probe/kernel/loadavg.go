package kernel

import (
	"fmt"
	"strconv"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var loads = []*model.Signal{
	loadSignal("1", "minute"), loadSignal("5", "5 minutes"), loadSignal("15", "15 minutes"),
}

func loadSignal(n, span string) *model.Signal {
	return &model.Signal{Name: "node_load" + n, Kind: model.Gauge, Unit: "threads",
		Help:   "Threads running, waiting for a CPU or in uninterruptible sleep, damped over the last " + span + "; lags behind the truth.",
		Source: "/proc/loadavg", ByHand: "uptime"}
}

// LoadAvg reads /proc/loadavg.
func LoadAvg() probe.Probe {
	p := probe.Probe{Name: "loadavg", Scope: probe.PerMachine, Every: 5 * time.Second, Cost: costLoadAvg,
		Blind: []string{"a short burst hardly moves a load average; node_procs_running shows it"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/loadavg", hint: "no /proc/loadavg; is /proc mounted?", signals: loads, put: putLoadAvg}}
	})
}

func putLoadAvg(b []byte, out *probe.Out) error {
	v, err := parseLoadAvg(b)
	if err != nil {
		return err
	}
	for i, sig := range loads {
		out.Put(sig, v[i])
	}
	return nil
}

// parseLoadAvg parses the averages over 1, 5 and 15 minutes.
func parseLoadAvg(b []byte) (v [3]float64, err error) {
	for i := range v {
		var f []byte
		f, b = nextField(b)
		if v[i], err = strconv.ParseFloat(string(f), 64); err != nil {
			return v, fmt.Errorf("load average %d of 3: %w", i+1, err)
		}
	}
	return v, nil
}
