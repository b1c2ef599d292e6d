package export

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
)

// Readings writes readings as they come, in the form of CSV.
type Readings struct{ out *csv.Writer }

// NewReadings begins a table.
func NewReadings(w io.Writer) (*Readings, error) {
	r := &Readings{csv.NewWriter(w)}
	return r, r.out.Write(head)
}

// Put writes a reading of a signal at a moment (Unix milliseconds), with the values of its labels. Close tells of an error.
func (r *Readings) Put(at int64, host string, s *model.Signal, v float64, values ...string) {
	_ = r.out.Write([]string{strconv.FormatInt(at, 10), s.Name, text(Escaped(host)), text(pairs(labelled(s, values), "")), number(v)})
}

// Close ends the table.
func (r *Readings) Close() error {
	r.out.Flush()
	return r.out.Error()
}

// Reading is a signal's value, with those of its labels.
type Reading struct {
	Signal *model.Signal
	Labels []string
	Value  float64
}

// Prometheus writes the newest readings in Prometheus' text format, which node_exporter's textfile collector and a
// pushgateway take: without times, those of a signal together.
func Prometheus(w io.Writer, list []Reading) error {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(a.Signal.Name, b.Signal.Name), slices.Compare(a.Labels, b.Labels))
	})
	out := bufio.NewWriterSize(w, buffered)
	for i, r := range list {
		if s := r.Signal; i == 0 || list[i-1].Signal.Name != s.Name {
			typ := map[bool]string{true: "gauge", false: "counter"}[s.Kind == model.Gauge]
			fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", s.Name, helpText.Replace(s.Help), s.Name, typ)
		}
		out.WriteString(r.Signal.Name)
		if of := pairs(labelled(r.Signal, r.Labels), ""); of != "" {
			out.WriteString("{" + of + "}")
		}
		out.WriteString(" " + number(r.Value) + "\n")
	}
	return out.Flush()
}

// helpText escapes what would end a line of help; quotes stay as they are in this format.
var helpText = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// labelled are the labels of a signal with their values.
func labelled(s *model.Signal, values []string) labels.Labels {
	list := make([]labels.Label, 0, len(values))
	for i, v := range values {
		list = append(list, labels.Label{Name: s.Labels[i], Value: v})
	}
	return labels.New(list...)
}
