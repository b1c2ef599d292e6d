package disk

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func seen() Seen {
	times := make([]uint64, 26)
	times[6], times[7] = 30_000, 3_200
	s := Seen{Elapsed: 2 * time.Second, CPUs: 2}
	s.Devices = []Device{{Name: "vda", AtDevice: 2 * time.Second, Operations: []Operation{
		{Name: "read", Requests: 33_200, Bytes: 33_200 << 12, Time: 1900 * time.Millisecond, Times: times, Queued: 33_200, Queue: 40 * time.Millisecond},
		{Name: "flush", Requests: 1, Time: 100 * time.Microsecond, Times: make([]uint64, 26)},
	}}}
	s.Processes = []Process{
		{Name: "dd", Device: "vda", Operation: "read", Direct: true, Requests: 33_200, Bytes: 33_200 << 12, Completed: 33_200, Time: 1950 * time.Millisecond},
		{Name: "dd", Device: "vda", Operation: "flush", Requests: 1},
	}
	s.Files = []File{
		{Name: "dd", Syscall: "pread64", Direct: true, File: "/data/x", Requests: 33_200},
		{Name: "mysqld", Syscall: "fdatasync", File: "/var/lib/" + strings.Repeat("long/", 40) + "end", Requests: 3},
	}
	s.Syncs = []Sync{{Name: "mysqld", Count: 53, Time: 106 * time.Millisecond, Times: times}}
	return s
}

func TestDiskText(t *testing.T) {
	want := `2 s on 2 CPUs: 33,201 disk requests (16,601/s), 130 MiB; on average 1 at the
disks at once.

device         requests/s  bytes/s   depth  queue   took     50 % <  99 % <
vda     read   16,600      64.8 MiB  0.95   1.2 µs  57.2 µs  64 µs   128 µs
vda     flush  0.5         0 bytes   0      -       100 µs   -       -

How long vda took for a read
    under 64 µs  ██████████████████████████████  30,000
   under 128 µs  ████                            3,200

process  device                   I/O/s   bytes/s   at once  took
dd       vda     read   O_DIRECT  16,600  64.8 MiB  0.97     58.7 µs
dd       vda     flush            0.5     0 bytes   0        -

process  in                   I/O/s   file
dd       pread64    O_DIRECT  16,600  /data/x
mysqld   fdatasync  cached    1.5     /var/lib/long/long/l…ng/long/long/long/end

Who waits until data is on the disk (fsync and the like, on ext4)
process  syncs/s  at once  took  50 % <  99 % <
mysqld   27       0.05     2 ms  64 µs   128 µs
`
	if d := cmp.Diff(want, seen().Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Tables of the largest numbers and longest names there are still fit a terminal.
func TestDiskTablesFit(t *testing.T) {
	s := seen()
	d, p, f := &s.Devices[0], &s.Processes[0], &s.Files[1]
	d.Name, d.Operations[0].Name, d.Operations[0].Requests, d.Operations[0].Bytes = "nvme10n1", "discard", 1_234_567, 1<<35+1<<30
	d.Operations[0].Time, d.Operations[0].Queue = 1234*time.Second, 1234*time.Second
	p.Name, p.Device, p.Operation, p.Requests, p.Bytes, p.Time = "exactly15letter", "nvme10n1", "discard", 1_234_567, 1<<35+1<<30, 1234*time.Second
	f.Name, f.Syscall, f.Direct = "exactly15letter", "copy_file_range", true
	for _, line := range strings.Split(s.Text(80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 4}).Text(80); !strings.HasPrefix(text, "1 s on 4 CPUs: 0 ") {
		t.Errorf("%q", text)
	}
}
