package load

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/model"
)

// The most that a target may have.
const (
	maxTargetName = 200 // bytes
	maxWeight     = 1e6
	maxExpected   = 32 // statuses
)

// request is what a user may ask for.
type request struct {
	bytes   []byte     // as it is sent
	http2   *h2Request // as it is over HTTP/2, nil without
	toHEAD  bool
	upgrade bool     // it asks for another protocol
	name    int32    // of its target, an index into job.names
	expect  []int16  // the statuses that are right; none means those below 400
	text    *pattern // what has to be in the body, nil for nothing
	length  *int64   // how long the body has to be, nil for any length
}

// targetRequest makes the request of a target; u is its origin.
func targetRequest(plan model.LoadPlan, t model.Target, u *url.URL) (request, error) {
	at, err := url.Parse(t.Path)
	switch {
	case err != nil:
		return request{}, fmt.Errorf("path %q: %w", t.Path, err)
	case at.Host != "" || at.Scheme != "" || !strings.HasPrefix(t.Path, "/"):
		return request{}, fmt.Errorf("path %q: want one that begins with a single /", t.Path)
	case t.Name == "" || len(t.Name) > maxTargetName || !printable(t.Name):
		return request{}, fmt.Errorf("name %q: want 1 to %d bytes without control characters", t.Name, maxTargetName)
	case !(t.Weight > 0 && t.Weight <= maxWeight): // written so that NaN is refused
		return request{}, fmt.Errorf("weight %g: want more than 0 and at most %g", t.Weight, maxWeight)
	case len(t.Expect) > maxExpected:
		return request{}, fmt.Errorf("expect: want at most %d statuses", maxExpected)
	case (t.Check != "" || t.LengthBytes != nil) && t.Method == "HEAD":
		return request{}, errors.New("check, length: a reply to HEAD has no body to look into")
	case t.LengthBytes != nil && *t.LengthBytes < 0:
		return request{}, fmt.Errorf("length %d: want 0 or more bytes", *t.LengthBytes)
	}
	r := request{toHEAD: t.Method == "HEAD", length: t.LengthBytes}
	for _, status := range t.Expect {
		if status < 200 || status > 599 {
			return request{}, fmt.Errorf("expect %d: want statuses from 200 to 599", status)
		}
		r.expect = append(r.expect, int16(status))
	}
	if t.Check != "" {
		r.text = newPattern(t.Check)
	}
	plan.Method, plan.Body = t.Method, t.Body
	plan.Headers = slices.Concat(others(plan.Headers, t.Headers), t.Headers)
	where := *u
	where.Opaque, where.Path, where.RawPath, where.RawQuery, where.ForceQuery = "", at.Path, at.RawPath, at.RawQuery, at.ForceQuery
	err = r.form(plan, &where)
	return r, err
}

// form gives r the form in which it is sent.
func (r *request) form(plan model.LoadPlan, u *url.URL) (err error) {
	r.upgrade = slices.ContainsFunc(plan.Headers, func(h string) bool { return headerName(h) == "upgrade" })
	if r.bytes, err = buildRequest(plan, u); err == nil && plan.HTTP2 {
		r.http2, err = buildHTTP2(plan, u)
	}
	return err
}

// others are those headers whose name none of the more special ones has.
func others(headers, special []string) (list []string) {
	for _, h := range headers {
		if !slices.ContainsFunc(special, func(s string) bool { return headerName(s) == headerName(h) }) {
			list = append(list, h)
		}
	}
	return list
}

// headerName is the name of a header line, in lower case.
func headerName(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return strings.ToLower(name)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// judge is the outcome of a complete reply.
func (a *request) judge(r *reply) outcome {
	class := int(r.status / 100)
	expected := slices.Contains(a.expect, r.status)
	switch {
	case len(a.expect) > 0 && !expected && r.status < firstError:
		return failure(checkFailed, wrongStatus)
	case r.status >= firstError && !expected:
		return outcome(class)
	case a.text != nil && !r.found():
		return failure(checkFailed, missingText)
	case a.length != nil && *a.length != r.length:
		return failure(checkFailed, wrongLength)
	case r.status >= firstError:
		return failure(expectedError, class)
	}
	return outcome(class)
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("url %q: %w", s, err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url %q: want one that starts with http:// or https://", s)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url %q: want a host after %s://", s, u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("url %q: give user and password as an Authorization header, not in the URL", s)
	}
	// The parser lets a blank in a query pass; in a request it would end the URL.
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	return u, nil
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// buildRequest makes the bytes that every request consists of. A header of the
// plan replaces ours of the same name.
func buildRequest(p model.LoadPlan, u *url.URL) ([]byte, error) {
	if !isToken(p.Method) || p.Method == "CONNECT" {
		return nil, fmt.Errorf("method %q: want GET, HEAD, POST, PUT, DELETE or the like", p.Method)
	}
	theirs, given, err := headerLines(p.Headers, p.Body)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", p.Method, u.RequestURI())
	ours := func(name, value string) {
		if !given[strings.ToLower(name)] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	ours("Host", hostHeader(u))
	ours("User-Agent", "plimsoll/"+version())
	if !p.KeepAlive {
		ours("Connection", "close")
	}
	if len(p.Body) > 0 || p.Method == "POST" || p.Method == "PUT" || p.Method == "PATCH" {
		ours("Content-Length", strconv.Itoa(len(p.Body)))
	}
	b.WriteString(theirs)
	b.WriteString("\r\n")
	b.Write(p.Body)
	return []byte(b.String()), nil
}
