package deepcpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/ebpf-profiler/interpreter/interpreterconfig"
	"go.opentelemetry.io/ebpf-profiler/libpf"
	"go.opentelemetry.io/ebpf-profiler/log"
	"go.opentelemetry.io/ebpf-profiler/metrics"
	"go.opentelemetry.io/ebpf-profiler/times"
	"go.opentelemetry.io/ebpf-profiler/tracer"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

const (
	// poll is how often the library reads its ring buffer, sparsePoll the same in a run: to wake up is most of what this process does then.
	poll       = 100 * time.Millisecond
	sparsePoll = 250 * time.Millisecond
	// warmUp is how long it watches before it counts: a process is read when it is
	// sampled first, and its samples are dropped until then.
	warmUp = time.Second
	// frameCache is how many frames it keeps named.
	frameCache = 1 << 16
)

// Serve is the process that profiles. Asked on in to watch it says on out, a JSON
// document a line, that it does or why it cannot, then answers what else it is asked,
// and returns when in is closed. It is to be called once, in a process of its own: it
// may filter that process's system calls for good.
func Serve(in io.Reader, out io.Writer) error {
	enc, dec := json.NewEncoder(out), json.NewDecoder(in)
	var first request
	if err := dec.Decode(&first); err != nil {
		return fmt.Errorf("read how often to look at the CPUs: %w", err)
	}
	if first.Do != doWatch || first.Hertz <= 0 {
		return enc.Encode(answer{Error: fmt.Sprintf("asked to %q %d times a second: want %s first, and how often", first.Do, first.Hertz, doWatch)})
	}
	p, err := watch(first.Hertz, first.Languages)
	if err != nil {
		return enc.Encode(answer{Error: err.Error()})
	}
	defer p.close()
	if err := enc.Encode(used(answer{})); err != nil {
		return fmt.Errorf("say that stacks are read: %w", err)
	}
	for {
		var q request
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what is asked about stacks: %w", err)
		}
		if err := enc.Encode(used(p.answer(q))); err != nil {
			return fmt.Errorf("answer about stacks: %w", err)
		}
	}
}

// used adds to an answer what this process has used.
func used(a answer) answer {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err == nil { // which cannot fail
		a.CPUSeconds, a.MaxRSS = time.Duration(ru.Utime.Nano()+ru.Stime.Nano()).Seconds(), ru.Maxrss<<10
	}
	return a
}

// profiler is the library at work.
type profiler struct {
	tracer *tracer.Tracer
	cancel context.CancelFunc
	stacks *collector
	said   *lastError
	buffer *counter // samples that found no room in the kernel's ring buffer
	poll   time.Duration
}

// watch loads the library's programs and switches them on.
func watch(hertz int, languages []string) (*profiler, error) {
	read, err := reading(languages)
	if err != nil {
		return nil, err
	}
	if err := allowMemlock(); err != nil {
		return nil, err
	}
	p := &profiler{stacks: newCollector(hertz, languages), said: &lastError{}, poll: poll}
	if hertz <= SparseHertz {
		p.poll = sparsePoll
	}
	log.SetLogger(*slog.New(p.said))
	meter := &meter{counters: map[string]*counter{}}
	metrics.Start(meter)
	p.buffer = meter.counters["bpf.errors.ringbuf_output"]
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if err := p.start(ctx, hertz, read); err != nil {
		p.close()
		return nil, p.said.explain(err)
	}
	return p, nil
}

func (p *profiler) start(ctx context.Context, hertz int, read interpreterconfig.Config) (err error) {
	times.StartRealtimeSync(ctx, 0)
	p.tracer, err = tracer.NewTracer(ctx, &tracer.Config{
		TraceReporter:           p.stacks,
		ExecutableReporter:      p.stacks,
		Intervals:               intervals{p.poll},
		InterpretersConfig:      read,
		SamplesPerSecond:        hertz,
		FrameCacheSize:          frameCache,
		FilterIdleFrames:        true,
		KernelVersionCheck:      true,
		PIDNamespaceTranslation: contained(),
		ProbabilisticThreshold:  tracer.ProbabilisticThresholdMax,
	})
	if err != nil {
		return err
	}
	p.tracer.StartPIDEventProcessor(ctx)
	if err := p.tracer.AttachTracer(nil); err != nil {
		return err
	}
	// Tells of ended processes at once, and needs tracefs. Without it the library
	// looks after them every cleanup.
	_ = p.tracer.AttachSchedMonitor()
	traces := make(chan *libpf.EbpfTrace)
	if err := p.tracer.StartMapMonitors(ctx, traces); err != nil {
		return err
	}
	go p.handle(ctx, traces)
	if err := p.tracer.EnableProfiling(); err != nil {
		return err
	}
	time.Sleep(warmUp)
	p.stacks.begin()
	return nil
}

// contained says whether we are in a PID namespace of our own. The kernel's numbers
// of processes are not ours there, and the library has to translate them; it then
// sees the processes of this namespace alone.
func contained() bool {
	first, err := host.InFirstPIDs()
	return err == nil && !first
}

func (p *profiler) handle(ctx context.Context, traces <-chan *libpf.EbpfTrace) {
	for {
		select {
		case t := <-traces:
			if t != nil { // nil only says that a round is over
				p.tracer.HandleTrace(t)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *profiler) answer(q request) (a answer) {
	select {
	case <-p.tracer.Done():
		return answer{Error: p.said.explain(errors.New("the profiler gave up")).Error()}
	default:
	}
	switch q.Do {
	case doPause:
		p.stacks.pause()
		p.stacks.learn()
	case doResume:
		p.stacks.resume()
	case doOnly:
		p.stacks.setOnly(q.IDs)
	case doIgnore:
		p.stacks.setIgnored(q.IDs)
	case doProfile:
		time.Sleep(p.poll + poll) // what was sampled by now is on its way
		data, err := p.stacks.profile()
		if err != nil {
			return answer{Error: err.Error()}
		}
		a.Profile = data
	case doCount:
		p.stacks.learn()
		a.Functions = p.stacks.count()
	default:
		return answer{Error: fmt.Sprintf("asked to %q: want one of the known words", q.Do)}
	}
	a.Lost = p.stacks.lost()
	a.Lost[lostBuffer] = uint64(p.buffer.n.Load())
	return a
}

func (p *profiler) close() {
	p.cancel()
	if p.tracer != nil {
		p.tracer.Close()
	}
	p.stacks.close()
}

// intervals are the library's own rhythms.
type intervals struct{ poll time.Duration }

func (intervals) MonitorInterval() time.Duration       { return time.Second }
func (i intervals) TracePollInterval() time.Duration   { return i.poll }
func (intervals) PIDCleanupInterval() time.Duration    { return 2 * time.Second }
func (intervals) ExecutableUnloadDelay() time.Duration { return time.Minute }

// lastError is the library's log: of it only the newest error is kept.
type lastError struct{ text atomic.Pointer[string] }

func (l *lastError) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (l *lastError) Handle(_ context.Context, r slog.Record) error {
	l.text.Store(&r.Message)
	return nil
}

func (l *lastError) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lastError) WithGroup(string) slog.Handler      { return l }

func (l *lastError) explain(err error) error {
	if text := l.text.Load(); text != nil {
		return fmt.Errorf("%w (%s)", err, *text)
	}
	return err
}
