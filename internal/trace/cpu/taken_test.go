package cpu

import (
	"testing"

	"plimsoll/internal/trace/symbol"
)

// A sample is a collector's, whatever it had called, and once, however many of its
// functions stand in the stack.
func TestSamplesOfACollector(t *testing.T) {
	tk := newTaken()
	var numbers []uint32
	for _, name := range []string{"runtime.greyobject", "runtime.scanobject", "runtime.gcDrain", "main.work", "runtime.mallocgc"} {
		n, room := tk.number(symbol.Frame{Function: name})
		if !room {
			t.Fatal("no room")
		}
		numbers = append(numbers, n)
	}
	shop := groupKey{1, "shop"}
	tk.add([]one{
		{group: shop, pid: 7, frames: numbers[:3], function: "runtime.greyobject", count: 5},
		{group: shop, pid: 7, frames: []uint32{numbers[4], numbers[3]}, function: "runtime.mallocgc", count: 3},
	})
	if g := tk.groups[shop]; g.collector != 5 || g.user != 8 {
		t.Errorf("%d of %d samples are the collector's, want 5 of 8", g.collector, g.user)
	}
}

// A sample is about memory where the kernel handles a fault, whoever it called for that;
// a function of the process is not the kernel's for having its name.
func TestSamplesAboutMemory(t *testing.T) {
	tk := newTaken()
	var numbers []uint32
	for _, f := range []symbol.Frame{
		{Function: "clear_page_erms", Kernel: true}, {Function: "asm_exc_page_fault", Kernel: true}, {Function: "fill"},
		{Function: "do_mmap"}, {Function: "vfs_read", Kernel: true},
	} {
		n, room := tk.number(f)
		if !room {
			t.Fatal("no room")
		}
		numbers = append(numbers, n)
	}
	job := groupKey{1, "job"}
	tk.add([]one{
		{group: job, pid: 7, kernel: true, frames: numbers[:3], function: "clear_page_erms", count: 5},
		{group: job, pid: 7, frames: numbers[2:4], function: "fill", count: 3},
		{group: job, pid: 7, kernel: true, frames: numbers[4:], function: "vfs_read", count: 2},
	})
	if g := tk.groups[job]; g.memory != 5 || g.kernel != 7 || g.user != 3 {
		t.Errorf("%d of %d samples are about memory, want 5 of 10", g.memory, g.kernel+g.user)
	}
}

// Ruby's allocator has names like its collector's.
func TestWhoCollects(t *testing.T) {
	for name, want := range map[string]bool{
		"rb_gc": true, "gc_sweep_step": true, "rb_gc_mark_children": true, "ruby:{gc.c}": true, "visit_decref": true, "gc_start_internal": true, "gc_collect_main.constprop.0": true, "runtime.gcDrainN": true, "v8::internal::ScavengerCollector::CollectGarbage": true,
		"rb_gc_impl_new_obj": false, "rb_gc_writebarrier": false, "runtime.mallocgc": false, "main.work": false, "": false,
	} {
		if Collects(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
