package trace

import "plimsoll/internal/model"

// LostSignal is the counter of what a tracer lost, by what it was; help says what may
// be lost besides what every tracer may.
func LostSignal(tracer, unit, help string) *model.Signal {
	return &model.Signal{
		Name: "plimsoll_" + tracer + "_lost_total", Kind: model.Counter, Unit: unit, StartsAtZero: true,
		Help:   help + " Of recursion_misses, events of anybody at which the kernel did not run a program, since it was running on that CPU already.",
		Labels: []string{"what"}, Source: "the BPF programs themselves", ByHand: "bpftool map dump name .bss; bpftool prog show (recursion_misses)",
	}
}

// PutLost puts what was lost.
func PutLost(out Out, signal *model.Signal, lost map[string]uint64) {
	for what, n := range lost {
		out.Put(signal, float64(n), what)
	}
}
