package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// step is what comes with one round of the exporter; what came two rounds before goes.
type step struct{ processes, containers, destinations int }

// Nothing of a step outlives this many.
const lasts = 2

// churn is processes, control groups and connections that come and go, all in the network namespace of this process.
type churn struct {
	dir      string // of the programs, which are one under many names
	groups   []string
	server   net.Listener
	made     step
	old, now []func() error // what ends those of a step
}

// churnOn does what its standard input asks for, and says when it is done, until that ends. Everything that it made is gone then.
func churnOn(in io.Reader, out io.Writer) (err error) {
	if err := loopbackUp(); err != nil {
		return err
	}
	c := &churn{}
	if c.dir, err = os.MkdirTemp("", "month-"); err != nil {
		return err
	}
	defer func() {
		for range lasts {
			err = joined(err, c.end())
		}
		for _, g := range c.groups {
			err = joined(err, os.Remove(g))
		}
		err = joined(err, os.RemoveAll(c.dir))
	}()
	if err := c.begin(); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var s step
		if _, err := fmt.Sscan(lines.Text(), &s.processes, &s.containers, &s.destinations); err != nil {
			return err
		}
		if err := joined(c.end(), c.step(s)); err != nil {
			return err
		}
		fmt.Fprintln(out, "done")
	}
	return lines.Err()
}

func joined(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// begin makes the parent of the control groups, and the server to which connections are made.
func (c *churn) begin() (err error) {
	for _, controller := range []string{"pids", "cpu"} {
		dir := filepath.Join("/sys/fs/cgroup", controller, filepath.Base(c.dir))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("%w; control groups of version 1 are wanted, as root", err)
		}
		c.groups = append(c.groups, dir)
	}
	// A loopback interface answers on all of 127.0.0.0/8.
	if c.server, err = net.Listen("tcp4", "0.0.0.0:0"); err != nil {
		return err
	}
	go func() {
		for {
			conn, err := c.server.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, conn) // until the other end closes
				_ = conn.Close()
			}()
		}
	}()
	return nil
}

func (c *churn) end() error {
	var first error
	for _, f := range c.old {
		first = joined(first, f())
	}
	c.old, c.now = c.now, nil
	return first
}

func (c *churn) step(s step) error {
	for range s.destinations {
		if err := c.connect(); err != nil {
			return err
		}
	}
	for n := range max(s.processes, s.containers) {
		pid, err := c.start()
		if err == nil && n < s.containers {
			err = c.contain(pid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// connect connects to an address of its own, and says something.
func (c *churn) connect() error {
	c.made.destinations++
	n := c.made.destinations
	port := c.server.Addr().(*net.TCPAddr).Port
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.%d.%d.%d:%d", 1+n>>16, n>>8&255, n&255, port))
	if err != nil {
		return err
	}
	c.now = append(c.now, conn.Close)
	_, err = conn.Write([]byte("hello\n"))
	return err
}

// start starts a process of a name that was never there.
func (c *churn) start() (int, error) {
	c.made.processes++
	program := filepath.Join(c.dir, fmt.Sprintf("job-%d", c.made.processes))
	if err := os.Symlink("/bin/sleep", program); err != nil {
		return 0, err
	}
	cmd := exec.Command(program, "3600")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	c.now = append(c.now, func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return os.Remove(program)
	})
	return cmd.Process.Pid, nil
}

// contain puts a process into control groups of its own, with limits, as a container has them.
func (c *churn) contain(pid int) error {
	c.made.containers++
	for i, limit := range []string{"pids.max", "cpu.cfs_quota_us"} {
		dir := filepath.Join(c.groups[i], fmt.Sprintf("docker-%064x.scope", c.made.containers))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		c.now = append(c.now, func() error { return removeGroup(dir) }) // behind the end of its process
		err := os.WriteFile(filepath.Join(dir, limit), []byte("50000"), 0)
		if err = joined(err, os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0)); err != nil {
			return err
		}
	}
	return nil
}

// removeGroup removes a control group, which is busy while its last process is being buried.
func removeGroup(dir string) error {
	var err error
	for range 1000 {
		if err = syscall.Rmdir(dir); err != syscall.EBUSY {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

func loopbackUp() error {
	text, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip link set lo up: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}
