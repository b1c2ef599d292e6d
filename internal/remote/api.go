// Package remote takes series from a Prometheus-compatible server: readings
// that exporters made and somebody else keeps. It gives them our labels and
// says, for each host, which signals the server does not have. It judges
// nothing, and holds all in memory.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/record"
)

// The bounds of what is taken from a server, which may be anybody's: of one reply in
// bytes, and of all together.
const (
	maxReply  = 64 << 20
	maxSeries = 200_000
	maxPoints = 6_000_000
)

// The times after which a server is given up: it has not accepted the connection,
// has not begun to answer, has not come to an end of it; and all questions together.
const (
	connectTime = 5 * time.Second
	beginTime   = 12 * time.Second
	replyTime   = 30 * time.Second
	allTime     = 2 * time.Minute
)

// maxRedirects is how often a server may send us elsewhere.
const maxRedirects = 3

// client asks one server.
type client struct {
	base   *url.URL
	token  string
	tenant string
	http   *http.Client
	// patient asks again where the server was silent: it has answered others.
	patient bool
	room    room
	asked   *asked
}

// asked counts what a server was asked and gave, by all clients of one fleet.
type asked struct{ queries, readings atomic.Int64 }

// another asks the same server for others of a fleet, with bounds of its own.
func (c *client) another() *client {
	fresh := *c
	fresh.room, fresh.patient = room{maxSeries, maxPoints}, true
	return &fresh
}

// room is what is left of the bounds of all replies together.
type room struct{ series, points int }

// errBounds is that of a server that has more to say than is taken.
var errBounds = errors.New("it has too much")

func (r *room) take(s series) error {
	r.series--
	r.points -= len(s.Values)
	if r.series < 0 || r.points < 0 {
		return fmt.Errorf("%w: more than %d series, or %d readings; narrow it with --match, or take a shorter --window", errBounds, maxSeries, maxPoints)
	}
	return nil
}

// newClient checks the address; the path in it stays before /api/v1.
func newClient(address, token string) (*client, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q: want the address of a Prometheus-compatible server, like http://prometheus:9090", address)
	}
	return &client{base: u, token: token, http: newHTTP(), room: room{maxSeries, maxPoints}, asked: new(asked)}, nil
}

func newHTTP() *http.Client {
	dialer := net.Dialer{Timeout: connectTime}
	return &http.Client{
		Timeout: replyTime,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTime,
			ResponseHeaderTimeout: beginTime, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it sends us elsewhere more than %d times; want its own address", maxRedirects)
			}
			return nil
		},
	}
}

// series is one series of a reply.
type series struct {
	Metric map[string]string `json:"metric"`
	Values []point           `json:"values"`
	Value  *point            `json:"value"`
}

// point is one reading: [seconds, "value"].
type point record.Point

// UnmarshalJSON reads the pair.
func (p *point) UnmarshalJSON(raw []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(raw, &pair); err != nil {
		return err
	}
	var seconds float64
	var text string
	if err := json.Unmarshal(pair[0], &seconds); err != nil {
		return fmt.Errorf("a reading's time: %w", err)
	}
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return fmt.Errorf("a reading's value: %w", err)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("a reading's value %q: want a number", text)
	}
	if math.Abs(seconds) > 1e12 {
		return fmt.Errorf("a reading's time %v: want Unix seconds", seconds)
	}
	*p = point{Time: int64(math.Round(seconds * 1000)), Value: v}
	return nil
}

// answer is what a server has for one expression.
type answer struct {
	series []series
	// partial says in what it is not whole, since a store behind the server was silent; "" of a whole one.
	partial string
}

// query asks one expression at a moment, again while the server has no time for it.
func (c *client) query(ctx context.Context, expr string, at time.Time) (answer, error) {
	got, err := patiently(ctx, func() (answer, error) { return c.once(ctx, expr, at) })
	for _, s := range got.series {
		c.asked.readings.Add(int64(len(s.Values)))
	}
	return got, err
}

// once asks one expression at a moment.
func (c *client) once(ctx context.Context, expr string, at time.Time) (answer, error) {
	c.asked.queries.Add(1)
	form := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	target := c.base.JoinPath("api/v1/query")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if c.tenant != "" {
		req.Header.Set("X-Scope-OrgID", c.tenant)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		silent := c.patient && isTimeout(err)
		if err = fmt.Errorf("ask %s: %w", c.base.Redacted(), explain(err)); silent {
			err = busyError{err, -1}
		}
		return answer{}, err
	}
	defer res.Body.Close()
	got, err := parseReply(res, io.LimitReader(res.Body, maxReply), &c.room)
	if isTimeout(err) {
		err = fmt.Errorf("it began to answer and was not done after %v: %w", replyTime, err)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", c.base.Redacted(), err)
	}
	return got, nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// explain takes the address off an error that says it again, and says what a server
// does that is silent.
func explain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var connecting *net.OpError
	if isTimeout(err) && !(errors.As(err, &connecting) && connecting.Op == "dial") {
		return fmt.Errorf("it accepted the connection and did not answer within %v; is it the address of a Prometheus-compatible server, and is that overloaded: %w", beginTime, err)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it accepted the connection and closed it without an answer; is it the address of a Prometheus-compatible server: %w", err)
	}
	return err
}

// mostSaid is how much of what a server says is shown, in bytes.
const mostSaid = 500

// said is a server's own words, in one line.
func said(text string) string {
	if len(text) > mostSaid {
		text = text[:mostSaid] + "…"
	}
	return layout.Line(text)
}

// parseReply reads an answer of /api/v1/query, series by series.
func parseReply(res *http.Response, body io.Reader, left *room) (answer, error) {
	status := res.StatusCode
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return answer{}, fmt.Errorf("it answers %d, so it wants to know who asks; give --token-file FILE, or user:password@ in the address", status)
	}
	r := reply{in: json.NewDecoder(body), left: left}
	err := r.object(r.field)
	switch {
	case isTimeout(err) || errors.Is(err, errBounds):
		return answer{}, err
	case r.status == "error":
		return answer{}, unwilling(res, r.errorType, fmt.Errorf("it refuses the query: %s", said(r.error)))
	case err != nil && r.status == "success":
		return answer{}, fmt.Errorf("its reply of at most %d bytes cannot be read: %w", maxReply, err)
	case err != nil || r.status != "success":
		err = fmt.Errorf("it answers %d to /api/v1/query, and not as Prometheus does; want the address of a Prometheus-compatible server, with its path where it has one", status)
		return answer{}, unwilling(res, "", err)
	}
	return answer{r.series, r.partial()}, nil
}
