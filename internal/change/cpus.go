package change

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const maxCPU = 1024 // of a unix.CPUSet

// wantedCPUs reads what a change asks for: a list of CPUs, or all that are online.
func wantedCPUs(to string) (*unix.CPUSet, error) {
	if to != "all" {
		return parseCPUs(to)
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %w", err)
	}
	return parseCPUs(strings.TrimSpace(string(online)))
}

// parseCPUs reads a list of CPUs: "0,2-3".
func parseCPUs(s string) (*unix.CPUSet, error) {
	set := &unix.CPUSet{}
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || last < first || last >= maxCPU {
			return nil, fmt.Errorf("%q: want a list of CPUs such as 0,2-3", s)
		}
		for n := first; n <= last; n++ {
			set.Set(int(n))
		}
	}
	return set, nil
}

// cpuList writes a set of CPUs as parseCPUs reads it.
func cpuList(set *unix.CPUSet) string {
	var parts []string
	for n := 0; n < maxCPU; n++ {
		if !set.IsSet(n) {
			continue
		}
		last := n
		for last+1 < maxCPU && set.IsSet(last+1) {
			last++
		}
		if last > n {
			parts = append(parts, fmt.Sprintf("%d-%d", n, last))
		} else {
			parts = append(parts, strconv.Itoa(n))
		}
		n = last
	}
	return strings.Join(parts, ",")
}

// maskWord is how many CPUs the kernel writes between two commas.
const maskWord = 32

// cpuMask writes a set of CPUs as the kernel does: "3", "1,00000000".
func cpuMask(set interface{ IsSet(int) bool }) string {
	var words []string
	for base := 0; base < maxCPU; base += maskWord {
		var w uint32
		for n := range maskWord {
			if set.IsSet(base + n) {
				w |= 1 << n
			}
		}
		words = append([]string{fmt.Sprintf("%08x", w)}, words...)
	}
	return shortMask(strings.Join(words, ","))
}

// shortMask takes leading zeros off a mask; the kernel writes as many as fit
// its number of CPUs.
func shortMask(s string) string {
	if s = strings.TrimLeft(s, "0,"); s == "" {
		return "0"
	}
	return s
}
