package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// pair is one measurement: with over without.
type pair struct{ replies, cpu float64 }

// root is what one of so many equal parts of it would be.
func (p pair) root(parts int) pair {
	return pair{math.Pow(p.replies, 1/float64(parts)), math.Pow(p.cpu, 1/float64(parts))}
}

const pairLine = "pair\t"

// print writes a pair as a line that pool finds again.
func (p pair) print(to io.Writer, name string) {
	fmt.Fprintf(to, pairLine+"%.5f\t%.5f\t%s\n", p.replies, p.cpu, name)
}

// pool adds up the pairs that earlier runs printed, by name.
func pool(files []string) error {
	pairs := map[string][]pair{}
	var names []string
	for _, name := range files {
		text, err := os.Open(name)
		if err != nil {
			return err
		}
		err = eachPair(text, func(name string, p pair) {
			if pairs[name] == nil {
				names = append(names, name)
			}
			pairs[name] = append(pairs[name], p)
		})
		text.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range names {
		summarise(name, pairs[name])
	}
	return nil
}

func eachPair(text io.Reader, do func(name string, p pair)) error {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line, found := strings.CutPrefix(lines.Text(), pairLine)
		if !found {
			continue
		}
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			return fmt.Errorf("%q: want two ratios and a name", line)
		}
		replies, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			return err
		}
		cpu, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			return err
		}
		do(f[2], pair{replies, cpu})
	}
	return lines.Err()
}

func summarise(name string, pairs []pair) {
	var replies, cpu []float64
	for _, p := range pairs {
		replies, cpu = append(replies, p.replies), append(cpu, p.cpu)
	}
	fmt.Printf("%s\n  %d pairs   replies/s %s   CPU per reply %s\n", name, len(pairs), middle(replies), middle(cpu))
}

// middle is the median of ratios, and the 95 % interval of the median by the
// order of the values: binomial, so without any assumption on their distribution.
func middle(v []float64) string {
	slices.Sort(v)
	n := len(v)
	out := outside(n)
	return fmt.Sprintf("%.4f (%.4f to %.4f)", (v[(n-1)/2]+v[n/2])/2, v[out], v[n-1-out])
}

// outside is how many of n sorted values lie on each side of the interval: the most
// for which the median lies beyond them in fewer than one case in forty. Of fewer
// than six even all of them are too few, and the interval says less than it should.
func outside(n int) int {
	chance := 1.0 // that exactly i of n values are below the median
	for range n {
		chance /= 2
	}
	below := 0.0
	for i := 0; i < n/2; i++ {
		if below += chance; below > 0.025 {
			return max(0, i-1)
		}
		chance *= float64(n-i) / float64(i+1)
	}
	return 0
}
