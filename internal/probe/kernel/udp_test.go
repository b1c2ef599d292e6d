package kernel

import (
	"maps"
	"testing"
	"time"

	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

func TestAddUDP(t *testing.T) {
	const title = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
	const row = "  112: 00000000:076C 00000000:0000 07 00000000:00034800 00:00000000 00000000     0        0 4711 2 0000000000000000 400\n"
	queued := map[uint16]uint64{}
	for _, b := range []string{title, title + row,
		title + "  9: 00000000000000000000000000000000:076C 00000000000000000000000000000000:0000 07 00000000:00000100 00:00000000 00000000 0 0 4712 2 0000000000000000 0\n" +
			"  10: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 4713 2 0000000000000000 0\n"} {
		if err := addUDP([]byte(b), queued); err != nil {
			t.Errorf("%q: %v", b, err)
		}
	}
	if want := (map[uint16]uint64{1900: 0x34900}); !maps.Equal(queued, want) {
		t.Errorf("got %v, want %v", queued, want)
	}
	for _, b := range []string{"", "no titles\n" + row, title + "1: 2\n", title + "1: 0 0 07 0:0\n", title + "1: 0:1 0:0 07 0\n", title + "1: 0:11111 0:0 07 0:0\n"} {
		if err := addUDP([]byte(b), map[uint16]uint64{}); err == nil {
			t.Errorf("%q: no error", b)
		}
	}
}

func TestFullestPortsAreTold(t *testing.T) {
	queued := map[uint16]uint64{}
	for port := range uint16(2 * maxUDPPorts) {
		queued[port] = uint64(port)
	}
	ports := fullestPorts(queued)
	if len(ports) != maxUDPPorts || ports[0] != 2*maxUDPPorts-1 || ports[maxUDPPorts-1] != maxUDPPorts {
		t.Errorf("%v are told", ports)
	}
}

// slowFiles takes its time.
type slowFiles struct {
	probe.Reader
	takes time.Duration
	reads int
}

func (r *slowFiles) Read(*probe.Out) error {
	r.reads++
	time.Sleep(r.takes)
	return nil
}

func TestUDPIsReadLessOftenWhereReadingIsSlow(t *testing.T) {
	files := &slowFiles{takes: 30 * time.Millisecond}
	r := &udp{Reader: files}
	begun := time.Unix(1, 0)
	for _, step := range []struct{ after, reads int }{{0, 1}, {2, 1}, {3000, 2}} { // 30 ms ask for 3 s, and a slow machine for more
		if err := r.Read(probe.NewOut(livetest.NewRecord(), "here", begun.Add(time.Duration(step.after)*time.Second), time.Second)); err != nil || files.reads != step.reads {
			t.Errorf("after %d s: %d reads (%v), want %d", step.after, files.reads, err, step.reads)
		}
	}
}
