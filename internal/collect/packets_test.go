package collect

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/capture"
	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// resets waits until it is put that a server reset a connection: its answer to an
// attempt to connect, which may be read after it.
type resets struct {
	server string
	seen   bool
}

func (r *resets) Put(s *model.Signal, n float64, values ...string) {
	r.seen = r.seen || s.Name == "plimsoll_capture_resets_total" && values[0] == r.server && n > 0
}

// Packets that pass while a run lasts become series, events and a file in its directory.
func TestPacketsDuringARun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a packet socket")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := l.Addr().String()
	check(t, l.Close()) // nobody listens there any more
	here, err := host.Open("web", "local")
	check(t, err)
	defer here.Close()
	dir := filepath.Join(t.TempDir(), "run")
	start := time.Now()
	out, err := writer.Create(dir, model.Run{Started: start.UnixMilli(), Plan: model.Plan{Interval: 1000, Packets: "lo"}})
	check(t, err)
	p := newPackets("lo", []*host.Host{here}, newRecorder(Into(out)))
	check(t, p.Start(t.Context()))
	check(t, p.Round(t.Context(), Round{Number: 1, Time: start, Edge: true}))
	check(t, p.rec.Commit(Round{}))
	if c, err := net.Dial("tcp", address); err == nil {
		t.Fatalf("somebody listens at %s: %v", address, c.Close())
	}
	for seen := (&resets{server: address}); !seen.seen && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		p.each[0].tally.Put(seen, 0, 0)
	}
	check(t, p.Round(t.Context(), Round{Number: 2, Time: start.Add(time.Second), Edge: true}))
	check(t, p.rec.Commit(Round{}))
	check(t, p.Close())
	check(t, out.Close())

	run := opened(t, dir)
	at := start.Add(time.Second).UnixMilli()
	if n := readings(t, run, "plimsoll_capture_attempts_total", map[string]string{"host": "web", "server": address})[at]; n != 1 {
		t.Errorf("%v attempts, want 1", n)
	}
	if n := readings(t, run, "plimsoll_capture_resets_total", map[string]string{"host": "web", "server": address, "cause": "refused"})[at]; n != 1 {
		t.Errorf("%v resets since nobody listened, want 1", n)
	}
	if st := run.Meta().Status["web"]["plimsoll_capture_dropped_total"]; st.State != model.Read {
		t.Errorf("status %+v, want read", st)
	}
	told, err := os.ReadFile(filepath.Join(dir, record.EventsFile))
	check(t, err)
	if want := address + " reset its connection with "; !strings.Contains(string(told), want) {
		t.Errorf("events %q, want one with %q", told, want)
	}
	file, err := os.Open(filepath.Join(dir, model.PacketsFile("web")))
	check(t, err)
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want its owner's alone", info.Mode(), err)
	}
	refused := false
	r, err := capture.Read(t.Context(), []capture.Source{{Name: "kept", In: file}}, capture.Options{Frame: func(f *capture.Frame) error {
		refused = refused || f.Reset != nil && f.Reset.Sender.String() == address && f.Reset.Cause == "refused"
		return nil
	}})
	check(t, err)
	if r.Partial || !refused {
		t.Errorf("the file has %d packets, partial %v, with the reset %v", r.Packets, r.Partial, refused)
	}
}

// What was asked for and cannot be had ends the run before it begins.
func TestPacketsOfNoInterface(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a packet socket")
	}
	here, err := host.Open("web", "local")
	check(t, err)
	defer here.Close()
	out, err := writer.Create(filepath.Join(t.TempDir(), "run"), model.Run{Started: 1, Plan: model.Plan{Interval: 1000}})
	check(t, err)
	p := newPackets("nowhere0", []*host.Host{here}, newRecorder(Into(out)))
	if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `host web: there is no interface "nowhere0"`) {
		t.Errorf("error %v, want the interface and those that there are", err)
	}
	check(t, p.Close())
	check(t, out.Close())
}
