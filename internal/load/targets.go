package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/model"
)

// The most that a file of targets may have. run.json, in which they are, has a bound, too.
const (
	MaxTargetsFile = 1 << 20 // bytes
	maxTargets     = 1000    // lines with a target
	maxTargetNames = 256     // each has counts and a histogram in every thread
)

// targetLine is a line of a file of targets.
type targetLine struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Weight  *float64          `json:"weight"`
	Expect  json.RawMessage   `json:"expect"`
	Check   string            `json:"check"`
	Length  *int64            `json:"length"`
}

// ReadTargets reads a file of targets: on each line a JSON object; empty lines, and those that
// begin with #, are left out. An error names the line. Plan says at which origin they are,
// and has the headers that all of them get.
func ReadTargets(text []byte, plan model.LoadPlan) ([]model.Target, error) {
	if len(text) > MaxTargetsFile {
		return nil, fmt.Errorf("more than %d bytes, which is more than is read", MaxTargetsFile)
	}
	u, err := parseURL(plan.URL)
	if err != nil {
		return nil, err
	}
	var list []model.Target
	names := map[string]bool{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		t, err := parseTarget(line, u)
		if plan.Variables != nil {
			t.Path, t.Name = withHoles(t.Path, plan.Variables), withHoles(t.Name, plan.Variables)
		} else if err == nil { // else each row's is looked at
			_, err = targetRequest(plan, t, u)
		}
		names[t.Name] = true
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case len(list) == maxTargets:
			return nil, fmt.Errorf("line %d: want at most %d targets", n, maxTargets)
		case len(names) > maxTargetNames:
			return nil, fmt.Errorf("line %d: want at most %d different names; give those that belong together the same \"name\"", n, maxTargetNames)
		}
		list = append(list, t)
	}
	if len(list) == 0 {
		return nil, errors.New(`no target in it; want lines like {"path": "/", "weight": 3}`)
	}
	return list, nil
}

// parseTarget reads one line; u is the origin at which it has to be.
func parseTarget(line []byte, u *url.URL) (t model.Target, err error) {
	var l targetLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return t, fmt.Errorf(`want an object like {"path": "/", "weight": 3}: %w`, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return t, errors.New("something follows the object; want one on a line")
	}
	if !utf8.Valid(line) {
		return t, errors.New("it is not UTF-8")
	}
	t = model.Target{Method: strings.ToUpper(l.Method), Weight: 1, Check: l.Check, LengthBytes: l.Length}
	if t.Path, err = targetPath(l, u); err != nil {
		return t, err
	}
	for _, name := range slices.Sorted(maps.Keys(l.Headers)) {
		t.Headers = append(t.Headers, name+": "+l.Headers[name])
	}
	if t.Body, err = targetBody(l.Body); err != nil {
		return t, err
	}
	if t.Expect, err = targetExpect(l.Expect); err != nil {
		return t, err
	}
	if l.Weight != nil {
		t.Weight = *l.Weight
	}
	if t.Method == "" {
		t.Method = "GET"
		if len(t.Body) > 0 {
			t.Method = "POST"
		}
	}
	t.Name = cmp.Or(l.Name, shortName(t.Method+" "+t.Path))
	return t, nil
}

// shortName cuts a name of our making.
func shortName(s string) string {
	if len(s) <= maxTargetName {
		return s
	}
	return strings.ToValidUTF8(s[:maxTargetName-3], "") + "…"
}

// targetPath is what follows the origin, as a request has it.
func targetPath(l targetLine, u *url.URL) (string, error) {
	switch {
	case (l.Path == "") == (l.URL == ""):
		return "", errors.New(`want either "path" or "url"`)
	case l.URL != "":
		at, err := parseURL(l.URL)
		if err != nil {
			return "", err
		}
		if at.Scheme != u.Scheme || !strings.EqualFold(at.Hostname(), u.Hostname()) || portOf(at) != portOf(u) {
			return "", fmt.Errorf("url %q: want one at %s://%s: a load goes to one address", l.URL, u.Scheme, u.Host)
		}
		return at.RequestURI(), nil
	}
	at, err := url.Parse(l.Path)
	if err != nil || !strings.HasPrefix(l.Path, "/") || at.Host != "" || at.Scheme != "" {
		return "", fmt.Errorf("path %q: want one that begins with a single /", l.Path)
	}
	at.RawQuery = strings.ReplaceAll(at.RawQuery, " ", "%20")
	return at.RequestURI(), nil
}

// targetBody is what "body" stands for: a text, or JSON that is sent as it stands there.
func targetBody(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '"' {
		return raw, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return []byte(text), nil
}

// targetExpect is what "expect" stands for: a status, or a list of them.
func targetExpect(raw json.RawMessage) (list []int, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '[' {
		raw = slices.Concat(json.RawMessage{'['}, raw, json.RawMessage{']'})
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("expect: want a status like 200, or a list like [200, 304]")
	}
	return list, nil
}
