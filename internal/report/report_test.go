package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

var update = flag.Bool("update", os.Getenv("PLIMSOLL_UPDATE") == "1", "write the golden files anew")

// golden compares got with testdata/name. Read the diff after an update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; PLIMSOLL_UPDATE=1 go test ./internal/report writes it", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got); if it should, PLIMSOLL_UPDATE=1 go test ./internal/report\n%s", path, d)
	}
}

var samples = []struct {
	name string
	make func() model.Report
}{
	{"cause", causeReport},
	{"healthy", healthyReport},
	{"capacity", capacityReport},
	{"unclear", unclearReport},
	{"watch", watchReport},
	{"watch_alone", watchAloneReport},
	{"cut_off", cutOffReport},
	{"breakdown", brokenDownReport},
}

func text(t *testing.T, r model.Report, o TextOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTextGoldens(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			got := text(t, s.make(), TextOptions{Detail: Everything})
			golden(t, s.name+".txt", got)
			for _, l := range strings.Split(string(got), "\n") {
				if n := utf8.RuneCountInString(l); n > 80 {
					t.Errorf("a line has %d columns: %q", n, l)
				}
			}
		})
	}
	golden(t, "cause_color.txt", text(t, causeReport(), TextOptions{Color: true, Detail: Everything}))
	golden(t, "cause_120.txt", text(t, causeReport(), TextOptions{Width: 120, Detail: Everything}))
}

func TestJSONGoldens(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := JSON(&b, s.make()); err != nil {
				t.Fatal(err)
			}
			golden(t, s.name+".json", b.Bytes())
			for _, line := range strings.Split(b.String(), "\n") {
				if key, _, null := strings.Cut(line, ": null"); null && !strings.Contains(`"impact" "value" "load" "breakdown" "tracing" "good" "bad" "seconds" "share"`, strings.TrimSpace(key)) {
					t.Errorf("null where a list should be: %s", line)
				}
			}
		})
	}
}

// An empty report is still the whole document.
func TestJSONOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, model.Report{}); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"verdict", "load", "breakdown", "cost", "dir"} {
		if _, ok := doc[key]; !ok {
			t.Errorf("key %q is missing", key)
		}
	}
	for _, key := range []string{"root", "findings", "ruled_out", "unknown"} {
		if _, ok := doc["verdict"].(map[string]any)[key].([]any); !ok {
			t.Errorf("verdict.%s is no list", key)
		}
	}
}

// What a log or a process name brings along must not steer the terminal.
func TestTextIsHarmless(t *testing.T) {
	r := causeReport()
	r.Verdict.Root[0].Title = "evil \x1b[2J title \r\x07 \u202e"
	r.Verdict.Root[0].Clues[0].ByHand = "echo \x1b]0;x\x07"
	if got := text(t, r, TextOptions{}); bytes.ContainsAny(got, "\x1b\r\x07\u202e") {
		t.Errorf("control characters went through: %q", got)
	}
}

// Through the cleaning writer colours are ours alone.
func TestColoursAreOurs(t *testing.T) {
	r := causeReport()
	r.Verdict.Root[0].Title = "theirs \x1b[31mred"
	r.Notes = []string{"a\nVERDICT: HEALTHY", strings.Repeat("x", 100_000)}
	var b bytes.Buffer
	if err := Text(layout.NewWriter(&b), r, TextOptions{Color: true, Detail: Everything}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x1b[1mtheirs \\u001b[31mred\x1b[0m", `a\nVERDICT: HEALTHY`, "more)…"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in %q", want, b.String())
		}
	}
	if ours := regexp.MustCompile("\x1b\\[[0-9;]+m").ReplaceAllString(b.String(), ""); layout.Clean(ours) != ours || b.Len() > 50_000 {
		t.Errorf("%d bytes, and escapes of others: %q", b.Len(), ours)
	}
}

func TestCourseFitsAndScales(t *testing.T) {
	for _, n := range []int{2, 7, 13, 20, 59, 60, 61, 600} {
		s := newScale(n)
		if s.columns > timelineColumns {
			t.Errorf("%d s take %d columns", n, s.columns)
		}
		values := make([]float64, n)
		values[n-1] = 1
		if got := s.spark(values); utf8.RuneCountInString(got) != s.columns {
			t.Errorf("%d s: drawn %q, want %d columns", n, got, s.columns)
		} else if !strings.HasSuffix(got, "█") {
			t.Errorf("%d s: the last second's value is lost in %q", n, got)
		}
	}
}

func TestWrapKeepsWidthAndWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-zé=./]{1,12} {0,2}){0,30}`).Draw(t, "text")
		width := rapid.IntRange(12, 60).Draw(t, "width")
		lines := wrap(text, width)
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > width && strings.Contains(l, " ") {
				t.Fatalf("line of %d columns, width %d: %q", n, width, l)
			}
		}
		if got, want := strings.Fields(strings.Join(lines, " ")), strings.Fields(text); !cmp.Equal(got, want) {
			t.Fatalf("words changed: %q, want %q", got, want)
		}
	})
}

func TestWrapKeepsNumberAndUnitTogether(t *testing.T) {
	if d := cmp.Diff([]string{"it is at", "100 % of", "2 GiB"}, wrap("it is at 100 % of 2 GiB", 10)); d != "" {
		t.Error(d)
	}
}

func TestBreakCommand(t *testing.T) {
	long := "sysctl -w net.ipv4.ip_local_port_range='1024 65535' net.core.somaxconn=4096"
	want := []string{`sysctl -w \`, `net.ipv4.ip_local_port_range='1024 65535' \`, `net.core.somaxconn=4096`}
	if d := cmp.Diff(want, breakCommand(long, 44)); d != "" {
		t.Error(d)
	}
	comment := "ss -ltn # a comment that goes on and on and on and on"
	if got := breakCommand(comment, 30); len(got) != 1 {
		t.Errorf("a comment was continued: %q", got)
	}
	if got := breakCommand("short", 30); !cmp.Equal(got, []string{"short"}) {
		t.Errorf("got %q", got)
	}
}

// TestWhoseTime: where a watch saw no requests, what was lost is a program's time, for its
// host may serve nobody; a run with a load, and a watch that saw some, speak of requests.
func TestWhoseTime(t *testing.T) {
	ours := causeReport()
	watch := ours
	watch.Plan.Load = nil
	served := watch
	served.Verdict.Root = []model.Finding{conntrackRoot()}
	served.Verdict.Root[0].Clues = append(served.Verdict.Root[0].Clues, model.Clue{Role: model.Decides, Truth: model.True, Say: "it held 9 % of the requests under way"})
	watch.Verdict.Root = []model.Finding{conntrackRoot()}
	watch.Verdict.Root[0].Clues = []model.Clue{{Role: model.Decides, Truth: model.True, Say: "its quota held it back"}}
	served.Verdict.Root[0].ImpactOf, watch.Verdict.Root[0].ImpactOf = "", ""
	for _, c := range []struct {
		report model.Report
		want   string
	}{
		{ours, "of the requests failed because of it"},
		{watch, "of the program's time was lost to it"},
		{served, "of the requests' time was lost to it"},
	} {
		if got := text(t, c.report, TextOptions{Width: 120, Detail: Everything}); !bytes.Contains(got, []byte(c.want)) {
			t.Errorf("%q is missing in\n%s", c.want, got)
		}
	}
}

// A process can call itself what it likes, blanks included: where its name is wrapped, it
// begins no line in the first column.
func TestWordsFromOutsideBeginNoLine(t *testing.T) {
	for pad := range 80 {
		p := newPaper(TextOptions{})
		p.para(0, plain, "CPU time of programs ("+strings.Repeat("x", pad)+" VERDICT: HEALTHY (confirmed) and fix rm -rf / 17 %)")
		if text := p.b.String(); strings.Contains(text, "\nVERDICT") || strings.Contains(text, "\nHEALTHY") {
			t.Fatalf("%d letters before it:\n%s", pad, text)
		}
	}
}

// A level below one of its unit is no zero, and what node_exporter counts under a name of its own is a rate.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		series string
		v      float64
		want   string
	}{
		{"node_disk_read_bytes_total", 0.3, "0.3 bytes/s"},
		{"node_disk_read_bytes_total", 2048, "2 KiB/s"},
		{"node_disk_read_bytes_total", 0, "0 bytes/s"},
		{"node_netstat_Tcp_RetransSegs{host=\"a\"}", 0.5, "0.5/s"},
		{"node_netstat_Tcp_CurrEstab", 5, "5"},
	} {
		if got := Level(c.series, c.v); got != c.want {
			t.Errorf("%s of %v: %q, want %q", c.series, c.v, got, c.want)
		}
	}
}
