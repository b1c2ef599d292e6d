package trace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// OnlineCPUs returns how many CPUs the machine runs on
// (/sys/devices/system/cpu/online), not only those that this process may use.
func OnlineCPUs() (int, error) {
	const path = "/sys/devices/system/cpu/online"
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("count the CPUs: %w", err)
	}
	n, err := parseCPUList(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", path, err)
	}
	return n, nil
}

// parseCPUList counts the CPUs of a list as the kernel writes it: "0-3,8".
func parseCPUList(list string) (int, error) {
	n := 0
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 16)
		b, errB := strconv.ParseUint(last, 10, 16)
		if errA != nil || errB != nil || a > b {
			return 0, fmt.Errorf("want a list of CPUs like 0-3,8, got %q", list)
		}
		n += int(b-a) + 1
	}
	return n, nil
}
