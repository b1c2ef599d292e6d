package trace

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cilium/ebpf"
)

// What comes in batches is what there is, once each.
func TestEach(t *testing.T) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Skip(err)
	}
	m := testMap(t, ebpf.Hash)
	perCPU := testMap(t, ebpf.PerCPUHash)
	const entries = 1009
	for i := range uint32(entries) {
		values := make([]uint64, cpus)
		for cpu := range values {
			values[cpu] = uint64(i) << cpu
		}
		if err := errors.Join(m.Put(i, uint64(i)), perCPU.Put(i, values)); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range map[string]func(func(uint32, []uint64)) error{
		"batches": func(do func(uint32, []uint64)) error {
			return Each(m, func(k *uint32, v *uint64) { do(*k, []uint64{*v}) })
		},
		"one by one": func(do func(uint32, []uint64)) error {
			return oneByOne(m, 1, func(k *uint32, v []uint64) { do(*k, v) })
		},
		"batches per CPU": func(do func(uint32, []uint64)) error {
			return EachPerCPU(perCPU, func(k *uint32, v []uint64) { do(*k, v) })
		},
		"one by one, per CPU": func(do func(uint32, []uint64)) error {
			return oneByOne(perCPU, cpus, func(k *uint32, v []uint64) { do(*k, v) })
		},
	} {
		seen := map[uint32]int{}
		err := read(func(k uint32, v []uint64) {
			seen[k]++
			for cpu := range v {
				if v[cpu] != uint64(k)<<cpu {
					t.Fatalf("%s: entry %d has %v", name, k, v)
				}
			}
		})
		if err != nil || len(seen) != entries {
			t.Errorf("%s: %d entries, %v; want %d", name, len(seen), err, entries)
		}
		for k, n := range seen {
			if n != 1 {
				t.Errorf("%s: entry %d came %d times", name, k, n)
			}
		}
	}
}

// What is removed is gone, and only that, whether it was there or not.
func TestRemove(t *testing.T) {
	for name, remove := range map[string]func(*ebpf.Map, []uint32) error{"batches": Remove[uint32], "one by one": removeOneByOne[uint32]} {
		m := testMap(t, ebpf.Hash)
		for i := range uint32(101) {
			if err := m.Put(i, uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := remove(m, []uint32{500, 3, 3, 7, 600, 601, 11, 700}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left := map[uint32]bool{}
		if err := Each(m, func(k *uint32, _ *uint64) { left[*k] = true }); err != nil {
			t.Fatal(err)
		}
		if len(left) != 98 || left[3] || left[7] || left[11] {
			t.Errorf("%s: %d entries are left, want all but 3, 7 and 11", name, len(left))
		}
	}
}

func testMap(t *testing.T, kind ebpf.MapType) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: kind, KeySize: 4, ValueSize: 8, MaxEntries: 2048})
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
