package packets_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/capture"
	"plimsoll/internal/judge"
	"plimsoll/internal/model"
	"plimsoll/internal/packets"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

func verdict(t *testing.T, set ruleset.Rules, name string) model.Verdict {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, _, err := packets.Read(t.Context(), []capture.Source{{Name: name, In: f}}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := judge.Run(run, set)
	if err != nil {
		t.Fatal(err)
	}
	return r.Verdict
}

// What was caused with real sockets is named from the packets alone, at either end; where
// they do not tell, the verdict is unclear.
func TestVerdictsOnCapturesThatWereCaused(t *testing.T) {
	want := map[string]string{
		"idle": "net.keepalive_mismatch", "flood": "net.syn_flood", "nagle": "net.nagle", "overflow": "net.listen.queue_full",
		"rejected": "net.filter.rejects_new", "stall": "net.receiver.slow",
	}
	files, err := filepath.Glob("../capture/testdata/causes/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures, %v", err)
	}
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	unclear := []string{"refused", "unread", "client_aborts", "restarted", "queue_full", "keepalive", "no_answer", "scan", "loss", "gone"}
	says := map[string]string{"loss": "lost ", "gone": "resets by the client, at 10.78.2.2:80: it had closed, and no longer had the connection"}
	for _, name := range files {
		base, _, _ := bytes.Cut([]byte(filepath.Base(name)), []byte("."))
		rule, caused := want[string(base)]
		if !caused && !slices.Contains(unclear, string(base)) {
			continue
		}
		v := verdict(t, set, name)
		switch {
		case !caused && v.Answer != model.AnswerUnclear:
			t.Errorf("%s: %s %v, want unclear", name, v.Answer, v.Sentence)
		case !caused && !strings.Contains(fmt.Sprint(v.Sentence), says[string(base)]):
			t.Errorf("%s: %v, want it to say %q", name, v.Sentence, says[string(base)])
		case caused && (len(v.Root) != 1 || v.Root[0].Rule != rule):
			t.Errorf("%s: %s, %s; want %s", name, v.Answer, v.Sentence, rule)
		}
	}
}

// file is a capture of packets of no protocol that is known, at these moments (s).
func file(at ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, s := range at {
		for _, v := range []uint32{s, 0, 20, 20} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, make([]byte, 20)...)
	}
	return b
}

func total(t *testing.T, at ...uint32) (float64, model.Run) {
	t.Helper()
	run, _, err := packets.Read(t.Context(), []capture.Source{{Name: "made", In: bytes.NewReader(file(at...))}}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := query.Of(run)
	if err != nil {
		t.Fatal(err)
	}
	res := q.Ask(query.MustParse(`increase(plimsoll_capture_packets_total[$window])`))
	if len(res.Samples) != 1 {
		t.Fatalf("%d results, %s, %v", len(res.Samples), res.Missing, res.Failed)
	}
	return res.Samples[0].Value, run.Meta()
}

// However long a capture lasts, its readings are bounded, and none of it is lost.
func TestReadingsOfALongCapture(t *testing.T) {
	var each []uint32
	for i := range uint32(5000) {
		each = append(each, 1000+i)
	}
	for _, c := range []struct {
		name string
		at   []uint32
	}{
		{"one packet", []uint32{1000}},
		{"two in a second", []uint32{1000, 1000}},
		{"one each second", each},
		{"a hole of an hour", []uint32{1000, 4600, 4600}},
		{"a hole of a hundred years", []uint32{1000, 3_150_000_000}},
		{"a clock that goes back", []uint32{1000, 5, 1001, 4}},
	} {
		n, meta := total(t, c.at...)
		if n != float64(len(c.at)) {
			t.Errorf("%s: %v packets, want %d", c.name, n, len(c.at))
		}
		w := meta.Windows[0]
		if rounds := (w.End - w.Start) / meta.Plan.Interval; rounds < 1 || rounds > 600 {
			t.Errorf("%s: %d readings", c.name, rounds)
		}
	}
}
