// Pictures measures and draws what docs/load-testing.md shows. It needs root (for a network namespace), two minutes, and
// a machine that does nothing else.
//
//	go run ./bench/pictures PLIMSOLL [DIR]
//
// DIR is docs/pictures, unless another is named. The servers are its own, on loopback.
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == inNamespace {
		return ports(plimsoll(args[1]))
	}
	dir := filepath.Join("docs", "pictures")
	switch len(args) {
	case 2:
		dir = args[1]
	case 1:
	default:
		return fmt.Errorf("want PLIMSOLL and perhaps a directory, not %q", args)
	}
	p := plimsoll(args[0])
	for _, of := range []struct {
		name string
		make func(plimsoll) (picture, error)
	}{{"load-stall", stall}, {"load-refused", refused}, {"load-loops", loops}, {"load-ports", portsPicture}, {"load-knee", knee}} {
		drawn, err := of.make(p)
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		if err := drawn.write(filepath.Join(dir, of.name+".svg")); err != nil {
			return err
		}
		fmt.Println(of.name+":", drawn.desc)
	}
	return nil
}

// plimsoll is the program's path.
type plimsoll string

// result is what load prints with --json, so far as it is drawn.
type result struct {
	Load struct {
		RPS     float64         `json:"rps"`
		Good    float64         `json:"good_rps"`
		Latency model.Quantiles `json:"latency_us"`
	} `json:"load"`
}

// load runs it. Loads that cannot keep what was asked for end with another code than 0, and are drawn all the same.
func (p plimsoll) load(url string, words ...string) (r result, err error) {
	c := exec.Command(string(p), append([]string{"load", url, "--json"}, words...)...)
	var said bytes.Buffer
	c.Stderr = &said
	out, failed := c.Output()
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("%q: %w, %w: %s", c.Args, err, failed, said.Bytes())
	}
	return r, nil
}

// seconds is the load's p50 in ms, second by second.
func (p plimsoll) seconds(url string, words ...string) ([]xy, error) {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "load.csv")
	if _, err := p.load(url, append(words, "-o", name)...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	var points []xy
	for _, row := range rows {
		if row[1] != "plimsoll_load_latency_seconds" || !strings.Contains(row[3], `kind="response"`) || !strings.Contains(row[3], `quantile="0.5"`) {
			continue
		}
		v, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			return nil, err
		}
		points = append(points, xy{float64(len(points) + 1), v * 1000})
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("%s: no p50 of any second", url)
	}
	return points, nil
}
