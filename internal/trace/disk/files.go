package disk

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/syscalls/sysname"
)

// As disk.bpf.c numbers them.
const (
	inKernel = 0xffffffff
	inFault  = 0xfffffffe
	inCompat = 0xfffffffd

	ofMetadata = 1
	ofSwap     = 2
	ofUnknown  = 3
)

// A machine may touch very many files, each a little; those that matter must
// still find room.
const (
	// crowded is how many files the kernel's map may hold before the least used are
	// taken out, down to settled.
	crowded, settled = 1536, 1024
	// A file has a series of its own once it had so much I/O, if it is among the first.
	ownFrom, maxOwn = 16, 256
	// maxGone is of how many processes and calls the files that were taken out are
	// remembered.
	maxGone = 1024
)

// other is the file that stands for all that have no entry or series of their own.
const other = "other"

// files remembers what became of files that are not kept one by one.
type files struct {
	// named is the files of the kernel's map, without their counts.
	named map[bpfTarget]File
	// gone is the I/O of files that were taken out of the kernel's map.
	gone map[File]uint64
	// own says of each file with a series how much of its I/O was told as other's.
	own map[File]uint64
	// told is how much of the I/O of a file without one was told as other's.
	told map[File]uint64
}

func newFiles() files {
	return files{named: map[bpfTarget]File{}, gone: map[File]uint64{}, own: map[File]uint64{}, told: map[File]uint64{}}
}

// key is the file without its count.
func (f File) key() File {
	f.Requests = 0
	return f
}

// asOther is the key of what is told of it together with others.
func (f File) asOther() File {
	f.File = other
	return f.key()
}

// series returns what is to be recorded: the files that matter each for itself,
// all others of a process and call as one. No sum ever falls.
func (k *files) series(list []File) []File {
	sums := map[File]uint64{}
	for _, f := range list {
		key := f.key()
		before, own := k.own[key]
		if f.File != other && !own && f.Requests >= ownFrom && len(k.own) < maxOwn {
			before, own = k.told[key], true
			k.own[key] = before
			delete(k.told, key)
		}
		if own {
			sums[key] += f.Requests - before
			sums[f.asOther()] += before
			continue
		}
		sums[f.asOther()] += f.Requests
		k.told[key] = f.Requests
	}
	var out []File
	for f, n := range sums {
		if n > 0 {
			f.Requests = n
			out = append(out, f)
		}
	}
	return out
}

// canForget says whether a file may be taken out: it has no series of its own, and
// its I/O will be remembered.
func (k *files) canForget(key File) bool {
	_, own := k.own[key]
	_, known := k.gone[key.asOther()]
	return !own && (known || len(k.gone) < maxGone)
}

// forget puts a file that was taken out to the others.
func (k *files) forget(key File, n uint64) {
	delete(k.told, key)
	k.gone[key.asOther()] += n
}

// entry is a file in the kernel's map.
type entry struct {
	key  bpfTarget
	file File
}

// readFiles reads the files and makes room for others.
func (t *Trace) readFiles() ([]File, error) {
	var entries []entry
	err := trace.Each(t.Maps.Maps[bpfMapTargets], func(key *bpfTarget, value *bpfTargetFile) {
		if value.Named == 0 { // it is being written, and is there the next time
			return
		}
		file, known := t.files.named[*key]
		if !known { // what names it is written once
			file = File{Netns: key.Netns, Name: trace.Comm(key.Comm[:]), Syscall: callName(key.Nr), Direct: key.Direct != 0, File: t.path(key, value)}
			t.files.named[*key] = file
		}
		file.Requests = value.Submitted
		entries = append(entries, entry{*key, file})
	})
	if err != nil {
		return nil, fmt.Errorf("read which files are read and written: %w", err)
	}
	entries, err = t.makeRoom(entries)
	if err != nil {
		return nil, err
	}
	sums := maps.Clone(t.files.gone)
	for _, e := range entries { // an inode may be a file's that is gone, whose name another one took
		sums[e.file.key()] += e.file.Requests
	}
	var list []File
	for f, n := range sums {
		f.Requests = n
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b File) int {
		if c := cmp.Compare(b.Requests, a.Requests); c != 0 { // cmp.Or would compare the names all the same
			return c
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.File, b.File),
			strings.Compare(a.Syscall, b.Syscall), cmp.Compare(a.Netns, b.Netns))
	})
	return list, nil
}

// makeRoom takes the least used files out if there are too many, and returns
// those that stay. The entries come with the most used first.
func (t *Trace) makeRoom(entries []entry) ([]entry, error) {
	if len(entries) <= crowded {
		return entries, nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(b.file.Requests, a.file.Requests) })
	stay := entries[:settled:settled]
	for _, e := range entries[settled:] {
		key := e.file.key()
		if !t.files.canForget(key) {
			stay = append(stay, e)
			continue
		}
		var last bpfTargetFile
		err := t.Maps.Maps[bpfMapTargets].LookupAndDelete(&e.key, &last)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, fmt.Errorf("make room for other files: %w", err)
		}
		t.files.forget(key, last.Submitted)
		delete(t.files.named, e.key)
	}
	return stay, nil
}

func callName(nr uint32) string {
	switch nr {
	case inKernel:
		return "kernel"
	case inFault:
		return "page fault"
	case inCompat:
		return "32-bit call"
	}
	return sysname.Call(nr)
}

// path names a file as well as is known.
func (t *Trace) path(key *bpfTarget, file *bpfTargetFile) string {
	switch key.Of {
	case ofMetadata:
		return "metadata"
	case ofSwap:
		return "swap"
	case ofUnknown:
		return "unknown"
	}
	var parts []string
	for i := len(file.Part) - 1; i >= 0; i-- {
		if name := trace.Comm(file.Part[i][:]); name != "" {
			parts = append(parts, name)
		}
	}
	path := strings.Join(parts, "/")
	switch {
	case path == "" && file.Whole == 0: // its name is forgotten
		return "inode " + strconv.FormatUint(key.Ino, 10)
	case file.Whole == 0:
		return "…/" + path
	}
	return strings.TrimSuffix(t.mounted(key.Dev), "/") + "/" + path
}

// mounted is where a file system is mounted, "" if that is not known. The list
// is read again only for one that was never asked for.
func (t *Trace) mounted(dev uint32) string {
	if _, asked := t.mounts[dev]; !asked {
		now, _ := readMounts() // without it the path is its file system's own
		maps.Copy(t.mounts, now)
		t.mounts[dev] = now[dev]
	}
	return t.mounts[dev]
}
