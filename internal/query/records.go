package query

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// Record is a term that several rules use, in the form of Prometheus'
// recording rules. A rule that names it gets Expr in parentheses.
type Record struct {
	Name string `yaml:"record" json:"record"` // has a colon, as Prometheus advises
	Help string `yaml:"help" json:"help"`
	Expr string `yaml:"expr" json:"expr"`
	// Refining are those of its signals of which each says more exactly what another says (model.Signal.Refines).
	Refining []string `yaml:"refining" json:"refining,omitempty"`
	// Written is Expr as it stands in records.yaml, with the names of other records.
	Written string `yaml:"-" json:"-"`
}

// Records maps a shared term's name to it; its Expr is already free of others.
type Records map[string]Record

// expandRecords puts the expressions of shared terms in the place of their names in src, which root is the tree of.
func expandRecords(src string, root parser.Expr, known Records) (string, error) {
	var cuts []splice
	for _, vs := range VectorSelectors(root) {
		if !strings.Contains(vs.Name, ":") || vs.Name == MachineInfo {
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
