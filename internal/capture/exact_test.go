package capture_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/http"
	"plimsoll/internal/capture/tcp"
)

// The captures that strangers recorded, with what tshark 4.4.18 says of them,
// lie beside a checkout: their licences do not let them into it.
const shared = "../../../shared/captures"

// wronglyMissed are replies that tshark has not: it puts directions together only
// while segments come in order, and decrypts TLS where a capture holds the keys.
var wronglyMissed = map[string]struct{ http, first [2][]string }{
	"sv_tls-subjectaltname.pcap": {
		http:  [2][]string{{"829\t24\t200\t415\t0.124368000", "1597\t32\t200\t634\t0.207450000"}},
		first: [2][]string{{"592\t24\t200\t415\t0.076447000"}},
	},
	"ws_challenge01_ooo_stream.pcapng": {http: [2][]string{nil, {"38\t0\t200\t9\t0.320286000"}}},
}

// Every frame of every capture has the labels, the number of the duplicate ACK,
// the RTO, the acknowledged frame and its round trip that tshark gives it; every
// stream its ends, times, completeness, resets and bytes.
func TestLabelsAreWiresharks(t *testing.T) {
	captures, err := filepath.Glob(filepath.Join(shared, "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(captures) == 0 {
		t.Skipf("%s is not here: the recorded captures, and what tshark says of them, are not part of the project", shared)
	}
	for _, name := range captures {
		t.Run(filepath.Base(name), func(t *testing.T) { likeTshark(t, name) })
	}
}

// Conversations with real sockets, and two that were made up so that few numbers meet often, or options
// are odd and cut: testdata/tshark has them, cut to headers, with what tshark 4.4.18 (4.4.19 of the options) says of them.
func TestLabelsAreTsharks(t *testing.T) {
	captures, err := filepath.Glob("testdata/tshark/*.pcap.gz")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures, %v", err)
	}
	for _, name := range captures {
		text, err := os.ReadFile(strings.TrimSuffix(name, ".pcap.gz") + ".tsv")
		if err != nil {
			t.Fatal(err)
		}
		got := []string{"frame\tstream\tlabels\tdupack_num\trto\tacks_frame\tack_rtt"}
		read(t, capture.Options{Frame: func(f *capture.Frame) error {
			if k := &f.Result; f.Kind == decode.TCP && (k.Labels != 0 || k.Acks != 0) {
				got = append(got, labelled(f.Number, k))
			}
			return nil
		}}, name)
		if d := cmp.Diff(lines(string(text)), got); d != "" {
			t.Errorf("%s (-tshark +ours):\n%s", name, d)
		}
	}
}

func labelled(frame uint32, k *tcp.Result) string {
	dup, rto, acks := "", "", "\t"
	if k.DupNumber != 0 {
		dup = fmt.Sprint(k.DupNumber)
	}
	if k.RTO != 0 {
		rto = seconds(k.RTO)
	}
	if k.Acks != 0 {
		acks = fmt.Sprintf("%d\t", k.Acks)
		if k.RTT != 0 {
			acks += seconds(k.RTT)
		}
	}
	return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s", frame, k.Conn.Stream, k.Labels, dup, rto, acks)
}

func likeTshark(t *testing.T, name string) {
	base := filepath.Base(name)
	var labels, acks, first, last bytes.Buffer
	labels.WriteString(capture.LabelsHeader)
	r := read(t, capture.Options{
		Frame: func(f *capture.Frame) error {
			labels.Write(f.AppendLabels(nil))
			if k := f.Result; f.Kind == decode.TCP && k.Acks != 0 {
				fmt.Fprintf(&acks, "%d\t%d\t%d\t%s\n", f.Number, k.Conn.Stream, k.Acks, seconds(k.RTT))
			}
			return nil
		},
		Reply: func(e *http.Exchange) {
			if e.Protocol != http.HTTP || e.ReplyFirst.Frame == 0 {
				return
			}
			fmt.Fprintf(&first, "%d\t%d\t%d\t%d\t%s\n", e.ReplyFirst.Frame, e.Stream, e.Status, e.ReqFirst.Frame, seconds(e.ReplyFirst.Time-e.ReqFirst.Time))
			if e.ReplyLast.Frame != 0 {
				fmt.Fprintf(&last, "%d\t%d\t%d\t%d\t%s\n", e.ReplyLast.Frame, e.Stream, e.Status, e.ReqLast.Frame, seconds(e.LastByte()))
			}
		},
	}, name)
	equal(t, base, "labels", lines(labels.String()), nil, nil)
	equal(t, base, "acks", append([]string{"frame\tstream\tacks_frame\tack_rtt"}, lines(acks.String())...), nil, nil)
	miss := wronglyMissed[base]
	equal(t, base, "http", append([]string{"frame\tstream\tcode\trequest_in\thttp_time"}, lines(last.String())...), miss.http[0], miss.http[1])
	equal(t, base, "http_first", append([]string{"frame\tstream\tcode\trequest_in\thttp_time"}, lines(first.String())...), miss.first[0], miss.first[1])
	streams := []string{"stream\tip_a\tport_a\tip_b\tport_b\tframes\tfirst\tlast\tirtt\tcompleteness\trsts\tbytes_payload"}
	r.TCP.Conns(func(c *tcp.Conn) { streams = append(streams, stream(r, c)) })
	equal(t, base, "streams", streams, nil, nil)
}

func stream(r *capture.Reading, c *tcp.Conn) string {
	k := r.Connection(c)
	a, b := k.Opener, k.Server
	if a == b {
		b = k.Client
	}
	irtt := ""
	if k.IRTT != 0 {
		irtt = seconds(k.IRTT)
	}
	return fmt.Sprintf("%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d", k.Stream, a.Addr(), a.Port(), b.Addr(), b.Port(), k.Packets[0]+k.Packets[1],
		seconds(k.Start), seconds(k.End), irtt, k.Completeness, k.RSTs, k.Bytes[0]+k.Bytes[1])
}

func seconds(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%09d", sign, ns/1e9, ns%1e9)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// equal compares rows with the reference; more are those that it lacks, and less
// those that only it has.
func equal(t *testing.T, base, kind string, got, more, less []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared, "expect-4.4.18", kind, base+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(lines(strings.ReplaceAll(string(text), "\r", "")), func(l string) bool { return slices.Contains(less, l) })
	want = append(want, more...)
	if kind == "http" || kind == "http_first" { // in the order in which replies ended, and there in that of frames
		slices.Sort(want)
		got = slices.Clone(got)
		slices.Sort(got)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-tshark +ours):\n%s", kind, d)
	}
}

// read reads captures as one; a capture that ends early is read all the same.
func read(t testing.TB, o capture.Options, names ...string) *capture.Reading {
	t.Helper()
	var sources []capture.Source
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sources = append(sources, capture.Source{Name: filepath.Base(name), In: f})
	}
	r, err := capture.Read(t.Context(), sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The totals of labels agree with the table of all captures.
func TestTotalsAreWiresharks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shared, "expect-4.4.18", "totals.tsv"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not here", shared)
	} else if err != nil {
		t.Fatal(err)
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.Comma = '\t'
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		r := read(t, capture.Options{}, filepath.Join(shared, row[0]))
		got := []string{row[0], fmt.Sprint(r.Packets), fmt.Sprint(r.Decoded.TCP), fmt.Sprint(r.Connections)}
		for _, label := range rows[0][4:] {
			got = append(got, fmt.Sprint(r.Labels[label]))
		}
		if d := cmp.Diff(row, got); d != "" {
			t.Errorf("(-tshark +ours):\n%s", d)
		}
	}
}
