package cpu

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const sampler = "cpu_sample"

var (
	samplesTotal = &model.Signal{
		Name: "plimsoll_cpu_samples_total", Kind: model.Counter, Unit: "samples", StartsAtZero: true,
		Help:   "How often a thread was found on a CPU, asked 99 times a second on each (19 times in a run); divided by that, seconds of CPU time. mode is user or kernel.",
		Labels: []string{"groupname", "mode"}, Source: "BPF on the software event cpu-clock", ByHand: "pidstat -u 1",
	}
	functionSamples = &model.Signal{
		Name: "plimsoll_cpu_function_samples_total", Kind: model.Counter, Unit: "samples", StartsAtZero: true,
		Help:   "The same by the innermost function; other is all functions that were never found often.",
		Labels: []string{"groupname", "function"}, Source: "BPF on the software event cpu-clock", ByHand: "perf top",
	}
	collectorSamples = &model.Signal{
		Name: "plimsoll_cpu_collector_samples_total", Kind: model.Counter, Unit: "samples", StartsAtZero: true,
		Help:   "Those in which a function of a garbage collector was at work, or had called what was: Go's, V8's, Python's, Ruby's and PHP's, by their names. Java's and .NET's are told by the names of their threads.",
		Labels: []string{"groupname"}, Source: "BPF on the software event cpu-clock", ByHand: "perf record -g; perf report --children",
	}
	memorySamples = &model.Signal{
		Name: "plimsoll_cpu_memory_samples_total", Kind: model.Counter, Unit: "samples", StartsAtZero: true,
		Help:   "Those in which the kernel was busy with the thread's memory: a page fault, or mapping memory and taking it back.",
		Labels: []string{"groupname"}, Source: "BPF on the software event cpu-clock", ByHand: "perf record -g; perf report --children  # exc_page_fault, __vm_munmap",
	}
	lost = trace.LostSignal("cpu", "samples", "Samples of the cpu tracer, or their stacks, that found no room.")
)

var signals = []*model.Signal{samplesTotal, functionSamples, collectorSamples, memorySamples, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{samplesTotal: {sampler}, functionSamples: {sampler}, collectorSamples: {sampler}, memorySamples: {sampler}, lost: nil}
