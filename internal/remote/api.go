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
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/record"
)

// maxReply is the most of one reply that is read, in bytes.
const maxReply = 256 << 20

// client asks one server.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// newClient checks the address; the path in it stays before /api/v1.
func newClient(address, token string) (*client, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q: want the address of a Prometheus-compatible server, like http://prometheus:9090", address)
	}
	return &client{base: u, token: token, http: &http.Client{Timeout: 2 * time.Minute}}, nil
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

// reply is what /api/v1/query answers.
type reply struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string   `json:"resultType"`
		Result     []series `json:"result"`
	} `json:"data"`
}

// query asks one expression at a moment.
func (c *client) query(ctx context.Context, expr string, at time.Time) ([]series, error) {
	form := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	target := c.base.JoinPath("api/v1/query")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base.Redacted(), withoutURL(err))
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxReply+1))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base.Redacted(), err)
	}
	if len(raw) > maxReply {
		return nil, fmt.Errorf("%s: a reply of more than %d bytes; narrow it with --match, or take a shorter --window", c.base.Redacted(), maxReply)
	}
	list, err := parseReply(res.StatusCode, raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.base.Redacted(), err)
	}
	return list, nil
}

// withoutURL takes the address off an error that says it again.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
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

// parseReply reads the body of an answer.
func parseReply(status int, raw []byte) ([]series, error) {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, fmt.Errorf("it answers %d, so it wants to know who asks; give --token-file FILE, or user:password@ in the address", status)
	}
	var r reply
	err := json.Unmarshal(raw, &r)
	switch {
	case r.Status == "error":
		return nil, fmt.Errorf("it refuses the query: %s", said(r.Error))
	case err != nil && r.Status == "success":
		return nil, fmt.Errorf("its reply cannot be read: %w", err)
	case err != nil || r.Status != "success":
		return nil, fmt.Errorf("it answers %d to /api/v1/query, and not as Prometheus does; want the address of a Prometheus-compatible server, with its path where it has one", status)
	}
	for i := range r.Data.Result {
		if s := &r.Data.Result[i]; s.Metric == nil {
			return nil, errors.New("its reply cannot be read: a series without labels")
		}
	}
	return r.Data.Result, nil
}
