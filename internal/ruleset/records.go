package ruleset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/query"
)

// recordsFile holds the terms that several rules use.
const recordsFile = "records.yaml"

// recordName is Prometheus' form of a recorded series: level:metric:operation.
var recordName = lazy.Regexp(`^[a-z_][a-z0-9_]*(:[a-z0-9_]+){2}$`)

// sortedRecords lists records by name.
func sortedRecords(r query.Records) []query.Record {
	return slices.SortedFunc(maps.Values(r), func(a, b query.Record) int { return strings.Compare(a.Name, b.Name) })
}

// loadRecords reads records.yaml, which a rule set need not have, and adds what
// is in it to the records of the set below. A record may use those that stand
// above it, so there can be no cycle.
func loadRecords(fsys fs.FS, dir string, terms query.Terms) (query.Terms, []byte, error) {
	raw, err := ReadFile(fsys, recordsFile, maxRecords)
	if errors.Is(err, fs.ErrNotExist) {
		return terms, nil, nil
	}
	file := path.Join(dir, recordsFile)
	if err != nil {
		return terms, nil, fmt.Errorf("read %s: %w", file, err)
	}
	var list []query.Record
	if err := DecodeStrict(raw, &list); err != nil {
		return terms, nil, InFile(file, err)
	}
	terms = terms.With(maps.Clone(terms.Records))
	for _, rec := range list {
		if !recordName().MatchString(rec.Name) || rec.Help == "" {
			return terms, nil, fmt.Errorf("%s: %q: want a record named level:metric:operation in lower case, and a help", file, rec.Name)
		}
		if _, taken := terms.Records[rec.Name]; taken || rec.Name == query.MachineInfo {
			return terms, nil, fmt.Errorf("%s: %s is there already; give it another name", file, rec.Name)
		}
		expr, err := terms.Parse(rec.Expr)
		if err != nil {
			return terms, nil, fmt.Errorf("%s: %s: %w", file, rec.Name, err)
		}
		rec.Written, rec.Expr = rec.Expr, expr.Text
		terms.Add(rec)
	}
	return terms, raw, nil
}
