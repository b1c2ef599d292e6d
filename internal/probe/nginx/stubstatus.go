package nginx

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"plimsoll/internal/lazy"
	"plimsoll/internal/service/nginx"
)

// stub is what the stub_status page says.
type stub struct {
	active, accepted, handled, requests float64
	reading, writing, waiting           float64
}

// maxStatusPage bounds the page; nginx writes about 100 bytes.
const maxStatusPage = 16 << 10

var stubPattern = lazy.Regexp(`^Active connections: (\d+) \nserver accepts handled requests\n (\d+) (\d+) (\d+) \nReading: (\d+) Writing: (\d+) Waiting: (\d+) \n`)

// parseStub reads the page as ngx_http_stub_status_module.c writes it.
func parseStub(page []byte) (stub, error) {
	m := stubPattern().FindSubmatch(page)
	if m == nil {
		return stub{}, fmt.Errorf("parse the stub_status page: want \"Active connections: …\", got %.40q", page)
	}
	var s stub
	for i, v := range []*float64{&s.active, &s.accepted, &s.handled, &s.requests, &s.reading, &s.writing, &s.waiting} {
		n, err := strconv.ParseUint(string(m[i+1]), 10, 64)
		if err != nil {
			return stub{}, fmt.Errorf("parse the stub_status page: %w", err)
		}
		*v = float64(n)
	}
	return s, nil
}

// askStub asks a status page over an open connection, by an HTTP/1.0 request
// with a deadline, and closes the connection.
func askStub(c net.Conn, page *nginx.StatusPage, deadline time.Time) (stub, error) {
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return stub{}, err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: %s\r\nUser-Agent: plimsoll\r\n\r\n", page.URI, page.Host); err != nil {
		return stub{}, fmt.Errorf("ask %s for %s: %w", page.Address, page.URI, err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(io.LimitReader(c, maxStatusPage)), nil)
	if err != nil {
		return stub{}, fmt.Errorf("ask %s for %s: %w", page.Address, page.URI, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return stub{}, fmt.Errorf("ask %s for %s: want status 200, got %d; allow 127.0.0.1 in that location", page.Address, page.URI, reply.StatusCode)
	}
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return stub{}, fmt.Errorf("ask %s for %s: %w", page.Address, page.URI, err)
	}
	return parseStub(body)
}

// dialer connects from inside a host's network namespace, to a Unix socket of nginx's own alone.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// fetchStub asks a status page within timeout.
func fetchStub(dial dialer, page *nginx.StatusPage, timeout time.Duration) (stub, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := dial(ctx, page.Network, page.Address)
	if err != nil {
		return stub{}, fmt.Errorf("connect to the stub_status page: %w", err)
	}
	deadline, _ := ctx.Deadline()
	return askStub(c, page, deadline)
}
