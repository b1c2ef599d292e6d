package reason

import (
	"bytes"
	"fmt"
	"strings"

	"plimsoll/internal/host"
)

// The majors of /dev/pts, which sysfs does not list; each has 256 of them.
//
// https://docs.kernel.org/admin-guide/devices.html
const (
	firstPTS, lastPTS = 136, 143
	minorBits         = 20 // of the kernel's own dev_t
)

// devicePath is the path under /dev of a character device, by the kernel's own number of it.
func devicePath(number uint32) string {
	major, minor := number>>minorBits, number&(1<<minorBits-1)
	if major >= firstPTS && major <= lastPTS {
		return fmt.Sprintf("/dev/pts/%d", (major-firstPTS)<<8+minor)
	}
	if b, err := host.ReadFile(fmt.Sprintf("/sys/dev/char/%d:%d/uevent", major, minor)); err == nil {
		if name := deviceName(b); name != "" {
			return "/dev/" + name
		}
	}
	return fmt.Sprintf("device %d:%d", major, minor)
}

// deviceName is the DEVNAME of a device's uevent; "" where there is none.
func deviceName(uevent []byte) string {
	for line := range bytes.Lines(uevent) {
		if name, is := strings.CutPrefix(string(bytes.TrimSpace(line)), "DEVNAME="); is {
			return strings.ToValidUTF8(name, "\uFFFD")
		}
	}
	return ""
}
