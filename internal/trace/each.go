package trace

import (
	"errors"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// batchBytes is about how much of a map is read with one system call.
const batchBytes = 16 << 10

// Each calls do with every entry of a hash map, which it reads many at a time:
// an entry alone costs two system calls. The pointers are valid during the call.
func Each[K, V any](m *ebpf.Map, do func(key *K, value *V)) error {
	return batches(m, 1, func(key *K, values []V) { do(key, &values[0]) })
}

// EachPerCPU is Each for a map that has a value for every CPU.
func EachPerCPU[K, V any](m *ebpf.Map, do func(key *K, cpus []V)) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return batches(m, cpus, do)
}

func batches[K, V any](m *ebpf.Map, perKey int, do func(key *K, values []V)) error {
	size := max(16, min(int(m.MaxEntries()), batchBytes/(int(m.KeySize())+perKey*int(m.ValueSize()))))
	keys, values := make([]K, size), make([]V, size*perKey)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		switch {
		case errors.Is(err, unix.ENOSPC): // more entries than that share a bucket
			keys, values = make([]K, 2*len(keys)), make([]V, 2*len(values))
			continue
		case errors.Is(err, ebpf.ErrNotSupported): // before Linux 5.6
			return oneByOne(m, perKey, do)
		case err != nil && !errors.Is(err, ebpf.ErrKeyNotExist):
			return err
		}
		for i := range keys[:n] {
			do(&keys[i], values[i*perKey:(i+1)*perKey])
		}
		if err != nil { // that was the end
			return nil
		}
	}
}

func oneByOne[K, V any](m *ebpf.Map, perKey int, do func(key *K, values []V)) error {
	var key K
	each, values := m.Iterate(), make([]V, perKey)
	if perKey == 1 {
		for each.Next(&key, &values[0]) {
			do(&key, values)
		}
		return each.Err()
	}
	for each.Next(&key, &values) {
		do(&key, values)
	}
	return each.Err()
}

// Remove takes entries out of a hash map, many at a time. Those that are gone
// already are no error.
func Remove[K any](m *ebpf.Map, keys []K) error {
	for len(keys) > 0 {
		n, err := m.BatchDelete(keys, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ebpf.ErrKeyNotExist):
			keys = keys[n+1:]
		case errors.Is(err, ebpf.ErrNotSupported): // before Linux 5.6
			return removeOneByOne(m, keys)
		default:
			return err
		}
	}
	return nil
}

func removeOneByOne[K any](m *ebpf.Map, keys []K) error {
	for i := range keys {
		if err := m.Delete(&keys[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}
