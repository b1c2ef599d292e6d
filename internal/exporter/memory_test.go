package exporter

import (
	"runtime/debug"
	"slices"
	"testing"
)

// Of two who hold more, as a burst and a renewal, the first to end leaves little garbage to the other.
func TestTwoHoldMore(t *testing.T) {
	was := debug.SetGCPercent(garbage)
	defer debug.SetGCPercent(was)
	percent := func() int {
		p := debug.SetGCPercent(garbage)
		debug.SetGCPercent(p)
		return p
	}
	first, second := holdsMore(), holdsMore()
	first()
	if p := percent(); p != garbageOfMore {
		t.Errorf("while one of both holds more it is %d, want %d", p, garbageOfMore)
	}
	if second(); percent() != garbage {
		t.Errorf("when both have ended it is %d, want %d", percent(), garbage)
	}
}

// smaps is what a kernel said of a program with relocations, shortened.
const smaps = `00400000-00a00000 r-xp 00000000 fe:00 77 /usr/bin/plimsoll
Rss:                5000 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00a00000-00b00000 r--p 00600000 fe:00 77 /usr/bin/plimsoll
Anonymous:            64 kB
Swap:                  0 kB
VmFlags: rd mr mw me ac
00b00000-00c00000 r--p 00700000 fe:00 77 /usr/bin/plimsoll
Anonymous:             0 kB
Swap:                 64 kB
VmFlags: rd mr mw me ac
00c00000-00d00000 rw-p 00800000 fe:00 77 /usr/bin/plimsoll
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me ac
00d00000-00e00000 r--p 00000000 fe:00 78 /usr/lib/locale.so
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
7f0000000000-7f0000001000 r--p 00000000 00:00 0 
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr
`

// What a loader has written into the program is lost if it is given back; text and constants are read again.
func TestWrittenMappingsAreKept(t *testing.T) {
	type mapping struct{ from, size uintptr }
	var found []mapping
	for from, size := range unwritten(smaps, "/usr/bin/plimsoll") {
		found = append(found, mapping{from, size})
	}
	if want := []mapping{{0x400000, 0x600000}}; !slices.Equal(found, want) {
		t.Errorf("given back would be %x, want %x", found, want)
	}
	giveBack() // of this test, which goes on
}
