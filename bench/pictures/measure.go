package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/internal/model"
)

// stall is a server that stops for 1 s in 6 s, as an open and as a closed load see it.
func stall(p plimsoll) (picture, error) {
	s, err := serve(64, time.Millisecond, 0)
	if err != nil {
		return picture{}, err
	}
	pic := picture{title: "A stall of 1 s in 6 s", axis: "share of the requests that took less",
		ticks: []tick{{0, "p50"}, {1, "p90"}, {2, "p95"}, {3, "p99"}, {4, "p99.9"}, {5, "longest"}}}
	// Of 6 s of requests at even distances those of one second wait for its rest.
	truth := line{name: "computed for 1,000/s", broad: true}
	for i, share := range []float64{0.90, 0.95, 0.99, 0.999, 1} {
		truth.points = append(truth.points, xy{float64(i + 1), 1000 * (1 - (1-share)*6)})
	}
	of := panel{unit: "ms", log: true, lines: []line{truth}}
	for _, load := range []struct{ name, flag, value string }{{"-c 10, a closed loop", "-c", "10"}, {"-R 1000, an open one", "-R", "1000"}} {
		go s.stop(3*time.Second, time.Second)
		r, err := p.load(s.url, load.flag, load.value, "-d", "6s", "--timeout", "5s")
		if err != nil {
			return pic, err
		}
		l := line{name: load.name}
		for i, q := range quantiles(r.Load.Latency) {
			l.points = append(l.points, xy{float64(i), q})
		}
		of.lines = append(of.lines, l)
		pic.desc += fmt.Sprintf("%s: p50 %.1f ms, p99 %.1f ms, longest %.0f ms. ", load.name, l.points[0].y, l.points[3].y, l.points[5].y)
	}
	pic.panels = []panel{of}
	return pic, nil
}

// quantiles are p50, p90, p95, p99, p99.9 and the longest, in ms.
func quantiles(q model.Quantiles) []float64 {
	list := []float64{q.P50, q.P90, q.P95, q.P99, q.P999, q.Max}
	for i := range list {
		list[i] /= 1000
	}
	return list
}

// eightWorkers are of 10 ms for each request: 800/s at best.
func eightWorkers(room int64) (*server, error) { return serve(8, 10*time.Millisecond, room) }

// refused is a server that refuses what it has no room for, at rising rates.
func refused(p plimsoll) (picture, error) {
	s, err := eightWorkers(16)
	if err != nil {
		return picture{}, err
	}
	all, good := line{name: "all replies"}, line{name: "good ones"}
	pic := picture{title: "Refused requests are fast", axis: "requests offered a second", ticks: numbered(0, 500, 1000, 1500, 2000, 2500, 3000)}
	for _, rate := range []int{250, 500, 750, 1000, 1500, 2000, 3000} {
		r, err := p.load(s.url, "-R", strconv.Itoa(rate), "-c", "200", "-d", "2s")
		if err != nil {
			return pic, err
		}
		all.points = append(all.points, xy{float64(rate), r.Load.RPS})
		good.points = append(good.points, xy{float64(rate), r.Load.Good})
		pic.desc = fmt.Sprintf("At %d/s offered there are %.0f replies/s, of which %.0f are good.", rate, r.Load.RPS, r.Load.Good)
	}
	pic.panels = []panel{{unit: "1/s", lines: []line{all, good}}}
	return pic, nil
}

// loops are loads below and above what a server does, second by second.
func loops(p plimsoll) (picture, error) {
	pic := picture{title: "A fixed rate against a closed loop: p50, second by second", axis: "seconds since the load began", ticks: numbered(1, 2, 3, 4, 5, 6, 7, 8)}
	of := panel{unit: "ms"}
	for _, words := range [][]string{{"-c", "100", "-R", "1000"}, {"-c", "100"}, {"-c", "100", "-R", "700"}} {
		s, err := eightWorkers(0)
		if err != nil {
			return pic, err
		}
		name := strings.Join(words, " ")
		points, err := p.seconds(s.url, append(words, "-d", "8s", "--timeout", "10s")...)
		if err != nil {
			return pic, err
		}
		points = points[:min(len(points), len(pic.ticks))] // what is behind the last came after the load
		of.lines = append(of.lines, line{name: "p50, " + name, points: points})
		pic.desc += fmt.Sprintf("%s: p50 %.0f ms in the first second, %.0f in the last. ", name, points[0].y, points[len(points)-1].y)
	}
	pic.panels = []panel{of}
	return pic, nil
}

// knee is one server at rising numbers of connections.
func knee(p plimsoll) (picture, error) {
	s, err := eightWorkers(0)
	if err != nil {
		return picture{}, err
	}
	good, p50, p99 := line{name: "good replies"}, line{name: "p50"}, line{name: "p99"}
	pic := picture{title: "Throughput and latency against load", axis: "connections, each with one request at a time", log: true, ticks: numbered(1, 2, 4, 8, 16, 32, 64, 128)}
	for _, c := range pic.ticks {
		r, err := p.load(s.url, "-c", c.text, "-d", "2s")
		if err != nil {
			return pic, err
		}
		good.points = append(good.points, xy{c.at, r.Load.Good})
		p50.points = append(p50.points, xy{c.at, r.Load.Latency.P50 / 1000})
		p99.points = append(p99.points, xy{c.at, r.Load.Latency.P99 / 1000})
		pic.desc += fmt.Sprintf("%s: %.0f/s, p50 %.1f ms. ", c.text, r.Load.Good, r.Load.Latency.P50/1000)
	}
	knee, power := 0.0, 0.0
	for _, at := range good.points {
		if has := (model.KneeStep{Connections: int(at.x), GoodRPS: at.y}).Power(); has > power {
			knee, power = at.x, has
		}
	}
	pic.mark = &tick{knee, fmt.Sprintf("the knee: %.0f connections", knee)}
	pic.panels = []panel{{unit: "1/s", lines: []line{good}}, {unit: "ms", log: true, lines: []line{p50, p99}}}
	return pic, nil
}

// inNamespace is this program's first word where it is a process in a network namespace of its own.
const inNamespace = "in-namespace"

// moment is what stood at a time: seconds, sockets in TIME_WAIT, replies a second.
type moment struct{ At, Waiting, Replies float64 }

// portsPicture is a client that opens a connection for each request and closes first, until it has no port left.
func portsPicture(p plimsoll) (picture, error) {
	self, err := os.Executable()
	if err != nil {
		return picture{}, err
	}
	c := exec.Command(self, inNamespace, string(p))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return picture{}, err
	}
	var moments []moment
	if err := json.Unmarshal(out, &moments); err != nil {
		return picture{}, err
	}
	waiting, replies := line{name: "sockets in TIME_WAIT"}, line{name: "good replies"}
	for _, m := range moments {
		waiting.points = append(waiting.points, xy{m.At, m.Waiting})
		replies.points = append(replies.points, xy{m.At, m.Replies})
	}
	last := moments[len(moments)-1]
	pic := picture{title: "A client that closes first runs out of ports", axis: "seconds since the load began", ticks: numbered(0, 2, 4, 6, 8, 10),
		desc: fmt.Sprintf("After %.0f s %.0f sockets stand in TIME_WAIT, and there are %.0f good replies/s.", last.At, last.Waiting, last.Replies)}
	pic.panels = []panel{{unit: "sockets", lines: []line{waiting}}, {unit: "1/s", lines: []line{replies}}}
	return pic, nil
}

var timeWait = regexp.MustCompile(`\btw (\d+)`)

// ports loads a server in this process' namespace for 10 s, and prints what stood twice a second.
func ports(p plimsoll) error {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	// As between two machines: on loopback the kernel uses such a port again after a second.
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_tw_reuse", []byte("0"), 0); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var replies atomic.Int64
	go patient(l, &replies)
	load := exec.Command(string(p), "load", "http://"+l.Addr().String()+"/", "--no-keepalive", "-c", "50", "-d", "10s")
	load.Stderr = os.Stderr
	if err := load.Start(); err != nil {
		return err
	}
	defer func() { _ = load.Process.Kill() }() // where we fail before it ends
	var moments []moment
	const every = 500 * time.Millisecond
	begun, before := time.Now(), int64(0)
	for range time.Tick(every) {
		at := time.Since(begun).Seconds()
		if at > 10.1 {
			break
		}
		stat, err := os.ReadFile("/proc/net/sockstat")
		if err != nil {
			return err
		}
		n, err := strconv.ParseFloat(string(timeWait.FindSubmatch(stat)[1]), 64)
		if err != nil {
			return err
		}
		now := replies.Load()
		moments = append(moments, moment{min(at, 10), n, float64(now-before) / every.Seconds()})
		before = now
	}
	_ = load.Wait() // it says that there were no ports, and its code is not 0
	return json.NewEncoder(os.Stdout).Encode(moments)
}
