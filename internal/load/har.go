package load

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// What of a HAR export is left out, and why.
const (
	leftOrigin = "at other origins"
	leftNoBody = "a body that the export does not have"
)

// harFile is what of a HAR export (HTTP Archive 1.2) matters here.
type harFile struct {
	Log struct {
		Entries []harEntry `json:"entries"`
	} `json:"log"`
}

type harEntry struct {
	Started string `json:"startedDateTime"`
	Request struct {
		Method   string    `json:"method"`
		URL      string    `json:"url"`
		Headers  []harPair `json:"headers"`
		BodySize float64   `json:"bodySize"`
		PostData *harBody  `json:"postData"`
	} `json:"request"`
}

type harPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type harBody struct {
	MimeType string    `json:"mimeType"`
	Text     *string   `json:"text"`
	Encoding string    `json:"encoding"`
	Params   []harPair `json:"params"`
}

// readHAR reads an export. Sent is what was recorded at the target's origin, or else at that of the first entry.
func readHAR(text []byte, u *url.URL) (*recording, error) {
	var file harFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("HAR export: %w", err)
	}
	if len(file.Log.Entries) > maxRecorded {
		return nil, fmt.Errorf("more than %d requests: take a part of the HAR export", maxRecorded)
	}
	r := &recording{from: "HAR export", left: map[string]int{}}
	from := recordedOrigin(file.Log.Entries, origin(u))
	for i := range file.Log.Entries {
		e := &file.Log.Entries[i]
		at, err := url.Parse(e.Request.URL)
		if err != nil || origin(at) != from {
			r.leave(leftOrigin)
			continue
		}
		began, err := time.Parse(time.RFC3339Nano, e.Started)
		if err != nil {
			return nil, fmt.Errorf("HAR export: entry %d: startedDateTime %q: %w", i+1, e.Started, err)
		}
		t, why := e.target(at, u)
		if why != "" {
			r.leave(why)
			continue
		}
		r.requests = append(r.requests, recordedRequest{at: began.UnixMicro(), target: t})
	}
	if from != origin(u) && len(r.requests) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("what was recorded at %s goes to %s", from, origin(u)))
	}
	return r, nil
}

// origin is a URL's scheme, host and port, "" of what is no web's.
func origin(u *url.URL) string {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + ":" + portOf(u)
}

// recordedOrigin is ours if something was recorded there, else that of the first entry that has one.
func recordedOrigin(entries []harEntry, ours string) (first string) {
	for i := range entries {
		u, err := url.Parse(entries[i].Request.URL)
		if err != nil {
			continue
		}
		switch at := origin(u); at {
		case ours:
			return ours
		default:
			if first == "" {
				first = at
			}
		}
	}
	return first
}

// unsent are headers that belong to the connection that was, or that we set.
var unsent = []string{
	"host", "connection", "content-length", "transfer-encoding", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade", "te", "trailer", "expect", "http2-settings",
}

// target is what is sent for an entry, or why nothing is.
func (e *harEntry) target(at, u *url.URL) (t model.Target, why string) {
	q := &e.Request
	t.Method = strings.ToUpper(q.Method)
	if !isToken(t.Method) || t.Method == "CONNECT" {
		return t, leftNoTarget
	}
	var err error
	at.RawQuery = strings.ReplaceAll(at.RawQuery, " ", "%20")
	if t.Path, err = targetPath(targetLine{Path: at.RequestURI()}, u); err != nil {
		return t, leftNoTarget
	}
	for _, h := range q.Headers {
		if isToken(h.Name) && !slices.Contains(unsent, strings.ToLower(h.Name)) && sendable(h.Value) {
			t.Headers = append(t.Headers, h.Name+": "+h.Value)
		}
	}
	ok := false
	if t.Body, ok = q.PostData.bytes(); !ok || q.PostData == nil && q.BodySize > 0 {
		return t, leftNoBody
	}
	return t, ""
}

// bytes are the body as it was sent; false says that nobody knows.
func (b *harBody) bytes() ([]byte, bool) {
	switch {
	case b == nil:
		return nil, true
	case b.Text != nil && b.Encoding == "base64":
		raw, err := base64.StdEncoding.DecodeString(*b.Text)
		return raw, err == nil
	case b.Text != nil && (*b.Text != "" || len(b.Params) == 0):
		return []byte(*b.Text), true
	case !strings.HasPrefix(strings.ToLower(b.MimeType), "application/x-www-form-urlencoded"):
		return nil, len(b.Params) == 0
	}
	var parts []string
	for _, p := range b.Params {
		parts = append(parts, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
	}
	return []byte(strings.Join(parts, "&")), true
}
