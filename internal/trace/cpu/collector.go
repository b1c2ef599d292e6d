package cpu

import "strings"

// collectors are functions of garbage collectors whose threads do other work, too, or
// have no names, as they begin.
var collectors = []string{
	"runtime.gcBgMarkWorker", "runtime.gcDrain", "runtime.gcAssistAlloc", "runtime.scanobject", "runtime.bgsweep", "runtime.bgscavenge", "runtime.markroot", "runtime.wbBufFlush1",
	"v8::internal::MarkCompactCollector", "v8::internal::Scavenger", "v8::internal::MarkingVisitor", "v8::internal::ConcurrentMarking", "v8::internal::Heap::CollectGarbage",
	"v8::internal::Heap::PerformGarbageCollection", "v8::internal::Sweeper",
	"zend_gc_collect_cycles", "gc_collect_main", "gc_collect_with_callback", "_PyGC_Collect", "PyGC_Collect", "gc_marks_rest", "gc_marks_continue", "gc_sweep_continue", "rb_gc", "gc_start",
}

// Collects says whether a function, by its name, is a garbage collector's.
func Collects(function string) bool {
	for _, c := range collectors {
		if strings.HasPrefix(function, c) {
			return true
		}
	}
	return false
}
