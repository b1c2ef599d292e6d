// Live measures what viewers of a run that lasts cost it.
//
//	go run ./bench/live [-n 9] [-d 8s] [-c 16] [-rate N] [-kbit 200] [-viewers 1,10,50] [-stop 0] [-terminal] [-keep FILE] [-alone] [-url URL] [PLIMSOLL [FLAG…]]
//
// It loads an nginx of its own, on loopback, again and again: without a page, with a page at which nobody looks, with
// another at which nobody looks (which tells what noise is), and with so many -viewers, in an order that is drawn for
// each round. It prints good replies, p50 and p99 of each over those of the same round with nobody looking on: the median of
// all rounds, an interval that holds it with 95 % at least, the least and the most. Rounds of several calls are
// taken together where they -keep them in one file. One viewer in ten takes no more than -kbit; how far it is behind the
// others is printed, too. So many viewers as -stop says, but the first, take nothing more after two seconds; how many of them were dropped is told.
// With -terminal there is a trial on a terminal, without a page. Each figure that was shown is looked for among the seconds of the closed run.
// How often the run was judged while somebody looked on is told, and what that took of a core. Further flags are the run's.
// "closed after" is from the run's last moment to the end of its process.
//
//	go run ./bench/live -slices 5 [-c 16] [-rate N] [-viewers 1,10] [-keep FILE] [PLIMSOLL]
//
// is the sharper one for small differences: one run, amidst which viewers come and go every four to five seconds. A block is each trial
// twice, in an order that is drawn and then backwards; trials are compared within blocks. It prints the ratio to nobody
// looking on, the interval that holds it with 95 %, how often chance alone makes as much (signs of blocks drawn), and which
// difference would have been told four times out of five; of fewer than six blocks there is no interval. Blocks of several calls are taken together where they -keep them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// trial is how many look on. Those below zero have names of their own.
type trial int

const (
	terminal trial = -3
	noPage   trial = -2
	again    trial = -1 // as 0
	somebody trial = -4 // any number but none, in slices
)

func (t trial) String() string {
	switch t {
	case terminal:
		return "on a terminal"
	case noPage:
		return "no page"
	case somebody:
		return "somebody"
	case again:
		return "0 viewers again"
	}
	return fmt.Sprint(int(t), " viewers")
}

// outcome is what one run came to, as it is kept.
type outcome struct {
	Good   float64 `json:"good"` // replies/s
	P50    float64 `json:"p50"`  // µs
	P99    float64 `json:"p99"`  // µs
	Bytes  int     `json:"bytes"`
	Took   int     `json:"took"`   // viewers that were sent these
	Behind float64 `json:"behind"` // seconds, of the slowest
	Shown  int     `json:"shown"`  // figures, and how many of them the closed run has
	Same   int     `json:"same"`
	Closed float64 `json:"closed"` // seconds from the run's last moment to the end of its process
	// Stopped are viewers that took nothing more, and Dropped those of them that were not sent the end.
	Stopped int `json:"stopped"`
	Dropped int `json:"dropped"`
}

// round is what became of each trial.
type round map[trial]outcome

type bench struct {
	plimsoll, url, dir string
	words              []string // more of the run's command line
	kept               string
	trials             []trial
	length             time.Duration
	connections        int
	rate               float64
	kbit               float64
	stop               int
	nginxPID           int
}

func main() {
	b := bench{plimsoll: "bin/plimsoll"}
	rounds := flag.Int("n", 9, "how many rounds")
	flag.DurationVar(&b.length, "d", 8*time.Second, "how long each load lasts")
	flag.IntVar(&b.connections, "c", 16, "connections of the load")
	flag.Float64Var(&b.rate, "rate", 0, "requests a second, 0 for as many as come back")
	flag.Float64Var(&b.kbit, "kbit", 200, "what a slow viewer takes, in kbit/s")
	flag.IntVar(&b.stop, "stop", 0, "how many viewers take nothing more after two seconds")
	onTerminal := flag.Bool("terminal", false, "a run on a terminal, too")
	viewers := flag.String("viewers", "1,10,50", "how many look on, each number a trial")
	flag.StringVar(&b.kept, "keep", "", "a file that keeps rounds; those that it holds count, too")
	alone := flag.Bool("alone", false, "no run without viewers: what is shown is asked, not what it costs")
	flag.StringVar(&b.url, "url", "", "load this in place of an nginx of its own")
	blocks := flag.Int("slices", 0, "one run of so many blocks of slices, in which viewers come and go")
	flag.Parse()
	if flag.NArg() > 0 {
		b.plimsoll, b.words = flag.Arg(0), flag.Args()[1:]
	}
	b.trials = []trial{noPage, 0, again}
	if *alone {
		b.trials = nil
	}
	if *onTerminal {
		b.trials = append(b.trials, terminal)
	}
	for word := range strings.SplitSeq(*viewers, ",") {
		n, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			fmt.Fprintf(os.Stderr, "live: -viewers %s: want numbers with commas between: %v\n", *viewers, err)
			os.Exit(2)
		}
		if n > 0 {
			b.trials = append(b.trials, trial(n))
		}
	}
	do, count := b.all, *rounds
	if *blocks > 0 {
		b.trials = slices.DeleteFunc(b.trials, func(t trial) bool { return t < again })
		do, count = b.sliced, *blocks
	}
	if err := do(count); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func (b *bench) all(rounds int) error {
	done, stop, err := begin[round](b)
	if err != nil {
		return err
	}
	defer stop()
	for n := range rounds {
		order := slices.Clone(b.trials)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		r := round{}
		for _, t := range order {
			if r[t], err = b.run(t); err != nil {
				return fmt.Errorf("round %d, %s: %w", n+1, t, err)
			}
		}
		if err := keep(b.kept, r); err != nil {
			return err
		}
		done = append(done, r)
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, rounds)
	}
	for _, t := range b.trials {
		report(t, done)
	}
	return nil
}

// begin makes a directory, starts what is loaded, and returns what was kept before and how all that is ended.
func begin[T any](b *bench) (done []T, end func(), err error) {
	if done, err = kept[T](b.kept); err != nil {
		return nil, nil, err
	}
	if b.dir, err = os.MkdirTemp("", "plimsoll-live-"); err != nil {
		return nil, nil, err
	}
	stop, err := b.nginx()
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return done, func() {
		stop()
		_ = os.RemoveAll(b.dir) // it is below the directory for what is temporary
	}, nil
}

// keep adds a line to a file, if it has a name.
func keep(file string, what any) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// report prints a trial over that with nobody looking on, of the same rounds.
func report(t trial, rounds []round) {
	var good, p50, p99, closed []float64
	var all outcome
	for _, r := range rounds {
		o, ok := r[t]
		if !ok {
			continue
		}
		if base, based := r[0]; based {
			good, p50, p99 = append(good, o.Good/base.Good), append(p50, o.P50/base.P50), append(p99, o.P99/base.P99)
		}
		closed = append(closed, o.Closed)
		all.Stopped, all.Dropped = all.Stopped+o.Stopped, all.Dropped+o.Dropped
		all.Shown, all.Same, all.Bytes, all.Took = all.Shown+o.Shown, all.Same+o.Same, all.Bytes+o.Bytes, all.Took+o.Took
		all.Behind = max(all.Behind, o.Behind)
	}
	if len(closed) == 0 {
		return
	}
	fmt.Printf("%-15s  %2d rounds", t, len(closed))
	if len(good) > 0 { // else there is nothing to hold it against
		fmt.Printf("  good %s  p50 %s  p99 %s", spread(good), spread(p50), spread(p99))
	}
	fmt.Printf("  closed after %s s", spread(closed))
	if all.Took > 0 {
		fmt.Printf("  %s for each viewer, the slowest %.1f s behind; %d of %d figures are the closed run's", layout.Bytes(int64(all.Bytes/all.Took)), all.Behind, all.Same, all.Shown)
	}
	if all.Stopped > 0 {
		fmt.Printf("; of %d that stopped %d were dropped", all.Stopped, all.Dropped)
	}
	fmt.Println()
}

// spread is the median, the interval that holds it with 95 % at least, and the least and the most.
func spread(list []float64) string {
	slices.Sort(list)
	low, high := held(len(list))
	return fmt.Sprintf("%.3f [%.3f, %.3f] (%.3f to %.3f)", middle(list), list[low], list[high], list[0], list[len(list)-1])
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// held is between which two of n sorted values the median lies with 95 % at least, whatever they are drawn from: as often as
// a coin falls so. Fewer than six values cannot say, and are all taken.
func held(n int) (low, high int) {
	below, term := 0.0, math.Pow(0.5, float64(n)) // of k values below the median: n over k / 2^n
	for k := 0; k < n/2; k++ {
		if below += term; below > 0.025 {
			break
		}
		low = k + 1
		term *= float64(n-k) / float64(k+1)
	}
	low = max(low-1, 0)
	return low, n - 1 - low
}

const nginxConf = `daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events { worker_connections 512; }
http { access_log off; server { listen 127.0.0.1:%d; location / { return 200 "ok"; } } }
`

// nginx starts one, and returns how it is ended.
func (b *bench) nginx() (stop func(), err error) {
	if b.url != "" {
		return func() {}, nil
	}
	port := 20000 + rand.IntN(10000)
	b.url = fmt.Sprintf("http://127.0.0.1:%d/", port)
	conf := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, port), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("nginx", "-p", b.dir, "-c", conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	b.nginxPID = cmd.Process.Pid
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // how it ends is not asked
	}
	return stop, nil
}

// run makes one run with so many viewers.
func (b *bench) run(t trial) (o outcome, err error) {
	ctx, done := context.WithTimeout(context.Background(), b.length+time.Minute)
	defer done()
	cmd, err := b.command(ctx, t)
	if err != nil {
		return o, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	errs, err := started(cmd, t == terminal)
	if err != nil {
		return o, err
	}
	defer errs.Close()
	over := make(chan struct{})
	viewers := b.viewers(t, over)
	var looking sync.WaitGroup
	ended := watch(errs, func(url string) {
		for _, v := range viewers {
			looking.Go(func() { v.look(ctx, url) })
		}
	})
	watching, enough := context.WithCancel(ctx)
	var judge sync.WaitGroup
	if t > 0 { // else nothing is judged
		judge.Go(func() { fmt.Fprintf(os.Stderr, "%s: %s\n", t, b.judge(watching, cmd.Process.Pid)) })
	}
	_ = cmd.Wait() // its exit code tells the verdict
	at := time.Now()
	enough()
	judge.Wait()
	close(over)
	<-ended
	looking.Wait()
	var r model.Report
	if bad := json.Unmarshal([]byte(out.String()), &r); bad != nil || r.Load == nil {
		return o, fmt.Errorf("%s: no load in its report: %w", strings.Join(cmd.Args, " "), bad)
	}
	o.Good, o.P50, o.P99 = r.Load.GoodRPS, r.Load.Latency.P50, r.Load.Latency.P99
	o.Closed = at.Sub(time.UnixMilli(r.Windows[len(r.Windows)-1].End)).Seconds()
	o.Shown, o.Same = compared(viewers, r.Load.Course)
	o.add(viewers)
	return o, nil
}

// command is that of a run, whose directory is made anew.
func (b *bench) command(ctx context.Context, t trial) (*exec.Cmd, error) {
	dir := filepath.Join(b.dir, "run")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	args := []string{"run", b.url, "-c", fmt.Sprint(b.connections), "-d", b.length.String(), "--dir", dir, "--json"}
	if b.rate > 0 {
		args = append(args, "-R", fmt.Sprint(b.rate))
	}
	if t != noPage && t != terminal {
		args = append(args, "--live")
	}
	return exec.CommandContext(ctx, b.plimsoll, append(args, b.words...)...), nil
}

// viewers are those of a trial; those that stop do so until over is closed.
func (b *bench) viewers(t trial, over <-chan struct{}) (list []*viewer) {
	for i := range max(int(t), 0) {
		v := &viewer{seen: map[string]time.Time{}}
		if i%10 == 9 {
			v.kbit = b.kbit
		} else if i > 0 && i <= b.stop {
			v.stops = over
		}
		list = append(list, v)
	}
	return list
}

// add counts what viewers were sent.
func (o *outcome) add(viewers []*viewer) {
	for _, v := range viewers {
		o.Bytes, o.Took = o.Bytes+v.took(), o.Took+1
		if v.stops != nil {
			o.Stopped++
			if !v.toldEnd {
				o.Dropped++
			}
			continue
		}
		o.Behind = max(o.Behind, v.behind(viewers[0]).Seconds())
	}
}

// started starts a command, and returns what it says on standard error, which is a terminal or a pipe.
func started(cmd *exec.Cmd, onTerminal bool) (errs io.ReadCloser, err error) {
	open := os.Pipe
	if onTerminal {
		open = openTerminal
	}
	ours, theirs, err := open()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Stderr = theirs
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	return ours, nil
}

// openTerminal makes a pair of terminals of 80 columns and 24 rows.
func openTerminal() (ours, theirs *os.File, err error) {
	if ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(ours.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// compared counts the figures that the first viewer saw, and those that a second of the closed run has.
func compared(viewers []*viewer, course []model.Second) (shown, same int) {
	if len(viewers) == 0 {
		return 0, 0
	}
	closed := map[string]bool{}
	for _, s := range course {
		text := []string{layout.Count(s.Good) + "/s", layout.Count(s.Replies-s.Good) + "/s", layout.Count(s.Failed) + "/s"}
		if s.P99 > 0 {
			text = append(text, layout.Micros(s.P50), layout.Micros(s.P99))
		}
		closed[strings.Join(text, " ")] = true
	}
	for figures := range viewers[0].taken() {
		shown++
		if closed[figures] {
			same++
		} else {
			fmt.Fprintln(os.Stderr, "shown, and not in the closed run:", figures)
		}
	}
	return shown, same
}
