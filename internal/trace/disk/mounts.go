package disk

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mounts says where the root of each file system, by its device as the kernel
// has it, is mounted.
type mounts map[uint32]string

func readMounts() (mounts, error) {
	const path = "/proc/self/mountinfo"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read where file systems are mounted: %w", err)
	}
	m, err := parseMounts(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return m, nil
}

// parseMounts reads mountinfo, whose lines begin "36 35 98:0 /root /mount/point".
// A file system that is mounted more than once is taken where it was first; one
// of which only a part is mounted is left out.
func parseMounts(text string) (mounts, error) {
	m := mounts{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return nil, fmt.Errorf("want at least 5 fields, got %q", line)
		}
		dev, err := parseDev(fields[2])
		if err != nil {
			return nil, err
		}
		if _, twice := m[dev]; !twice && fields[3] == "/" {
			m[dev] = unescape(fields[4])
		}
	}
	return m, nil
}

// parseDev reads MAJOR:MINOR.
func parseDev(text string) (uint32, error) {
	major, minor, _ := strings.Cut(text, ":")
	a, errA := strconv.ParseUint(major, 10, 12)
	b, errB := strconv.ParseUint(minor, 10, 20)
	if errA != nil || errB != nil {
		return 0, fmt.Errorf("want a device like 254:1, got %q", text)
	}
	return uint32(a<<20 | b), nil
}

// unescape undoes how the kernel writes blanks and the like: \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
