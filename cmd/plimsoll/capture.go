package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/http"
	"plimsoll/internal/capture/pcap"
	"plimsoll/internal/capture/tcp"
	"plimsoll/internal/input"
	"plimsoll/internal/layout"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
)

const captureLong = `Reads packet captures, or captures from an interface, and says what the wire
shows: the connections, what Wireshark 4.4 says of each segment
(retransmissions by kind, out of order, duplicate ACKs, windows, keep-alives
...), and what Wireshark does not say: why each connection was reset, where
segments were lost, how attempts to connect failed, who made whom wait. Each
cause is named with the frames that show it.

FILE is a capture as tcpdump, tshark or Wireshark write it: pcap or pcapng,
plain, or compressed with gzip or zstd; - is standard input. Several are
merged by time and numbered as one. Files of any size are read in one pass;
what is kept of connections is bounded by --max-memory: beyond it those that
are idle for the longest are forgotten, and counted.

A file that is cut or broken is read up to there. The result says that it is
partial, and the exit code is 5.

With -i it captures until ^C, or for -d, and then says the same. The kernel
filters (--filter), and hands packets over in a ring of 32 MiB; those that
find no room in it are counted as dropped. A packet on a loopback interface is
counted once. It needs CAP_NET_RAW, and for another host's network (--host)
the right to enter it.

The labels are equal to those of tshark 4.4.18, frame by frame. Where we know
better (a port mirror that shows packets twice, reordering that is none), our
judgement stands beside the label: in the table of judgements, in --labels
json, in the comments that --write makes. What cannot be seen from the place
of the capture is not guessed. Contents of packets are never printed.`

const captureExample = `  tcpdump -i eth0 -s 128 -w case.pcap tcp; plimsoll capture case.pcap
  plimsoll capture client.pcap.gz server.pcapng
  plimsoll capture case.pcap --json | jq '.resets[] | {frame, cause, evidence}'
  plimsoll capture case.pcap --labels tsv | grep fast_retransmission
  plimsoll capture -i eth0 -d 10s --filter 'tcp port 443'
  plimsoll capture -i any --host netns:web --host netns:db --keep headers
  plimsoll capture case.pcap --write labelled.pcapng && wireshark labelled.pcapng`

// captureFlags are those of capture.
type captureFlags struct {
	json   *bool
	csv    bool
	labels string
	write  string
	memory string
	tunnel string
	live   liveFlags
}

func captureCommand(w *world) *cobra.Command {
	var f captureFlags
	c := &cobra.Command{Use: "capture {FILE... | -i INTERFACE}", Short: "what the wire says: a packet capture, with causes", Long: captureLong,
		Example: captureExample, Args: func(c *cobra.Command, args []string) error { return f.live.check(c, args) }}
	f.json = jsonFlag(c)
	c.Flags().BoolVar(&f.csv, "csv", false, "print the table of connections as comma-separated values")
	c.Flags().StringVar(&f.labels, "labels", "", "print the labelled packets, as `FORM` tsv (frame, stream, labels, number of a duplicate ACK, RTO) or json (a line each, with what it acknowledges and our judgement)")
	c.Flags().StringVar(&f.write, "write", "", "write the packets to this `FILE`, pcapng, with the labels as comments that Wireshark shows")
	c.Flags().StringVar(&f.memory, "max-memory", "1GiB", "keep at most `SIZE` of connections: a number with KiB, MiB or GiB")
	c.Flags().StringVar(&f.tunnel, "tunnel", "inner", "in GRE, VXLAN and the like take the `inner` or the outer packet for the connection")
	f.live.add(c)
	c.RunE = func(c *cobra.Command, args []string) error { return runCapture(c, w, f, args) }
	return withExits(c, exitOK, exitUsage, exitMissing, exitRunDir, exitInterrupted)
}

// options checks the flags.
func (f *captureFlags) options(command string) (o capture.Options, err error) {
	forms := 0
	for _, on := range []bool{*f.json, f.csv, f.labels != ""} {
		if on {
			forms++
		}
	}
	switch {
	case forms > 1:
		return o, usage(command, "--json, --csv and --labels each say what to print; give one of them")
	case f.labels != "" && f.labels != "tsv" && f.labels != "json":
		return o, usage(command, "--labels %s: want tsv or json", f.labels)
	case f.tunnel != "inner" && f.tunnel != "outer":
		return o, usage(command, "--tunnel %s: want inner or outer", f.tunnel)
	}
	o.Outer = f.tunnel == "outer"
	if o.MaxMemory, err = parseSize(f.memory); err != nil {
		return o, usage(command, "--max-memory %s: %v", f.memory, err)
	}
	return o, nil
}

const leastMemory = 1 << 20

// parseSize reads a size like 512MiB, or a number of bytes.
func parseSize(text string) (int64, error) {
	shift, number := 0, text
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if cut, ok := strings.CutSuffix(text, unit); ok {
			shift, number = 10*(i+1), cut
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return 0, errors.New("want a size like 512MiB")
	}
	if n <<= shift; n < leastMemory {
		return 0, errors.New("want at least 1MiB")
	}
	return n, nil
}

func runCapture(c *cobra.Command, w *world, f captureFlags, names []string) (err error) {
	o, err := f.options(c.CommandPath())
	if err != nil {
		return err
	}
	ctx := c.Context()
	var in *captures
	if f.live.iface != "" {
		in, err = f.live.open(w, c)
		ctx = context.WithoutCancel(ctx) // ^C ends the capture, and what it has is reported
	} else {
		in, err = openCaptures(w, names)
	}
	if err != nil {
		return err
	}
	defer in.close()
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	list := &replyList{}
	if *f.json {
		o.Reply = list.add
	}
	debug.SetGCPercent(10) // what is kept has few pointers: collecting is cheap, room is not
	line := w.progress()
	o.Progress = func(packets int64) {
		if in.rings != nil && f.labels != "" {
			out.Flush() //nolint:errcheck // the last one says it
		}
		if line != nil {
			line.say(in.progress(packets))
		}
	}
	r, err := f.read(ctx, o, in, out)
	line.end()
	if err != nil {
		return err
	}
	if err := f.print(w, out, r, list); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return partial(r)
}

// partial is the error that captures were not read to their ends, nil where they were:
// what was read has been printed all the same.
func partial(r *capture.Reading) error {
	if !r.Partial {
		return nil
	}
	return fail(exitRunDir, fmt.Errorf("partial: %s", layout.Line(strings.Join(r.Notes, "; "))))
}

// captureError gives an error of reading its exit code.
func captureError(err error) error {
	var not *pcap.NotCapture
	var damage *pcap.Damage
	if errors.As(err, &not) || errors.As(err, &damage) {
		return fail(exitRunDir, err)
	}
	return err
}

// read reads captures to their ends, and writes what is asked for about each packet.
func (f *captureFlags) read(ctx context.Context, o capture.Options, in *captures, out io.Writer) (r *capture.Reading, err error) {
	if f.write == "" {
		if o.Frame, err = f.frameSink(out, nil); err != nil {
			return nil, err
		}
		r, err = capture.Read(ctx, in.sources, o)
		return r, captureError(err)
	}
	if err := in.notOneOf(f.write); err != nil {
		return nil, err
	}
	var ended error // of reading: what was read until then is written all the same
	err = writer.Stream(f.write, func(file io.Writer) (err error) {
		p := pcap.NewWriter(file)
		if o.Frame, err = f.frameSink(out, p); err != nil {
			return err
		}
		r, ended = capture.Read(ctx, in.sources, o)
		return errors.Join(writeDropped(p, r), p.Flush())
	})
	return r, errors.Join(captureError(ended), fail(exitRunDir, err))
}

// frameSink returns what is to be done with each packet, nil for nothing; p is where
// packets are written, nil for nowhere.
func (f *captureFlags) frameSink(out io.Writer, p *pcap.Writer) (func(*capture.Frame) error, error) {
	var sinks []func(*capture.Frame) error
	var line []byte
	switch f.labels {
	case "tsv":
		if _, err := io.WriteString(out, capture.LabelsHeader); err != nil {
			return nil, err
		}
		sinks = append(sinks, func(k *capture.Frame) (err error) {
			if line = k.AppendLabels(line[:0]); len(line) > 0 {
				_, err = out.Write(line)
			}
			return err
		})
	case "json":
		sinks = append(sinks, func(k *capture.Frame) (err error) {
			if line = k.AppendJudged(line[:0]); len(line) > 0 {
				_, err = out.Write(line)
			}
			return err
		})
	}
	if p != nil {
		sinks = append(sinks, func(k *capture.Frame) error { return p.Packet(&k.Packet, k.Comment()) })
	}
	if len(sinks) == 0 {
		return nil, nil
	}
	return func(k *capture.Frame) error {
		for _, sink := range sinks {
			if err := sink(k); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// writeDropped writes what the captures themselves lost.
func writeDropped(p *pcap.Writer, r *capture.Reading) error {
	if r == nil {
		return nil
	}
	n := int64(0)
	for _, f := range r.Files {
		n += f.Dropped
	}
	if n == 0 {
		return nil
	}
	return p.Dropped(n)
}

// notOneOf is an error for the name of a file that is being read.
func (in *captures) notOneOf(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return nil // who writes it finds out
	}
	for _, f := range in.files {
		if own, err := f.Stat(); err == nil && os.SameFile(info, own) {
			return fail(exitUsage, fmt.Errorf("--write %s: that file is being read; give another name", name))
		}
	}
	return nil
}

func openCaptures(w *world, names []string) (*captures, error) {
	in := &captures{}
	known := true
	for _, name := range names {
		if name == "-" {
			in.sources = append(in.sources, capture.Source{Name: "standard input", In: in.read.by(w.stdin)})
			known = false
			continue
		}
		f, err := input.Open(name)
		if err != nil {
			in.close()
			if err = fmt.Errorf("read a capture: %w", err); codeOf(err) == exitInternal {
				err = fail(exitRunDir, err)
			}
			return nil, err
		}
		in.files = append(in.files, f)
		info, err := f.Stat()
		if err != nil || info.IsDir() {
			in.close()
			return nil, fail(exitRunDir, errors.Join(err, fmt.Errorf("%s is a folder; want capture files", name)))
		}
		in.size += info.Size()
		in.sources = append(in.sources, capture.Source{Name: name, In: in.read.by(f), Ahead: info.Mode().IsRegular()})
	}
	if !known {
		in.size = 0
	}
	return in, nil
}

func (in *captures) progress(packets int64) string {
	if in.rings != nil {
		return in.watching(packets)
	}
	text := layout.Count(packets) + " packets"
	if in.size > 0 {
		text += fmt.Sprintf("   %.0f %%", 100*float64(in.read.n.Load())/float64(in.size))
	}
	return text
}

// replyList keeps replies for the JSON document.
type replyList struct {
	list []http.Exchange
	more int64
}

// maxReplies bounds the list; the summary counts all.
const maxReplies = 100_000

func (l *replyList) add(e *http.Exchange) {
	if len(l.list) == maxReplies {
		l.more++
		return
	}
	l.list = append(l.list, *e)
}

// print prints what was asked for; labels were printed on the way.
func (f *captureFlags) print(w *world, out io.Writer, r *capture.Reading, replies *replyList) error {
	switch {
	case *f.json:
		return captureJSON(out, r, replies)
	case f.csv:
		return captureCSV(out, r)
	case f.labels != "":
		return nil
	}
	return captureText(out, r, w.columns())
}

// captureDocument is what capture prints with --json; captureHead is the part of it that is no long list.
type (
	captureDocument struct {
		captureHead
		Resets      []cause.Reset        `json:"resets"`
		Replies     []capture.Exchange   `json:"replies"`
		Connections []capture.Connection `json:"connections"`
	}
	captureHead struct {
		capture.Summary
		Servers     []*cause.Server `json:"servers"`
		ResetsMore  int64           `json:"resets_left_out"`
		RepliesMore int64           `json:"replies_left_out"`
	}
)

// captureJSON writes one document. Its lists go out one entry after the other,
// since they may be long.
func captureJSON(out io.Writer, r *capture.Reading, replies *replyList) error {
	head := captureHead{r.Summary, r.Judge.Servers(), r.Judge.ResetsMore, replies.more}
	var b strings.Builder
	if err := printJSON(&b, head); err != nil {
		return err
	}
	_, err := io.WriteString(out, strings.TrimSuffix(b.String(), "\n}\n"))
	l := &jsonLists{out: out, err: err}
	l.begin("resets")
	for i := range r.Judge.Resets {
		l.add(&r.Judge.Resets[i])
	}
	l.begin("replies")
	for i := range replies.list {
		l.add(capture.NewExchange(&replies.list[i]))
	}
	l.begin("connections")
	r.TCP.Conns(func(c *tcp.Conn) { l.add(r.Connection(c)) })
	l.write("\n  ]\n}\n")
	return l.err
}

// jsonLists writes lists behind the other fields of a document.
type jsonLists struct {
	out     io.Writer
	err     error
	open    bool
	entries int
}

func (l *jsonLists) begin(name string) {
	if l.open {
		l.write("\n  ]")
	}
	l.open, l.entries = true, 0
	l.write(",\n  \"" + name + "\": [")
}

func (l *jsonLists) add(v any) {
	b, err := report.Entry(v)
	l.err = errors.Join(l.err, err)
	if l.entries++; l.entries > 1 {
		l.write(",")
	}
	l.write("\n    ")
	l.write(string(b))
}

func (l *jsonLists) write(text string) {
	if l.err == nil {
		_, l.err = io.WriteString(l.out, text)
	}
}

func captureCSV(out io.Writer, r *capture.Reading) error {
	t := csv.NewWriter(out)
	rows := [][]string{{"stream", "client", "server", "handshake_captured", "first_frame", "start", "seconds", "irtt", "completeness", "client_packets", "server_packets",
		"client_payload", "server_payload", "client_resent", "server_resent", "resets", "reset_cause", "closed_first_by", "labels"}}
	err := t.Write(rows[0])
	seconds := func(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'f', 9, 64) }
	r.TCP.Conns(func(c *tcp.Conn) {
		if err != nil {
			return
		}
		k := r.Connection(c)
		n := func(v any) string { return fmt.Sprint(v) }
		err = t.Write([]string{n(k.Stream), k.Client.String(), k.Server.String(), n(k.Known), n(k.FirstFrame), fmt.Sprintf("%d.%09d", k.Start/1e9, k.Start%1e9),
			seconds(k.End - k.Start), seconds(k.IRTT), n(k.Completeness), n(k.Packets[0]), n(k.Packets[1]), n(k.Bytes[0]), n(k.Bytes[1]),
			n(k.Resent[0]), n(k.Resent[1]), n(k.RSTs), k.Cause, k.FirstFIN, strings.Join(k.Labels, " ")})
	})
	t.Flush()
	return errors.Join(err, t.Error())
}
