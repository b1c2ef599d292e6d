package deepcpu

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/stat (USER_HZ), on every architecture that Go knows.
const tick = time.Second / 100

// readBusy returns the CPU time that this machine has used since it was booted.
func readBusy() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	return parseBusy(data)
}

// parseBusy adds up the first line of /proc/stat: cpu user nice system idle iowait
// irq softirq … What a hypervisor took away, and guests, which user has in it, do not count.
func parseBusy(stat []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 8 || string(fields[0]) != "cpu" {
		return 0, fmt.Errorf("read the machine's CPU time: /proc/stat begins with %.40q, want cpu and seven numbers", line)
	}
	var sum uint64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(string(fields[i]), 10, 48)
		if err != nil {
			return 0, fmt.Errorf("read the machine's CPU time from /proc/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
