package kernel

import (
	"bytes"
	"fmt"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

const sectorBytes = 512 // of /proc/diskstats, whatever the disk's own are

// diskColumn is a column of /proc/diskstats after the device's name.
type diskColumn struct {
	signal     *model.Signal
	times, per float64
}

// diskColumns are the columns of Documentation/admin-guide/iostats.rst in order.
var diskColumns = []diskColumn{
	diskSignal("reads_completed_total", model.Counter, "reads", "Reads done.", 1, 1),
	diskSignal("reads_merged_total", model.Counter, "reads", "Reads done together with their neighbour.", 1, 1),
	diskSignal("read_bytes_total", model.Counter, "bytes", "Bytes read.", sectorBytes, 1),
	diskSignal("read_time_seconds_total", model.Counter, "seconds", "Time all reads took, added up.", 1, 1000),
	diskSignal("writes_completed_total", model.Counter, "writes", "Writes done.", 1, 1),
	diskSignal("writes_merged_total", model.Counter, "writes", "Writes done together with their neighbour.", 1, 1),
	diskSignal("written_bytes_total", model.Counter, "bytes", "Bytes written.", sectorBytes, 1),
	diskSignal("write_time_seconds_total", model.Counter, "seconds", "Time all writes took, added up.", 1, 1000),
	diskSignal("io_now", model.Gauge, "requests", "Requests under way at this moment.", 1, 1),
	diskSignal("io_time_seconds_total", model.Counter, "seconds", "Time with at least one request under way.", 1, 1000),
	diskSignal("io_time_weighted_seconds_total", model.Counter, "seconds", "Time all requests took, added up, waiting ones included.", 1, 1000),
	diskSignal("discards_completed_total", model.Counter, "discards", "Discards done.", 1, 1),
	diskSignal("discards_merged_total", model.Counter, "discards", "Discards done together with their neighbour.", 1, 1),
	diskSignal("discarded_sectors_total", model.Counter, "sectors", "Sectors of 512 bytes discarded.", 1, 1),
	diskSignal("discard_time_seconds_total", model.Counter, "seconds", "Time all discards took, added up.", 1, 1000),
	diskSignal("flush_requests_total", model.Counter, "flushes", "Flushes of the disk's cache.", 1, 1),
	diskSignal("flush_requests_time_seconds_total", model.Counter, "seconds", "Time all flushes took, added up.", 1, 1000),
}

func diskSignal(name string, kind model.Kind, unit, help string, times, per float64) diskColumn {
	return diskColumn{&model.Signal{Name: "node_disk_" + name, Kind: kind, Unit: unit, Help: help,
		Labels: []string{"device"}, Source: "/proc/diskstats", ByHand: "iostat -x 1"}, times, per}
}

// ignoredDisk matches what node_exporter leaves out, too: memory and loop
// devices, and partitions.
var ignoredDisk = lazy.Regexp(`^(z?ram|loop|fd|(h|s|v|xv)d[a-z]+|nvme\d+n\d+p)\d+$`)

// DiskStats reads /proc/diskstats.
func DiskStats() probe.Probe {
	p := probe.Probe{Name: "diskstats", Scope: probe.PerMachine, Cost: costDiskStats,
		Blind: []string{"a disk that serves many requests at once can be busy all the time and have room left"}}
	return fromFiles(p, func() []source {
		var signals []*model.Signal
		for _, c := range diskColumns {
			signals = append(signals, c.signal)
		}
		return []source{{path: "proc/diskstats", hint: "this kernel has no block devices", signals: signals, put: putDiskStats}}
	})
}

func putDiskStats(b []byte, out *probe.Out) error {
	disks, err := parseDiskStats(b)
	if err != nil {
		return err
	}
	for i, c := range diskColumns {
		for _, d := range disks {
			if i < len(d.columns) {
				out.Put(c.signal, float64(d.columns[i])*c.times/c.per, d.device)
			} else {
				out.Mark(c.signal, errNoField("/proc/diskstats", fmt.Sprintf("column %d", i+4)))
			}
		}
	}
	return nil
}

type diskRow struct {
	device  string
	columns []uint64
}

// parseDiskStats parses the rows of real disks: 11 columns, 15 since Linux
// 4.18, 17 since 5.5. No disk at all is no error.
func parseDiskStats(b []byte) ([]diskRow, error) {
	var rows []diskRow
	for line := range bytes.Lines(b) {
		_, rest := nextField(line) // major
		_, rest = nextField(rest)  // minor
		name, rest := nextField(rest)
		if len(name) == 0 {
			return nil, fmt.Errorf("want MAJOR MINOR NAME numbers, got %q", line)
		}
		if ignoredDisk().Match(name) {
			continue
		}
		columns, err := parseUints(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(columns) < 11 {
			return nil, fmt.Errorf("%s: want 11 columns or more, got %d", name, len(columns))
		}
		rows = append(rows, diskRow{string(name), columns})
	}
	return rows, nil
}
