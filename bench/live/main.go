// Live measures what viewers of a run that lasts cost it.
//
//	go run ./bench/live [-n 9] [-d 8s] [-c 16] [-rate N] [-kbit 200] [PLIMSOLL]
//
// It loads an nginx of its own, on loopback, again and again: without a page, with a page at which nobody looks, and
// with 1, 10 and 50 viewers, in an order that is drawn for each round. It prints good replies and p99 of each over those
// of the same round without a viewer. One viewer in ten takes no more than -kbit; how far it is behind the
// others is printed, too. Each figure that was shown is looked for among the seconds of the closed run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// trial is a number of viewers: -1 is a run without a page.
type trial int

func (t trial) String() string {
	if t < 0 {
		return "no page"
	}
	return fmt.Sprint(int(t), " viewers")
}

// outcome is what one run came to.
type outcome struct {
	good, p99 float64
	viewers   []*viewer
	shown     int // figures that were shown, and how many of them the closed run has
	same      int
}

type bench struct {
	plimsoll, url, dir string
	length             time.Duration
	connections        int
	rate               float64
	kbit               float64
}

func main() {
	b := bench{plimsoll: "bin/plimsoll"}
	rounds := flag.Int("n", 9, "how many rounds")
	flag.DurationVar(&b.length, "d", 8*time.Second, "how long each load lasts")
	flag.IntVar(&b.connections, "c", 16, "connections of the load")
	flag.Float64Var(&b.rate, "rate", 0, "requests a second, 0 for as many as come back")
	flag.Float64Var(&b.kbit, "kbit", 200, "what a slow viewer takes, in kbit/s")
	flag.Parse()
	if flag.NArg() > 0 {
		b.plimsoll = flag.Arg(0)
	}
	if err := b.all(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func (b *bench) all(rounds int) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "plimsoll-live-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	stop, err := b.nginx()
	if err != nil {
		return err
	}
	defer stop()
	trials := []trial{-1, 0, 1, 10, 50}
	results := map[trial][]outcome{}
	for round := range rounds {
		order := slices.Clone(trials)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, t := range order {
			o, err := b.run(t)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, t, err)
			}
			results[t] = append(results[t], o)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
	}
	for _, t := range trials {
		report(t, results[t], results[0])
	}
	return nil
}

// report prints a trial's medians over those without a viewer, of the same rounds.
func report(t trial, list, base []outcome) {
	var good, p99 []float64
	var behind time.Duration
	bytes, took, shown, same := 0, 0, 0, 0
	for i, o := range list {
		good, p99 = append(good, o.good/base[i].good), append(p99, o.p99/base[i].p99)
		shown, same = shown+o.shown, same+o.same
		for _, v := range o.viewers {
			behind = max(behind, v.behind(o.viewers[0]))
			bytes, took = bytes+v.took(), took+1
		}
	}
	fmt.Printf("%-10s  good %s  p99 %s", t, spread(good), spread(p99))
	if took > 0 {
		fmt.Printf("  %s for each viewer, the slowest %.1f s behind; %d of %d figures are the closed run's", layout.Bytes(int64(bytes/took)), behind.Seconds(), same, shown)
	}
	fmt.Println()
}

// spread is the median with the least and the most.
func spread(list []float64) string {
	slices.Sort(list)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", list[len(list)/2], list[0], list[len(list)-1])
}

const nginxConf = `daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events { worker_connections 512; }
http { access_log off; server { listen 127.0.0.1:%d; location / { return 200 "ok"; } } }
`

// nginx starts one, and returns how it is ended.
func (b *bench) nginx() (stop func(), err error) {
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
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // how it ends is not asked
	}
	return stop, nil
}

// run makes one run with so many viewers.
func (b *bench) run(t trial) (o outcome, err error) {
	dir := filepath.Join(b.dir, "run")
	if err := os.RemoveAll(dir); err != nil {
		return o, err
	}
	args := []string{"run", b.url, "-c", fmt.Sprint(b.connections), "-d", b.length.String(), "--dir", dir, "--json"}
	if b.rate > 0 {
		args = append(args, "-R", fmt.Sprint(b.rate))
	}
	if t >= 0 {
		args = append(args, "--live")
	}
	ctx, done := context.WithTimeout(context.Background(), b.length+time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, b.plimsoll, args...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		return o, err
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return o, err
	}
	ended := watch(errs, func(url string) {
		for i := range int(t) {
			v := &viewer{seen: map[string]time.Time{}}
			if i%10 == 9 {
				v.kbit = b.kbit
			}
			o.viewers = append(o.viewers, v)
			go v.look(ctx, url)
		}
	})
	<-ended
	err = cmd.Wait() // its exit code tells the verdict
	var r model.Report
	if bad := json.Unmarshal([]byte(out.String()), &r); bad != nil || r.Load == nil {
		return o, fmt.Errorf("%s: no load in its report: %w", strings.Join(args, " "), err)
	}
	o.good, o.p99 = r.Load.GoodRPS, r.Load.Latency.P99
	o.shown, o.same = compared(o.viewers, r.Load.Course)
	return o, nil
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
