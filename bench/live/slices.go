package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"plimsoll/internal/record"
)

const (
	// slice is how long somebody looks on, or nobody does, and jitter is what is added of it at random, so that slices keep no step
	// with what happens every second or two.
	slice  = 4 * time.Second
	jitter = time.Second
	// settles is what a slice's first part is left out of latencies, in milliseconds: what began before it may end in it.
	settles = 200
)

// piece is a slice of a run, and what it came to.
type piece struct {
	Trial trial   `json:"trial"`
	From  int64   `json:"from"` // Unix milliseconds
	To    int64   `json:"to"`
	Good  float64 `json:"good"` // replies/s
	P50   float64 `json:"p50"`  // µs
	P99   float64 `json:"p99"`  // µs
	// Typical is the geometric mean of its seconds' p99: a burst from elsewhere, which makes most of what p99 varies, is in one of them.
	Typical float64 `json:"typical"` // µs
	// CPU is the share of a core that each process took: nginx, recorder, engine, judge, and viewers, which is this one.
	CPU map[string]float64 `json:"cpu"`
}

// block is each trial twice, the second time in the reverse order, so that what changes steadily falls on all alike.
type block []piece

// sliced makes one run of so many blocks, and prints what all that are kept tell.
func (b *bench) sliced(blocks int) error {
	done, stop, err := begin[block](b)
	if err != nil {
		return err
	}
	defer stop()
	made, err := b.slicedRun(blocks)
	if err != nil {
		return err
	}
	for _, m := range made {
		if err := keep(b.kept, m); err != nil {
			return err
		}
	}
	b.tell(append(done, made...))
	return nil
}

// slicedRun has one run last for all blocks, while viewers come and go.
func (b *bench) slicedRun(blocks int) ([]block, error) {
	b.length = time.Duration(blocks*2*len(b.trials))*(slice+jitter) + 10*time.Second
	ctx, done := context.WithTimeout(context.Background(), b.length+time.Minute)
	defer done()
	cmd, err := b.command(ctx, 0)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "--baseline", "0", "--calm", "0", "--ramp", "500ms", "--cool", "0")
	cmd.Stdout = io.Discard
	errs, err := started(cmd, false)
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	page := make(chan string, 1)
	ended := watch(errs, func(url string) { page <- url })
	var made []block
	select {
	case url := <-page:
		made, err = b.look(ctx, url, cmd.Process.Pid, blocks)
	case <-ended:
		err = fmt.Errorf("%s: it named no page", strings.Join(cmd.Args, " "))
	}
	_ = cmd.Process.Signal(os.Interrupt) // what is left of it tells nothing more
	<-ended
	_ = cmd.Wait() // its exit code tells the verdict
	if err != nil {
		return nil, err
	}
	return made, latencies(filepath.Join(b.dir, "run"), made)
}

// look has viewers come and go, and takes down when and what CPU time went by.
func (b *bench) look(ctx context.Context, url string, pid, blocks int) (made []block, err error) {
	viewers := b.viewers(slices.Max(b.trials), nil)
	for _, v := range viewers {
		if err := v.enter(ctx, url); err != nil {
			return nil, err
		}
	}
	time.Sleep(11 * time.Second) // for that long who asked for the page is taken to look on
	of := b.processes(pid)
	if len(of) != 5 {
		return nil, fmt.Errorf("processes of the run: %v, want nginx, recorder, engine, judge and viewers", of)
	}
	for n := range blocks {
		order := slices.Clone(b.trials)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		back := slices.Clone(order)
		slices.Reverse(back)
		var now block
		for _, t := range append(order, back...) {
			p, err := oneSlice(ctx, t, viewers, of)
			if err != nil {
				return nil, err
			}
			now = append(now, p)
		}
		made = append(made, now)
		fmt.Fprintf(os.Stderr, "block %d of %d\n", n+1, blocks)
	}
	return made, nil
}

func oneSlice(ctx context.Context, t trial, viewers []*viewer, of map[string]int) (p piece, err error) {
	before, err := cpuTimes(of)
	if err != nil {
		return p, err
	}
	p = piece{Trial: t, From: time.Now().UnixMilli(), CPU: map[string]float64{}}
	looks, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	for _, v := range viewers[:max(int(t), 0)] {
		looking.Go(func() { v.follow(looks) })
	}
	time.Sleep(slice + rand.N(jitter))
	stop()
	looking.Wait()
	p.To = time.Now().UnixMilli()
	after, err := cpuTimes(of)
	for name, at := range after {
		p.CPU[name] = float64(at-before[name]) / float64(time.Duration(p.To-p.From)*time.Millisecond)
	}
	return p, err
}

// processes are the ids of those whose CPU time is read.
func (b *bench) processes(pid int) map[string]int {
	of := map[string]int{"recorder": pid, "viewers": os.Getpid()}
	for _, parent := range []int{pid, b.nginxPID} {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)) // the pattern is well formed
		for _, list := range lists {
			raw, _ := os.ReadFile(list) // a thread that is gone has none
			for word := range strings.FieldsSeq(string(raw)) {
				comm, err := os.ReadFile("/proc/" + word + "/comm")
				id, bad := strconv.Atoi(word)
				if err != nil || bad != nil {
					continue
				}
				switch name := strings.TrimSpace(string(comm)); {
				case parent == b.nginxPID:
					of["nginx"] = id
				case name == "plimsoll-judge":
					of["judge"] = id
				case name == "plimsoll-load":
					of["engine"] = id
				}
			}
		}
	}
	return of
}

// cpuTimes is how much CPU time each process took so far, exactly (proc(5) has it in ticks).
func cpuTimes(of map[string]int) (map[string]time.Duration, error) {
	at := map[string]time.Duration{}
	for name, pid := range of {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // see clock_getcpuclockid(3)
			return nil, fmt.Errorf("CPU time of %s, process %d: %w", name, pid, err)
		}
		at[name] = time.Duration(t.Nano())
	}
	return at, nil
}

// latencies fills in what the closed run has of each slice: the seconds that lie in it as a whole.
func latencies(dir string, made []block) error {
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, m := range made {
		for i := range m {
			if err := m[i].read(run); err != nil {
				return fmt.Errorf("%s: from %d to %d: %w", dir, m[i].From, m[i].To, err)
			}
		}
	}
	return nil
}

func (p *piece) read(run *record.Run) error {
	var sum *hdr.PackedHistogram
	var length int64
	var logs, seconds float64
	for in, err := range run.Intervals() {
		if err != nil {
			return err
		}
		if in.Tag != "response" || in.Start < p.From+settles || in.End > p.To || in.Histogram.TotalCount() == 0 {
			continue
		}
		length += in.End - in.Start
		logs, seconds = logs+math.Log(float64(in.Histogram.ValueAtPercentile(99))), seconds+1
		if sum == nil {
			sum = in.Histogram.Clone()
		} else {
			sum.Merge(in.Histogram)
		}
	}
	if sum == nil {
		return errors.New("no replies")
	}
	p.Good = float64(sum.TotalCount()) / float64(length) * 1000
	p.P50, p.P99 = float64(sum.ValueAtPercentile(50)), float64(sum.ValueAtPercentile(99))
	p.Typical = math.Exp(logs / seconds)
	return nil
}

// measures are what is compared of slices.
var measures = []struct {
	name string
	of   func(p piece) float64
}{
	{"replies/s", func(p piece) float64 { return p.Good }},
	{"p50", func(p piece) float64 { return p.P50 }},
	{"p99", func(p piece) float64 { return p.P99 }},
	{"p99 of a second", func(p piece) float64 { return p.Typical }},
	{"CPU time of nginx, engine and recorder", func(p piece) float64 { return p.CPU["nginx"] + p.CPU["engine"] + p.CPU["recorder"] }},
	{"CPU time of the recorder", func(p piece) float64 { return p.CPU["recorder"] }},
}

// tell prints each trial over those of the same block with nobody looking on.
func (b *bench) tell(blocks []block) {
	for _, m := range measures {
		base := mean(blocks, func(p piece) (float64, bool) { return math.Log(m.of(p)), p.Trial == 0 || p.Trial == again })
		fmt.Printf("%s: %.4g with nobody looking on\n", m.name, math.Exp(base))
		for _, t := range append(slices.Clone(b.trials), somebody) {
			if t == 0 {
				continue
			}
			r := ratioOf(logs(blocks, t, m.of))
			fmt.Printf("  %-16s %.3f [%.3f, %.3f]  p %.3f  could tell %.1f %%  (%d blocks)\n", t, r.ratio, r.low, r.high, r.p, 100*r.tells, len(blocks))
		}
	}
	for _, name := range []string{"judge", "viewers"} {
		for _, t := range b.trials {
			fmt.Printf("%s, %s: %.2f %% of a core\n", name, t, 100*mean(blocks, func(p piece) (float64, bool) { return p.CPU[name], p.Trial == t }))
		}
	}
}

// logs are those of a trial's ratio in each block; with nobody looking on there are two, each of which is held against the other.
func logs(blocks []block, t trial, of func(piece) float64) (list []float64) {
	for _, k := range blocks {
		one := func(take func(trial) bool) float64 {
			return mean([]block{k}, func(p piece) (float64, bool) { return math.Log(of(p)), take(p.Trial) })
		}
		list = append(list, one(func(o trial) bool { return o == t || t == somebody && o > 0 })-one(func(o trial) bool { return o == 0 || o == again && t != again }))
	}
	return list
}

// mean is that of what is taken of all slices.
func mean(blocks []block, take func(piece) (float64, bool)) float64 {
	sum, n := 0.0, 0.0
	for _, k := range blocks {
		for _, p := range k {
			if v, ok := take(p); ok {
				sum, n = sum+v, n+1
			}
		}
	}
	return sum / n
}

// ratio is what blocks tell of one.
type ratio struct {
	ratio, low, high float64 // with the interval that holds it with 95 %
	p                float64 // how often chance alone makes as much, where signs are drawn
	tells            float64 // the difference that would be seen four times out of five
}

// ratioOf takes each block's logarithm for one reading (Student's interval).
func ratioOf(logs []float64) ratio {
	n := float64(len(logs))
	sum, squares := 0.0, 0.0
	for _, v := range logs {
		sum += v
	}
	for _, v := range logs {
		squares += (v - sum/n) * (v - sum/n)
	}
	if n < 6 { // see student
		return ratio{ratio: math.Exp(sum / n), low: 0, high: math.Inf(1), p: 1, tells: math.Inf(1)}
	}
	se := math.Sqrt(squares / (n - 1) / n)
	t := student(n - 1)
	return ratio{math.Exp(sum / n), math.Exp(sum/n - t*se), math.Exp(sum/n + t*se), flipped(logs), math.Exp((t+0.84)*se) - 1}
}

// student is between which multiples of the error a mean lies with 95 %, by its degrees of freedom, of which there are five or more
// (Abramowitz and Stegun, 26.7.5).
func student(free float64) float64 {
	const z = 1.959964
	t := z + (z*z*z+z)/(4*free)
	t += (5*math.Pow(z, 5) + 16*math.Pow(z, 3) + 3*z) / (96 * free * free)
	return t + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*math.Pow(z, 3)-15*z)/(384*free*free*free)
}

// flips is how often signs are drawn.
const flips = 20_000

// flipped is how often logarithms whose signs are drawn add up to as much, either way.
func flipped(logs []float64) float64 {
	sum := 0.0
	for _, v := range logs {
		sum += v
	}
	as := 1 // as they are
	for range flips {
		drawn := 0.0
		for _, v := range logs {
			if rand.IntN(2) == 0 {
				v = -v
			}
			drawn += v
		}
		if math.Abs(drawn) >= math.Abs(sum)*(1-1e-9) {
			as++
		}
	}
	return float64(as) / (flips + 1)
}

// kept are what a file holds, one a line; none of a file that is not there, or of no name.
func kept[T any](file string) (list []T, err error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for at := json.NewDecoder(f); ; {
		var one T
		switch err := at.Decode(&one); {
		case err == io.EOF:
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("%s: want what was kept, one a line: %w", file, err)
		}
		list = append(list, one)
	}
}
