// Socketpairs holds N TCP connections over 127.0.0.1 open, both ends of each,
// until its standard input ends: 2 N sockets for bench/watch.sh. It says
// "ready" when all are there. It stands under testdata because it is no part
// of the product.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

func main() {
	if err := hold(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "socketpairs:", err)
		os.Exit(1)
	}
}

func hold(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the number of connections, got %q", args)
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("number of connections: %w", err)
	}
	// Go's keep-alives would be 2,000 probes a second for 30,000 idle sockets.
	quiet := net.KeepAliveConfig{Enable: false}
	listen := net.ListenConfig{KeepAlive: -1, KeepAliveConfig: quiet}
	dial := net.Dialer{KeepAlive: -1, KeepAliveConfig: quiet}
	l, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.Close() // also keeps it from being collected, and closed, before the end
	open := make([]net.Conn, 0, 2*n)
	for range n {
		near, err := dial.Dial("tcp", l.Addr().String())
		if err != nil {
			return fmt.Errorf("connect to ourselves; is lo up, and ulimit -n above %d? %w", 2*n+10, err)
		}
		far, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		open = append(open, near, far)
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	for _, c := range open {
		c.Close()
	}
	return err
}
