package load

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// The most that a file of variables may have. Each row's requests are made before the load, so that they cost it nothing.
const (
	MaxVariablesFile = 64 << 20 // bytes
	maxRows          = 100_000
	maxRendered      = 256 << 20 // bytes of all requests
	maxVariables     = 100
)

// variableName is what may stand between braces; placeholder is where it does.
var (
	variableName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	placeholder  = lazy.Regexp(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)
)

// ReadVariables reads a CSV file whose first line has the variables' names; each other line is a row of values.
func ReadVariables(text []byte) (*model.Variables, error) {
	if len(text) > MaxVariablesFile {
		return nil, fmt.Errorf("more than %d bytes, which is more than is read", MaxVariablesFile)
	}
	lines := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	names, err := lines.Read()
	if err == io.EOF {
		return nil, errors.New("nothing in it; want names on the first line, and a row of values on each other one")
	}
	if err != nil {
		return nil, err
	}
	v := &model.Variables{Names: names}
	for {
		row, err := lines.Read()
		switch {
		case err == io.EOF:
			v.Rows = len(v.Values)
			return v, checkVariables(v)
		case err != nil:
			return nil, err
		case len(v.Values) == maxRows:
			return nil, fmt.Errorf("more than %d rows: take a part of the file", maxRows)
		}
		v.Values = append(v.Values, row)
	}
}

func checkVariables(v *model.Variables) error {
	switch {
	case len(v.Names) > maxVariables:
		return fmt.Errorf("%d variables: want at most %d", len(v.Names), maxVariables)
	case len(v.Values) == 0:
		return errors.New("names and no row of values")
	case len(v.Values) > maxRows:
		return fmt.Errorf("%d rows: want at most %d", len(v.Values), maxRows)
	}
	for i, name := range v.Names {
		if !variableName().MatchString(name) {
			return fmt.Errorf("name %q on the first line: want letters, digits, _, - and ., a letter or _ first", name)
		}
		if slices.Contains(v.Names[:i], name) {
			return fmt.Errorf("name %q is on the first line twice", name)
		}
	}
	for i, row := range v.Values {
		if len(row) != len(v.Names) {
			return fmt.Errorf("row %d has %d values, and there are %d names", i+1, len(row), len(v.Names))
		}
	}
	return nil
}

// asked is what a load asks for, in one row's words.
type asked struct {
	plan    model.LoadPlan
	targets []model.Target
}

// row puts the values of a row in the places of their names: escaped in the path and the query, as they are in headers and the body.
func (a asked) row(names, values []string) asked {
	var plain, path, query []string
	for i, name := range names {
		hole := "{" + name + "}"
		plain, path, query = append(plain, hole, values[i]), append(path, hole, url.PathEscape(values[i])), append(query, hole, url.QueryEscape(values[i]))
	}
	as, inPath, inQuery := strings.NewReplacer(plain...), strings.NewReplacer(path...), strings.NewReplacer(query...)
	where := func(s string) string {
		before, after, ok := strings.Cut(s, "?")
		if before = inPath.Replace(before); !ok {
			return before
		}
		return before + "?" + inQuery.Replace(after)
	}
	headers := func(list []string) (out []string) {
		for _, h := range list {
			name, value, ok := strings.Cut(h, ":")
			if ok {
				h = name + ":" + as.Replace(value)
			}
			out = append(out, h)
		}
		return out
	}
	at := afterOrigin(a.plan.URL)
	a.plan.URL = a.plan.URL[:at] + where(a.plan.URL[at:])
	a.plan.Headers, a.plan.Body = headers(a.plan.Headers), []byte(as.Replace(string(a.plan.Body)))
	targets := slices.Clone(a.targets)
	for i := range targets {
		t := &targets[i]
		t.Path, t.Headers, t.Body = where(t.Path), headers(t.Headers), []byte(as.Replace(string(t.Body)))
	}
	a.targets = targets
	return a
}

// afterOrigin is where a URL's path begins.
func afterOrigin(s string) int {
	scheme := strings.Index(s, "://")
	if scheme < 0 {
		return len(s)
	}
	if i := strings.IndexAny(s[scheme+3:], "/?#"); i >= 0 {
		return scheme + 3 + i
	}
	return len(s)
}

// fits says what is wrong with the use of variables: none is used, or a path has one that is not there.
func (a asked) fits(names []string) error {
	used := false
	see := func(s string, strict bool) error {
		for _, hole := range placeholder().FindAllString(s, -1) {
			known := slices.Contains(names, hole[1:len(hole)-1])
			if used = used || known; !known && strict {
				return fmt.Errorf("%s in %q: the file of variables has no such name; it has %s", hole, s, strings.Join(names, ", "))
			}
		}
		return nil
	}
	texts := append([]string{string(a.plan.Body)}, a.plan.Headers...)
	paths := []string{a.plan.URL[afterOrigin(a.plan.URL):]}
	for _, t := range a.targets {
		paths = append(paths, t.Path)
		texts = append(append(texts, string(t.Body)), t.Headers...)
	}
	for _, p := range paths {
		if err := see(p, true); err != nil {
			return err
		}
	}
	for _, s := range texts {
		_ = see(s, false) // braces have other meanings there
	}
	if !used {
		return fmt.Errorf("none of the variables is used: want {%s} in the path, a header or the body", strings.Join(names, "}, {"))
	}
	return nil
}

// withHoles is a path as a request has it, with the places of variables as they were written.
func withHoles(path string, v *model.Variables) string {
	for _, name := range v.Names {
		path = strings.ReplaceAll(path, "%7B"+name+"%7D", "{"+name+"}")
	}
	return path
}
