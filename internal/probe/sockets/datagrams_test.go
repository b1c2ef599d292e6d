package sockets

import (
	"fmt"
	"testing"
)

// Sockets that are files are told before those of clients, however many these are and whenever they come.
func TestFilesAreToldFirst(t *testing.T) {
	var n named
	for i := range 3 * maxDatagrams {
		n.add(uint32(i), fmt.Appendf(nil, "\x00%05x", i))
	}
	n.add(9000, []byte("/run/log"))
	told := n.told()
	if len(told) != maxDatagrams || !n.more || told[0] != (place{9000, "unix:/run/log"}) || told[1] != (place{0, "unix:@00000"}) {
		t.Errorf("%d are told, more: %v, %+v", len(told), n.more, told[:2])
	}
	for files, more := range map[int]bool{maxDatagrams - 1: false, maxDatagrams: true, maxDatagrams + 1: true} {
		var n named
		n.add(1, []byte("\x00client"))
		for i := range files {
			n.add(uint32(i), []byte("/run/log"))
		}
		if told := n.told(); len(told) != maxDatagrams || n.more != more {
			t.Errorf("%d files and one other: %d are told, more: %v", files, len(told), n.more)
		}
	}
}
