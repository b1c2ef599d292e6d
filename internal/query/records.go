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

// expandTried is expandRecords for a text that was parsed before: who names records is found by their two colons, which takes a tenth
// of the time, and every command waits for some thousand texts.
func expandTried(src string, known Records) (string, error) {
	var cuts []splice
	for at := 0; at < len(src); {
		end := at + 1
		switch c := src[at]; {
		case c == '"' || c == '\'' || c == '`':
			end = endOfString(src, at)
		case c == '#':
			end = at + len(firstLine(src[at:]))
		case inWord(c):
			for end < len(src) && inWord(src[end]) {
				end++
			}
			name := src[at:end]
			if strings.Count(name, ":") < 2 || name == MachineInfo {
				break // a range with a step has one
			}
			rec, ok := known[name]
			if !ok {
				return "", fmt.Errorf("%s: no such record above it in records.yaml", name)
			}
			cuts = append(cuts, splice{at, end, "(" + rec.Expr + ")"})
		}
		at = end
	}
	return spliceAll(src, cuts), nil
}

// endOfString is where the string ends that begins there.
func endOfString(src string, at int) int {
	quote := src[at]
	for at++; at < len(src) && src[at] != quote; at++ {
		if src[at] == '\\' && quote != '`' {
			at++
		}
	}
	return min(at+1, len(src))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
