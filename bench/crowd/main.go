// Crowd measures how much memory the load engine takes for connections of which most are idle, and how many this machine holds.
//
//	go run ./bench/crowd [-n 10000,100000,1000000] [-d 30s] [-connect-rate 15000] PLIMSOLL
//
// Both ends are here, in a network namespace of their own: a server that answers each request after a while (closed loop: 20 s, so that
// most connections wait) or at once (open loop, in which they are idle), and "PLIMSOLL load" from as many addresses as it takes.
// Nothing of the machine is set. For each number and loop it prints how many connections stood at once, the engine's peak memory, what
// that is a connection (less what the engine takes for one alone), and how much less memory the whole machine had, both ends and the
// kernel included. It needs root.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	port     = 80
	settings = "/proc/sys/net/"
)

func main() {
	list := flag.String("n", "10000,100000,1000000", "how many connections, with commas between")
	hold := flag.Duration("d", 30*time.Second, "how long all are held")
	rate := flag.Int("connect-rate", 15_000, "how many are opened a second")
	here := flag.String("here", "", "measure here, in this namespace: closed or open (crowd's own child)")
	flag.Parse()
	if err := run(*list, *hold, *rate, *here, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "crowd:", err)
		os.Exit(1)
	}
}

func run(list string, hold time.Duration, rate int, here string, args []string) error {
	if len(args) != 1 || rate < 1 {
		return fmt.Errorf("want the plimsoll to measure, and a rate of connects")
	}
	if here != "" {
		n, err := strconv.Atoi(list)
		if err != nil {
			return err
		}
		return measure(args[0], here, n, rate, hold)
	}
	fmt.Println("loop    asked for      stood   engine, peak   a connection     machine   replies")
	for _, loop := range []string{"closed", "open"} {
		alone := int64(0)
		for _, n := range append([]string{"1"}, strings.Split(list, ",")...) {
			c := exec.Command("/proc/self/exe", "-here", loop, "-n", n, "-d", hold.String(), "-connect-rate", strconv.Itoa(rate), args[0])
			c.Stderr = os.Stderr
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			out, err := c.Output()
			if err != nil {
				return fmt.Errorf("%s loop, %s connections: %w", loop, n, err)
			}
			var got result
			if err := json.Unmarshal(out, &got); err != nil {
				return err
			}
			if alone == 0 {
				alone = got.Engine
			}
			got.tell(loop, alone)
		}
	}
	return nil
}

// result is what came of one load.
type result struct {
	Asked, Stood    int64
	Engine, Machine int64 // bytes
	Outcomes        map[string]int64
}

// tell prints a line; alone is what the engine takes for one connection.
func (r result) tell(loop string, alone int64) {
	fmt.Printf("%-6s %10d %10d %10.1f MiB %12.0f B %7.2f GiB   %v\n", loop, r.Asked, r.Stood, float64(r.Engine)/(1<<20),
		float64(r.Engine-alone)/float64(r.Asked), float64(r.Machine)/(1<<30), r.Outcomes)
}

// measure has so many connections stand, and prints what came of it.
func measure(plimsoll, loop string, n, rate int, hold time.Duration) error {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	for name, value := range map[string]string{"ipv4/ip_local_port_range": "1024 65535", "core/somaxconn": "65535", "ipv4/tcp_max_syn_backlog": "65535"} {
		if err := os.WriteFile(settings+name, []byte(value), 0o644); err != nil {
			return err
		}
	}
	args := []string{"load", fmt.Sprintf("http://127.0.0.1:%d/", port), "-c", strconv.Itoa(n), "--source", "127.1.0.0/24", "--timeout", "60s", "--json"}
	delay := 20 * time.Second
	if opening := time.Duration(n) * time.Second / time.Duration(rate); loop == "open" {
		delay, hold = 0, hold+opening
		args = append(args, "-R", strconv.Itoa(min(rate, n)))
	} else {
		args = append(args, "--connect-rate", strconv.Itoa(rate))
	}
	if err := serve(port, n, delay); err != nil {
		return err
	}
	before := memory("/proc/meminfo", "MemAvailable:")
	c := exec.Command(plimsoll, append(args, "-d", hold.String())...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error)
	go func() { ended <- c.Wait() }()
	engine, least := int64(0), before
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
			engine = max(engine, ofChildren(c.Process.Pid))
			least = min(least, memory("/proc/meminfo", "MemAvailable:"))
			continue
		case err := <-ended:
			if out.Len() == 0 {
				return err
			}
		}
		break
	}
	var said struct {
		Load struct {
			Outcomes map[string]int64 `json:"outcomes"`
		} `json:"load"`
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result{int64(n), most.Load(), engine, before - least, said.Load.Outcomes})
}

// ofChildren is the peak memory of a process's children: the engine is one.
func ofChildren(pid int) (sum int64) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		text, _ := os.ReadFile(name)
		for _, child := range strings.Fields(string(text)) {
			sum += memory("/proc/"+child+"/status", "VmHWM:")
		}
	}
	return sum
}

// memory finds a number of kilobytes in a file of the kernel's: bytes, 0 when it is not there.
func memory(path, name string) int64 {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 53)
			return n << 10
		}
	}
	return 0
}
