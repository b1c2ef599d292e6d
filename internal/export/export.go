// Package export writes a run's series in forms that other programs read: OpenMetrics
// and CSV. A series at a time is held, however long the run was.
package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// buffered is how much is written at a time, in bytes.
const buffered = 64 << 10

// head is the first line of a table.
var head = []string{"time_ms", "name", "host", "labels", "value"}

// CSV writes one line a reading, each series' in the order of time: Unix milliseconds, the
// series' name, its host, its other labels as Prometheus writes them, and the value. No
// text in it is taken for a formula by a spreadsheet.
func CSV(w io.Writer, run *record.Run) error {
	out := csv.NewWriter(w)
	if err := out.Write(head); err != nil {
		return err
	}
	names, err := names(run)
	if err != nil {
		return err
	}
	for _, name := range names {
		for s, err := range series(run, name) {
			if err != nil {
				return err
			}
			row := []string{"", text(Escaped(name)), text(Escaped(s.Labels.Get("host"))), text(pairs(s.Labels, "host")), ""}
			for _, p := range s.Points {
				row[0], row[4] = strconv.FormatInt(p.Time, 10), number(p.Value)
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// text is a cell from outside: an apostrophe keeps a spreadsheet from running it.
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// OpenMetrics writes the run in that format, version 1.0, with every reading's time. Type,
// unit and help are those of the signals that declared are; of others the type is unknown.
// Series whose name or whose labels' names the format cannot write are left out; left is how many.
func OpenMetrics(w io.Writer, run *record.Run, declared []*model.Signal) (left int, err error) {
	out := bufio.NewWriterSize(w, buffered)
	names, err := names(run)
	if err != nil {
		return 0, err
	}
	known := map[string]*model.Signal{}
	for _, s := range declared {
		known[s.Name] = s
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for _, name := range names {
		described := false
		for s, err := range series(run, name) {
			if err != nil {
				return left, err
			}
			if !writable(s.Labels) {
				left++
				continue
			}
			if !described {
				described = true
				describe(out, name, known[name], func(name string) bool { return there[name] })
			}
			metric(out, name, s)
		}
		if err := out.Flush(); err != nil {
			return left, err
		}
	}
	_, err = out.WriteString("# EOF\n")
	return left, errors.Join(err, out.Flush())
}

// Describe writes the metadata of a signal in OpenMetrics; there says whether there are series
// of a name.
func Describe(out io.Writer, s *model.Signal, there func(name string) bool) {
	describe(out, s.Name, s, there)
}

// IsTotal says whether a series is a counter by its name.
func IsTotal(name string) bool { return strings.HasSuffix(name, "_total") }

// describe writes a family's metadata. A counter is one by its name, too; what the kernel
// counts up under another name is of unknown type, as node_exporter has it.
func describe(out io.Writer, name string, s *model.Signal, there func(string) bool) {
	family, typ := name, "unknown"
	base, total := strings.CutSuffix(name, "_total")
	switch {
	case s == nil:
	case s.Kind == model.Gauge:
		typ = "gauge"
	case total && !there(base):
		family, typ = base, "counter"
	}
	fmt.Fprintf(out, "# TYPE %s %s\n", family, typ)
	if s == nil {
		return
	}
	if strings.HasSuffix(family, "_"+s.Unit) {
		fmt.Fprintf(out, "# UNIT %s %s\n", family, s.Unit)
	}
	fmt.Fprintf(out, "# HELP %s %s\n", family, Escaped(s.Help))
}

// metric writes a series' readings; an error stays in out.
func metric(out *bufio.Writer, name string, s record.Series) {
	begin := name
	if list := pairs(s.Labels, ""); list != "" {
		begin += "{" + list + "}"
	}
	for _, p := range s.Points {
		out.WriteString(begin)
		fmt.Fprintf(out, " %s %d.%03d\n", number(p.Value), p.Time/1000, p.Time%1000)
	}
}

// names are those of all series, in their order.
func names(run *record.Run) (_ []string, err error) {
	first, last, err := run.Span()
	if err != nil {
		return nil, err
	}
	q, err := run.Queryable().Querier(first, last)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	list, _, err := q.LabelValues(context.Background(), labels.MetricName, nil)
	return list, err
}

// series are all of a name.
func series(run *record.Run, name string) iter.Seq2[record.Series, error] {
	first, last, err := run.Span()
	if err != nil {
		return func(yield func(record.Series, error) bool) { yield(record.Series{}, err) }
	}
	return run.Series(first, last, record.Match(name)...)
}

// The names that OpenMetrics 1.0 knows.
var (
	metricName = lazy.Regexp(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// writable says whether all names are of the letters that the format knows.
func writable(list labels.Labels) bool {
	ok := true
	list.Range(func(l labels.Label) {
		if l.Name == labels.MetricName {
			ok = ok && metricName().MatchString(l.Value)
			return
		}
		ok = ok && labelName().MatchString(l.Name)
	})
	return ok
}

// pairs are labels but the name and one other, as Prometheus writes them.
func pairs(list labels.Labels, but string) string {
	var b strings.Builder
	list.Range(func(l labels.Label) {
		if l.Name == labels.MetricName || l.Name == but {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s="%s"`, l.Name, Escaped(l.Value))
	})
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// Escaped is a text as OpenMetrics has it in labels and in metadata.
func Escaped(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return escapes.Replace(s)
}

// number is a value as both formats have it.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
