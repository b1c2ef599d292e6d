package disk

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most; the JSON has all of it.
const shown = 10

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	cpus, err := trace.OnlineCPUs()
	return Seen{s, elapsed, cpus}, err
}

// Text shows the devices, who uses them, for which files, and the syncs.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var requests, bytes uint64
	var busy time.Duration
	for _, d := range s.Devices {
		busy += d.AtDevice
		for _, o := range d.Operations {
			requests, bytes = requests+o.Requests, bytes+o.Bytes
		}
	}
	text := fmt.Sprintf("%s: %s disk requests (%s/s), %s; on average %s at the disks at once.", trace.Watched(s.Elapsed, s.CPUs),
		trace.Number(requests), trace.PerSecond(requests, s.Elapsed), layout.Bytes(int64(bytes)), layout.Rate(busy.Seconds()/s.Elapsed.Seconds()))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	b.WriteString(s.devicesText(columns))
	b.WriteString(s.processesText(columns))
	b.WriteString(s.filesText(columns))
	b.WriteString(s.syncsText(columns))
	return b.String() + trace.LostText(s.Lost, columns)
}

// table writes rows under a title and a heading; nothing if there are none. The last column is the one that
// may be shortened.
func table(title string, head []string, rows [][]string, columns int) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + title)
	trace.Rows(&b, append([][]string{head}, rows...), shown, len(head)-1, columns)
	return b.String()
}

func (s Seen) devicesText(columns int) string {
	var rows [][]string
	for _, d := range s.Devices {
		for _, o := range d.Operations {
			rows = append(rows, []string{layout.Line(d.Name), o.Name, trace.PerSecond(o.Requests, s.Elapsed), perSecond(o.Bytes, s.Elapsed),
				layout.Rate(o.Time.Seconds() / s.Elapsed.Seconds()), trace.Mean(o.Queue, o.Queued), trace.Mean(o.Time, o.Requests), o.Times.Under(0.5), o.Times.Under(0.99)})
		}
	}
	text := table("", []string{"device", "", "requests/s", "bytes/s", "depth", "queue", "took", "50 % <", "99 % <"}, rows, columns)
	if len(s.Devices) > 0 && len(s.Devices[0].Operations) > 0 {
		d, o := s.Devices[0], s.Devices[0].Operations[0]
		text += o.Times.Bars(fmt.Sprintf("How long %s took for a %s", layout.Line(d.Name), o.Name))
	}
	return text
}

func (s Seen) processesText(columns int) string {
	var rows [][]string
	for _, p := range s.Processes {
		path := how(p.Direct)
		if p.Operation != "read" && p.Operation != "write" {
			path = "" // it has no data that could go through the page cache
		}
		rows = append(rows, []string{layout.Line(p.Name), layout.Line(p.Device), p.Operation, path, trace.PerSecond(p.Requests, s.Elapsed),
			perSecond(p.Bytes, s.Elapsed), layout.Rate(p.Time.Seconds() / s.Elapsed.Seconds()), trace.Mean(p.Time, p.Completed)})
	}
	return table("", []string{"process", "device", "", "", "I/O/s", "bytes/s", "at once", "took"}, rows, columns)
}

func (s Seen) filesText(columns int) string {
	var rows [][]string
	for _, f := range s.Files {
		rows = append(rows, []string{layout.Line(f.Name), layout.Line(f.Syscall), how(f.Direct), trace.PerSecond(f.Requests, s.Elapsed), layout.Line(f.File)})
	}
	return table("", []string{"process", "in", "", "I/O/s", "file"}, rows, columns)
}

func (s Seen) syncsText(columns int) string {
	var rows [][]string
	for _, y := range s.Syncs {
		rows = append(rows, []string{layout.Line(y.Name), trace.PerSecond(y.Count, s.Elapsed), layout.Rate(y.Time.Seconds() / s.Elapsed.Seconds()),
			trace.Mean(y.Time, y.Count), y.Times.Under(0.5), y.Times.Under(0.99)})
	}
	return table("Who waits until data is on the disk (fsync and the like, on ext4)\n", []string{"process", "syncs/s", "at once", "took", "50 % <", "99 % <"}, rows, columns)
}

func how(direct bool) string {
	if direct {
		return "O_DIRECT"
	}
	return "cached"
}

func perSecond(bytes uint64, elapsed time.Duration) string {
	return layout.Bytes(int64(float64(bytes) / max(elapsed.Seconds(), 1e-9)))
}
