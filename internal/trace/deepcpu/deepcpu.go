// Package deepcpu is the CPU profile with whole stacks: of binaries without
// frame pointers, and with the functions and lines of PHP, Python, Node, Java,
// Ruby, Perl, .NET, Erlang and Go programs.
//
// It builds on the OpenTelemetry eBPF profiler, which runs in a process of its
// own (Serve): its memory, its threads and its two seconds in the kernel's
// verifier are apart from what measures, and it can be killed.
package deepcpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// How often each CPU that works is looked at in a second: not 100 or 20, so as not
// to run in step with what programs do as often. What a look costs is mostly the
// timer's interrupt; in a run it must not show in what is measured.
const (
	Hertz       = 99
	SparseHertz = 19
)

const (
	// patienceStart is how long the process may take to load its programs: two
	// seconds of CPU time, and machines under test are busy.
	patienceStart = 90 * time.Second
	// patience is how long it may take to answer.
	patience = 30 * time.Second
)

// Spawn starts the process in which Serve runs. What is written reaches Serve's
// input, what is read is its output. Close closes that input, waits a moment for
// the process to end, and kills it then; it may be called while a read waits.
type Spawn func() (io.ReadWriteCloser, error)

// Tracer declares it.
func Tracer(spawn Spawn) trace.Tracer {
	return trace.Tracer{
		Name:        "deepcpu",
		Short:       "where the CPU time goes, down to PHP and Python lines",
		About:       "where the CPU time goes, with whole stacks: binaries without frame pointers, and functions of PHP, Python, Node, Java, Ruby",
		Long:        long,
		Level:       trace.Auto,
		Profile:     "deepcpu",
		Signals:     signals,
		FirstKernel: trace.Kernel{Major: 5, Minor: 10},
		Cost:        cost,
		Blind:       blind,
		ByHand:      "perf record -F 99 -a --call-graph dwarf (native functions only); py-spy top -p PID, phpspy, async-profiler (one process, one language)",
		Start:       func() (trace.Running, error) { return Start(spawn, Hertz, nil) },
		StartInRun:  func() (trace.Running, error) { return Start(spawn, SparseHertz, nil) },
		StartFor:    func(hosts []*host.Host, more bool) (trace.Running, error) { return startFor(spawn, hosts, more) },
	}
}

// startFor starts it for the interpreters that run on these hosts, and for all where more may be started by a command.
func startFor(spawn Spawn, hosts []*host.Host, more bool) (trace.Running, error) {
	if more {
		return Start(spawn, SparseHertz, nil)
	}
	found, err := languagesOn(hosts)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, host.Absent("no " + anyLanguage() + " ran when the tracers were started; --trace full looks at whatever starts later, too")
	}
	return Start(spawn, SparseHertz, found)
}

const long = `Looks 99 times a second at what each CPU runs, and reads the whole stack: through
binaries that were built without frame pointers, and through the interpreters of
PHP, Python, Node, Java, Ruby, Perl, .NET and Erlang, whose functions it names
with file and line. Of each process group it shows the functions that the CPU
time was spent in: of the innermost one that belongs to the program, not to its
interpreter. The whole stacks are in the file that -o writes. In a run it looks 19
times a second, and one sample stands for 1/19 of a second.

It takes one to two seconds of CPU time to start, which are over before it
watches, and 60 to 150 MB of memory; "plimsoll trace cpu" is lighter, and shows
less. "plimsoll run" and "watch" have it where an interpreter runs (--trace auto),
for the languages that run then.`

const cost = "at the start, before anything is watched, 0.4 to 1.0 s of CPU time where one language is read (Python the most), 1.2 s for all, nearly all of it in the kernel's verifier (2 s on a slower machine); " +
	"then 22 to 36 µs of BPF run time a sample and, in a run (19 samples a second on each CPU), 0.7 to 1.4 % of one CPU for the process that reads them, 2 to 4 % 99 times a second " +
	"(nginx, PHP-FPM, Python; Linux 6.18, 2 CPUs); 60 to 105 MB of memory, and 34 MB of the kernel's"

var blind = []string{
	"a process counts once its binaries are read, mostly a tenth of a second after it was first sampled, longer for large ones: what it did before is in no count, and only the report says how much CPU time was used and how much was sampled",
	"where a process has just mapped something new, the stack ends: it is shown as [stack not read] and counted by lost_total{what=\"stacks_unread\"}",
	"processes that live only for a few milliseconds are seldom in it",
	"a native function of a process that has ended is named only if its binary was in use by another, or was looked at before",
	"some parts of binaries that are mapped twice (built-in functions of Node) stay without a name",
	"while a run pauses it, samples are dropped, and the work of taking them goes on",
	"what runs with interrupts off is seen when they are on again",
	"in a PID namespace of our own (a container), only processes of that namespace are seen",
	"in a run at level auto, languages of which no interpreter ran when tracing began are not read: what is started later is in no count of functions",
	"what a library keeps for its callers (a handler that a framework calls later) is told for the function that is at work then",
	"a program that lies in a library's folder (an application installed with pip) is told as a library: by its innermost function",
	"the first three samples of a function are among the others",
	"the kernel sets aside 2.5 to 5 MB for each CPU, as a buffer",
}

var functionSamples = &model.Signal{
	Name: "plimsoll_deepcpu_function_samples_total", Unit: "samples", Kind: model.Counter, Labels: []string{"groupname", "function"}, StartsAtZero: true,
	Refines: "plimsoll_cpu_function_samples_total",
	Help:    "How often a thread of a script (PHP, Python, Node, Java, Ruby …) was found on a CPU, asked 19 times a second on each, by the innermost function of the program's own files (list (app/shop.py:12)), with that of a library which it called and in which the time went before it (dumps (json/__init__.py:183) in list (app/shop.py:12)); where there is none, by the innermost function. other is functions that were never found often, [native] what no script is on the stack of; nothing is counted of an interpreter that was not there when tracing began.",
	Source:  "perf event cpu-clock", ByHand: "plimsoll trace deepcpu -d 10s; py-spy top -p PID",
}

var lostTotal = &model.Signal{
	Name: "plimsoll_deepcpu_lost_total", Unit: "samples", Kind: model.Counter, Labels: []string{"what"}, StartsAtZero: true,
	Help:   "Samples of the CPU that are not whole: found no room in the kernel's buffer (buffer), found no room in our table (stacks), were of a group without room among ours (groups), or of which the stack of the process could not be read (stacks_unread).",
	Source: "perf event cpu-clock", ByHand: "none",
}

// What is lost: no room in the kernel's buffer, among our stacks and groups, a stack
// that could not be read.
const (
	lostBuffer = "buffer"
	lostStacks = "stacks"
	lostGroups = "groups"
	lostUnread = "stacks_unread"
)

var signals = []*model.Signal{functionSamples, lostTotal}

// request is one line to the process, answer one line from it. The first asks it to
// watch.
type request struct {
	Do string `json:"do"`
	// Hertz is how often to look, for watch, and Languages what to name the functions of: all, and Go's, where there are none.
	Hertz     int      `json:"hertz,omitempty"`
	Languages []string `json:"languages,omitempty"`
	// IDs are process ids, for only and ignore.
	IDs []int `json:"ids,omitempty"`
}

// What can be asked for.
const (
	doWatch   = "watch"
	doCount   = "count"
	doProfile = "profile"
	doPause   = "pause"
	doResume  = "resume"
	doOnly    = "only"
	doIgnore  = "ignore"
)

type answer struct {
	Error string `json:"error,omitempty"`
	// Lost counts samples that are not whole, by what is missing.
	Lost map[string]uint64 `json:"lost,omitempty"`
	// Functions are the samples since the start, for count.
	Functions []counted `json:"functions,omitempty"`
	// Profile is in pprof's gzipped form.
	Profile []byte `json:"profile,omitempty"`
	// CPUSeconds and MaxRSS are what the process has used.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	MaxRSS     int64   `json:"max_rss_bytes,omitempty"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	child io.ReadWriteCloser
	in    *json.Encoder
	out   *json.Decoder
	close func() error
	busy  time.Duration // the machine's CPU time at the start

	cpuSeconds float64 // the process has used, as it last said
	maxRSS     int64
}

// Start starts the process, to look at each CPU hertz times a second and to name the functions of these languages (nil: of
// all), and waits until it watches. The caller closes it.
func Start(spawn Spawn, hertz int, languages []string) (*Trace, error) {
	child, err := spawn()
	if err != nil {
		return nil, fmt.Errorf("start the process that reads stacks: %w", err)
	}
	t := &Trace{child: child, in: json.NewEncoder(child), out: json.NewDecoder(child), close: sync.OnceValue(child.Close)}
	if _, err := t.ask(request{Do: doWatch, Hertz: hertz, Languages: languages}, patienceStart); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.busy, err = readBusy(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trace) ask(q request, patience time.Duration) (answer, error) {
	if err := t.in.Encode(q); err != nil {
		return answer{}, fmt.Errorf("ask the process that reads stacks: %w", err)
	}
	return t.answer(patience)
}

func (t *Trace) answer(patience time.Duration) (answer, error) {
	var a answer
	late := time.AfterFunc(patience, func() { _ = t.close() }) // the read fails then, and says so
	err := t.out.Decode(&a)
	if !late.Stop() {
		return answer{}, fmt.Errorf("the process that reads stacks did not answer within %v and was ended", patience)
	}
	if err != nil {
		return answer{}, fmt.Errorf("the process that reads stacks has ended: %w", err)
	}
	if a.Error != "" {
		return answer{}, fmt.Errorf("read whole stacks: %s", a.Error)
	}
	t.cpuSeconds, t.maxRSS = a.CPUSeconds, a.MaxRSS
	return a, nil
}

// Profile returns the stacks since the start.
func (t *Trace) Profile() (*profile.Profile, error) {
	p, _, err := t.profile()
	return p, err
}

func (t *Trace) profile() (*profile.Profile, map[string]uint64, error) {
	a, err := t.ask(request{Do: doProfile}, patience)
	if err != nil {
		return nil, nil, err
	}
	p, err := profile.Parse(bytes.NewReader(a.Profile))
	if err != nil {
		return nil, nil, fmt.Errorf("read the stacks: %w", err)
	}
	return p, a.Lost, nil
}

// Read puts the functions of scripts, and what was lost; the stacks themselves are in the profile.
func (t *Trace) Read(out trace.Out) error {
	a, err := t.ask(request{Do: doCount}, patience)
	if err != nil {
		return err
	}
	for _, f := range a.Functions {
		out.In(f.NetNS).Put(functionSamples, float64(f.Samples), f.Group, f.Function)
	}
	trace.PutLost(out, lostTotal, a.Lost)
	return nil
}

// Report returns the busiest functions since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	p, lost, err := t.profile()
	if err != nil {
		return nil, err
	}
	busy, err := readBusy()
	if err != nil {
		return nil, err
	}
	return summarise(p, lost, elapsed, busy-t.busy), nil
}

// Status says that its signals are being read.
func (t *Trace) Status() map[string]model.Status {
	return map[string]model.Status{functionSamples.Name: {State: model.Read}, lostTotal.Name: {State: model.Read}}
}

// Programs names the program that samples begin with; the others hang on it.
func (t *Trace) Programs() []trace.Program {
	return []trace.Program{{Name: "native_tracer_entry", Tracepoint: "cpu-clock"}}
}

// Ignore leaves out these processes, besides our own.
func (t *Trace) Ignore(tgids ...int) error { return t.tell(doIgnore, tgids...) }

// Only singles out these processes; none is everybody.
func (t *Trace) Only(tgids ...int) error { return t.tell(doOnly, tgids...) }

// Pause drops what is sampled from now on, until Resume.
func (t *Trace) Pause() error { return t.tell(doPause) }

// Resume counts again.
func (t *Trace) Resume() error { return t.tell(doResume) }

func (t *Trace) tell(do string, ids ...int) error {
	_, err := t.ask(request{Do: do, IDs: ids}, patience)
	return err
}

// Used is what the process has used.
func (t *Trace) Used() (cpuSeconds float64, maxRSS int64) { return t.cpuSeconds, t.maxRSS }

// Close ends the process.
func (t *Trace) Close() error { return t.close() }
