package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// recordsFile holds the terms that several rules use.
const recordsFile = "records.yaml"

// Record is a term that several rules use, in the form of Prometheus'
// recording rules. A rule that names it gets Expr in parentheses.
type Record struct {
	Name string `yaml:"record" json:"record"` // has a colon, as Prometheus advises
	Help string `yaml:"help" json:"help"`
	Expr string `yaml:"expr" json:"expr"`
}

// recordName is Prometheus' form of a recorded series: level:metric:operation.
var recordName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(:[a-z0-9_]+){2}$`)

// records maps a shared term's name to it; its Expr is already free of others.
type records map[string]Record

func (r records) sorted() []Record {
	list := make([]Record, 0, len(r))
	for _, rec := range r {
		list = append(list, rec)
	}
	slices.SortFunc(list, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// loadRecords reads records.yaml, which a rule set need not have, and adds what
// is in it to the records of the set below. A record may use those that stand
// above it, so there can be no cycle.
func loadRecords(fsys fs.FS, dir string, below records) (records, []byte, error) {
	raw, err := readFile(fsys, recordsFile, maxRecords)
	if errors.Is(err, fs.ErrNotExist) {
		return below, nil, nil
	}
	file := path.Join(dir, recordsFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", file, err)
	}
	var list []Record
	if err := decodeStrict(raw, &list); err != nil {
		return nil, nil, inFile(file, err)
	}
	known := maps.Clone(below)
	for _, rec := range list {
		if !recordName.MatchString(rec.Name) || rec.Help == "" {
			return nil, nil, fmt.Errorf("%s: %q: want a record named level:metric:operation in lower case, and a help", file, rec.Name)
		}
		if _, taken := known[rec.Name]; taken || rec.Name == machineInfo {
			return nil, nil, fmt.Errorf("%s: %s is there already; give it another name", file, rec.Name)
		}
		expr, err := parseExpression(rec.Expr, known)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", file, rec.Name, err)
		}
		rec.Expr = expr.text
		known[rec.Name] = rec
	}
	return known, raw, nil
}

// expandRecords puts the expressions of shared terms in the place of their names.
func expandRecords(src string, known records) (string, error) {
	root, err := parseWithVariables(src)
	if err != nil {
		return "", err
	}
	var cuts []splice
	for _, vs := range vectorSelectors(root) {
		if !strings.Contains(vs.Name, ":") || vs.Name == machineInfo {
			continue
		}
		rec, ok := known[vs.Name]
		if !ok {
			return "", fmt.Errorf("%s: no such record above it in records.yaml", vs.Name)
		}
		pos := vs.PositionRange()
		if src[pos.Start:pos.End] != vs.Name {
			return "", fmt.Errorf("%s: a record stands for an expression, so it takes no labels, range or moment", vs.Name)
		}
		cuts = append(cuts, splice{int(pos.Start), int(pos.End), "(" + rec.Expr + ")"})
	}
	return spliceAll(src, cuts), nil
}
