package kernel

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var update = flag.Bool("update", false, "accept what was read as the golden files (or PLIMSOLL_UPDATE=1)")

// recorder keeps what probes record, as lines of text.
type recorder struct {
	mu     sync.Mutex
	values map[string]float64
	status map[string]model.Status
	events []model.Event
	notes  []string
}

func newRecorder() *recorder {
	return &recorder{values: map[string]float64{}, status: map[string]model.Status{}}
}

func (r *recorder) Sample(host string, t int64, s *model.Signal, v float64, labels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := s.Name
	if len(s.Labels) != len(labels) {
		panic(fmt.Sprintf("%s: labels %v, values %v", name, s.Labels, labels))
	}
	var pairs []string
	for i, l := range s.Labels {
		pairs = append(pairs, l+"="+strconv.Quote(labels[i]))
	}
	if len(pairs) > 0 {
		name += "{" + strings.Join(pairs, ",") + "}"
	}
	r.values[name] = v
}

func (r *recorder) Event(e model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) Status(host, signal string, st model.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status[signal] = st
}

func (r *recorder) Note(sentence string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, sentence)
}

// text is everything recorded, sorted; root is cut out of sentences.
func (r *recorder) text(root string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		fmt.Fprintf(&b, "%s %s\n", name, strconv.FormatFloat(r.values[name], 'f', -1, 64))
	}
	for _, name := range slices.Sorted(maps.Keys(r.status)) {
		if st := r.status[name]; st.State != model.Read {
			fmt.Fprintf(&b, "# %s %s: %s\n", name, st.State, strings.ReplaceAll(st.Why, root, "ROOT"))
		}
	}
	return b.String()
}

// sample reads hosts for two rounds, the second forced.
func sample(t *testing.T, rec probe.Recorder, hosts ...*host.Host) {
	t.Helper()
	s := probe.NewSampler(hosts, All(), probe.NewStatusBook(rec), time.Second)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	for i := range 2 {
		if err := s.Round(t.Context(), now.Add(time.Duration(i)*time.Second), i == 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordedTreesGiveTheGoldenSeries(t *testing.T) {
	for _, tree := range []string{"linux-6.18", "linux-6.18-namespace", "linux-6.18-cut-to-4.9", "broken"} {
		t.Run(tree, func(t *testing.T) {
			root := filepath.Join("testdata", tree)
			rec := newRecorder()
			sample(t, rec, host.Recorded("server", root))
			golden(t, root+".golden", rec.text(root))
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update || os.Getenv("PLIMSOLL_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); PLIMSOLL_UPDATE=1 accepts it:\n%s", path, diff)
	}
}

func TestLiveKernelGivesEverySignal(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	rec := newRecorder()
	sample(t, rec, h)
	for _, p := range All() {
		for _, sig := range p.Signals {
			st, ok := rec.status[sig.Name]
			if !ok {
				t.Errorf("%s: %s has no status", p.Name, sig.Name)
			}
			if st.State == model.Failed {
				t.Errorf("%s: %s failed: %s", p.Name, sig.Name, st.Why)
			}
			if st.State == model.Absent && st.Why == "" {
				t.Errorf("%s: %s is absent without a sentence", p.Name, sig.Name)
			}
		}
	}
	for name := range rec.status {
		if _, known := netstatSignals()[strings.TrimPrefix(name, "node_netstat_")]; strings.HasPrefix(name, "node_netstat_") && !known {
			t.Logf("this kernel has a counter without help: %s", name)
		}
	}
}
