// Sofar measures what it costs to judge a run while it lasts, on one that was recorded.
//
//	go run ./bench/sofar [-steps 150] [-rest 0] [-runs 1] COPY [PLIMSOLL]
//
// COPY is a copy of a run's directory that was made while the run lasted, so that its log is still there. The run is made to
// last once more, in so many steps: before each a part of its log is written, the first being a tenth; then the process that judges runs
// while they last (as `run --live` has it) is asked; between verdicts it rests, if it is to, as it does in a run: it takes longer when others had the caches. It prints the CPU time of a verdict in each fifth of the run, the mean of the last
// tenth, and a hash of all that was said: two builds that say the same have the same.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	steps := flag.Int("steps", 150, "in how many steps the run is made to last")
	rest := flag.Duration("rest", 0, "how long it rests between two verdicts")
	runs := flag.Int("runs", 1, "how often")
	flag.Parse()
	plimsoll := "bin/plimsoll"
	if flag.NArg() > 1 {
		plimsoll = flag.Arg(1)
	}
	for range *runs {
		if err := measure(flag.Arg(0), plimsoll, *steps, *rest); err != nil {
			fmt.Fprintln(os.Stderr, "sofar:", err)
			os.Exit(1)
		}
	}
}

// measure has a run last once more, and prints what its verdicts took.
func measure(of, plimsoll string, steps int, rest time.Duration) error {
	again, err := again(of)
	if err != nil {
		return err
	}
	defer os.RemoveAll(again.dir)
	said, cpu := sha256.New(), make([]time.Duration, 0, steps)
	err = asked(plimsoll, again.dir, func(verdict func() (answer, error)) error {
		for i := range steps {
			if err := again.last(0.1 + 0.9*float64(i+1)/float64(steps)); err != nil {
				return err
			}
			a, err := verdict()
			if err == nil && a.Failed != "" {
				err = errors.New(a.Failed)
			}
			if err != nil {
				return fmt.Errorf("verdict %d: %w", i+1, err)
			}
			cpu = append(cpu, time.Duration(a.CPU))
			time.Sleep(rest)
			fmt.Fprintf(said, "%s %s %s\n", a.Answer, a.Sentence, a.Way)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Print("ms of a verdict:")
	for i := range 5 {
		fmt.Printf(" %.1f", mean(cpu[i*steps/5:(i+1)*steps/5]))
	}
	fmt.Printf("; the last tenth %.1f; said %x\n", mean(cpu[steps*9/10:]), said.Sum(nil)[:6])
	return nil
}

// mean is that of some durations, in milliseconds.
func mean(list []time.Duration) float64 {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum.Seconds() * 1000 / float64(len(list))
}

// answer is a verdict so far, as the process that judges says it in a line.
type answer struct {
	Answer, Sentence, Failed string
	Way                      json.RawMessage
	CPU                      int64 `json:"cpu_ns"`
}

// asked starts the process that judges the run in dir, and ends it after use.
func asked(plimsoll, dir string, use func(verdict func() (answer, error)) error) error {
	cmd := exec.Command(plimsoll, "judge-so-far", "--", dir)
	cmd.Env, cmd.Stderr = []string{"GOMAXPROCS=1"}, os.Stderr // as a run has it
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	lines := json.NewDecoder(bufio.NewReader(out))
	err = use(func() (a answer, err error) {
		if _, err = fmt.Fprintln(in); err == nil {
			err = lines.Decode(&a)
		}
		return a, err
	})
	if err = errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		return err
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		fmt.Printf("%d MB at most; ", u.Maxrss>>10)
	}
	return nil
}

// lasting is a run that is made to last once more.
type lasting struct {
	dir   string
	log   []string // the files of the log that it is a copy of
	bytes int64    // of the log
	done  int64    // of them, written
}

// again makes a directory for a run's copy, with all but its log in it.
func again(of string) (*lasting, error) {
	dir, err := os.MkdirTemp("", "plimsoll-sofar-")
	if err != nil {
		return nil, err
	}
	l := &lasting{dir: dir}
	if l.log, err = filepath.Glob(filepath.Join(of, "series", "wal", "*")); err == nil && len(l.log) == 0 {
		err = fmt.Errorf("%s: no log of series; want a copy that was made while the run lasted", of)
	}
	slices.Sort(l.log)
	for _, name := range l.log {
		info, failed := os.Stat(name)
		if failed != nil {
			return nil, failed
		}
		l.bytes += info.Size()
	}
	err = errors.Join(err, os.MkdirAll(filepath.Join(dir, "series", "wal"), 0o700))
	manifest, failed := os.ReadFile(filepath.Join(of, "run.json"))
	return l, errors.Join(err, failed, os.WriteFile(filepath.Join(dir, "run.json"), manifest, 0o600))
}

// last writes the log up to that share of it.
func (l *lasting) last(share float64) error {
	until, before := int64(share*float64(l.bytes)), int64(0)
	for _, name := range l.log {
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		before, err = l.copyFrom(in, before, until)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copyFrom copies what is missing of a file before which the log has so many bytes, and returns how many it has behind it.
func (l *lasting) copyFrom(in *os.File, before, until int64) (behind int64, err error) {
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	behind = before + info.Size()
	if l.done >= behind || until <= before {
		return behind, nil
	}
	if _, err := in.Seek(l.done-before, io.SeekStart); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(filepath.Join(l.dir, "series", "wal", filepath.Base(in.Name())), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyN(out, in, min(until, behind)-l.done)
	l.done += n
	return behind, errors.Join(err, out.Close())
}
