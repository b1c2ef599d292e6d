package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

// loop makes a disk of a file, which nobody else uses, and returns its name.
func loop(t *testing.T, size int64) string {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer control.Close()
	back, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if err := back.Truncate(size); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		t.Skipf("no loop device is free: %v", err)
	}
	name := "loop" + strconv.Itoa(n)
	device, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_FD, int(back.Fd())); err != nil {
		device.Close()
		t.Skipf("make a disk of a file: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil {
			t.Error(err)
		}
		device.Close()
	})
	return name
}

// counted is what /proc/diskstats and we tell of a disk.
type counted struct{ Reads, ReadBytes, Writes, WriteBytes, Flushes uint64 }

func diskstats(t *testing.T, name string) counted {
	t.Helper()
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[2] != name {
			continue
		}
		field := func(i int) (n uint64) {
			if i < len(fields) {
				_, err = fmt.Sscan(fields[i], &n)
			}
			return n
		}
		c := counted{field(3), field(5) * 512, field(7), field(9) * 512, field(18)}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatalf("/proc/diskstats has no %s", name)
	return counted{}
}

// Of a disk that is ours alone, the kernel counts the same.
func TestCountsEqualDiskstats(t *testing.T) {
	tracetest.Need(t, Tracer())
	name := loop(t, 64<<20)
	tr := begin(t)
	before := diskstats(t, name)
	dd := tracetest.Copy(t, "/bin/dd", "loop"+strconv.Itoa(os.Getpid()))
	size := "bs=" + strconv.Itoa(block)
	run(t, "", dd, "if=/dev/zero", "of=/dev/"+name, size, "count="+strconv.Itoa(writes), "oflag=direct", "conv=fsync", "status=none")
	run(t, "", dd, "if=/dev/"+name, "of=/dev/null", size, "count="+strconv.Itoa(reads), "iflag=direct", "status=none")
	run(t, "", dd, "if=/dev/zero", "of=/dev/"+name, "bs=1M", "count=11", "conv=fsync", "status=none") // merged on the way
	after := diskstats(t, name)
	flushes := after.Flushes - before.Flushes
	want := counted{after.Reads - before.Reads, after.ReadBytes - before.ReadBytes,
		after.Writes - before.Writes - flushes, // an empty write that asks for a flush counts there as both
		after.WriteBytes - before.WriteBytes, flushes}
	s := look(t, tr)
	at := slices.IndexFunc(s.Devices, func(d Device) bool { return d.Name == name })
	if at < 0 {
		t.Fatalf("no device %s in %+v", name, s.Devices)
	}
	var got counted
	for _, o := range s.Devices[at].Operations {
		switch o.Name {
		case "read":
			got.Reads, got.ReadBytes = o.Requests, o.Bytes
		case "write":
			got.Writes, got.WriteBytes = o.Requests, o.Bytes
		case "flush":
			got.Flushes = o.Requests
		}
		if o.Times.Count() != o.Requests || o.Queues.Count() != o.Queued || o.Queued != o.Requests {
			t.Errorf("%s: %d in the histogram, %d waits of %d in theirs, of %d requests", o.Name, o.Times.Count(), o.Queued, o.Queues.Count(), o.Requests)
		}
	}
	t.Logf("%+v, diskstats says %+v", got, want)
	if !ended(t, tr, got.Reads, want.Reads) || !ended(t, tr, got.Writes, want.Writes) || !ended(t, tr, got.Flushes, want.Flushes) {
		t.Errorf("%+v, diskstats says %+v", got, want)
	}
	if got.Reads == want.Reads && got.Writes == want.Writes && (got.ReadBytes != want.ReadBytes || got.WriteBytes != want.WriteBytes) {
		t.Errorf("%+v, diskstats says %+v", got, want)
	}
	if want.Writes < writes || want.Reads < reads || want.Flushes == 0 {
		t.Errorf("%+v, want at least %d writes, %d reads and a flush", want, writes, reads)
	}
}
