package exporter

import (
	"iter"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// garbage is how many per cent the heap may grow between two collections: memory is
	// dearer to a process that stays than a collection every few rounds.
	garbage = 50
	// garbageOfMore is the same while more is held than usual: what reads twice, or the dear tracers.
	garbageOfMore = 20
	// softLimit is from how much memory on garbage is collected more often yet, in bytes. With what is needed of the program's own file it
	// is within 100 MiB; a lower one has the collector run all the time on a host with 17,000 series, which hold 37 MiB.
	softLimit = 64 << 20
)

// usersLimit is $GOMEMLIMIT, else next to infinite.
var usersLimit = debug.SetMemoryLimit(-1) // which changes nothing

// bound has garbage collected more often from softLimit on, or a lower limit of the user's. Where what lives in the heap is near it by itself the limit
// is higher: the collector would run all the time.
func bound() {
	now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(now)
	live := int64(now[0].Value.Uint64())
	debug.SetMemoryLimit(min(usersLimit, max(softLimit, live+live/2)))
}

// holding counts those who hold more: a burst and a renewal may overlap.
var holding struct {
	sync.Mutex
	n int
}

// holdsMore has less garbage lie about until what it returned has been called by all who hold more, which gives back what was needed meanwhile.
func holdsMore() (noMore func()) {
	holding.Lock()
	defer holding.Unlock()
	holding.n++
	debug.SetGCPercent(garbageOfMore)
	return func() {
		holding.Lock()
		defer holding.Unlock()
		if holding.n--; holding.n == 0 {
			debug.SetGCPercent(garbage)
		}
		giveBack()
	}
}

// giveBack gives the kernel what is not needed now: garbage, and what was read of the program's own file. Half of that only a start or a burst needs;
// it is in the page cache still, and mapped again where it is touched. Where the file's mappings cannot be told nothing of it is given back.
func giveBack() {
	debug.FreeOSMemory()
	bound()
	maps, err := os.ReadFile("/proc/self/smaps")
	own, failed := os.Readlink("/proc/self/exe")
	if err != nil || failed != nil {
		return
	}
	for from, size := range unwritten(string(maps), own) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, size, unix.MADV_DONTNEED) // what the kernel keeps is no fault
	}
}

// unwritten yields address and size of a file's mappings that are not to be written and never were, as a loader does that puts in addresses: such
// pages are not the file's any more, and would be lost. smaps is what /proc/PID/smaps says (proc(5)).
func unwritten(smaps, file string) iter.Seq2[uintptr, uintptr] {
	return func(yield func(from, size uintptr) bool) {
		var from, to uint64
		clean := 0 // how often it was said that nothing of this mapping is anonymous: in memory, and swapped out
		for line := range strings.Lines(smaps) {
			f := strings.Fields(line)
			switch {
			case len(f) > 1 && strings.HasSuffix(f[0], ":"):
				if (f[0] == "Anonymous:" || f[0] == "Swap:") && f[1] == "0" {
					clean++
				}
				if f[0] == "VmFlags:" && clean == 2 && from < to && !yield(uintptr(from), uintptr(to-from)) {
					return
				}
			case len(f) == 6 && f[5] == file && strings.HasPrefix(f[1], "r-"):
				low, high, _ := strings.Cut(f[0], "-")
				from, _ = strconv.ParseUint(low, 16, 64)
				to, _ = strconv.ParseUint(high, 16, 64)
				clean = 0
			default:
				from, to = 0, 0
			}
		}
	}
}
