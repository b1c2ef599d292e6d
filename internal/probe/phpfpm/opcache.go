package phpfpm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/service/phpfpm"
)

const (
	// leastOPcache is the smallest memory that OPcache takes (opcache.memory_consumption, MiB 8).
	leastOPcache = 8 << 20
	// maxMaps bounds what is read of a process' mappings, maxShared those in which the table is looked for, and tableWithin where in them.
	maxMaps     = 1 << 20
	maxShared   = 4
	tableWithin = 64 << 10
	// tableSize are the bytes of the head, and of the counters before it.
	tableSize = 48 + 28
	// kernelsMemory is the device of the kernel's own mount of tmpfs, in which it keeps memory that is shared without a file.
	kernelsMemory = "00:01"
)

// tableSizes are what OPcache rounds opcache.max_accelerated_files up to (zend_accel_hash.c).
var tableSizes = []uint32{5, 11, 19, 53, 107, 223, 463, 983, 1979, 3907, 7963, 16229, 32531, 65407, 130987, 262237, 524521, 1048793}

// shared is one mapping that a process shares with those that it starts, and where it begins in the file behind it.
type shared struct {
	from, to uint64
	offset   int64
}

func (m shared) has(address uint64) bool { return m.from <= address && address < m.to }

// mappings are what /proc/PID/maps says of a process.
type mappings struct {
	large   []shared // of the kernel's own memory, and large enough for OPcache
	other   bool     // others that are shared and as large
	started bool     // FPM's own shared memory is there, which it takes after its extensions took theirs
	loaded  bool     // opcache.so is there
}

func parseMappings(b []byte) (all mappings) {
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		all.loaded = all.loaded || path.Base(f[5]) == "opcache.so"
		m, ok := parseShared(f)
		if !ok {
			continue
		}
		memory := f[3] == kernelsMemory && (f[5] == "/dev/zero" || strings.HasPrefix(f[5], "/SYSV"))
		switch large := m.to-m.from >= leastOPcache; {
		case large && memory:
			all.large = append(all.large, m)
		case large:
			all.other = true
		case memory:
			all.started = true
		}
	}
	return all
}

// parseShared takes the fields of a line apart; it is not ok where the mapping is its process's alone.
//
//	41ff7000-49ff7000 rw-s 00000000 00:01 1126 /dev/zero (deleted)
func parseShared(f []string) (m shared, ok bool) {
	a, b, _ := strings.Cut(f[0], "-")
	from, err1 := strconv.ParseUint(a, 16, 64)
	to, err2 := strconv.ParseUint(b, 16, 64)
	offset, err3 := strconv.ParseInt(f[2], 16, 64)
	return shared{from, to, offset}, strings.HasSuffix(f[1], "s") && errors.Join(err1, err2, err3) == nil && to > from
}

// opcache is what OPcache's own memory says: its table of files, and its counters.
type opcache struct {
	files, most uint32
	misses      uint64
	bytes, used float64 // of its memory; used are those that were ever written to, 0 where that is not known
}

// tableOf finds the head of OPcache's table of files in the first bytes of its memory. Since PHP 7.0 it has been (ZendAccelerator.h):
// hits, misses, misses by the blacklist, restarts for want of memory, for want of places and by hand; then where the table and its entries
// are, how many files are in it, and how many it takes. What is there must agree with itself, so that no other memory is taken for it.
// at is where in b the head begins, with the counters.
func tableOf(b []byte, m shared) (o opcache, at int, found bool) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	for ; at+tableSize <= len(b); at += 8 {
		table, entries := word(at+48), word(at+56)
		files, most := binary.LittleEndian.Uint32(b[at+64:]), binary.LittleEndian.Uint32(b[at+68:])
		direct := binary.LittleEndian.Uint32(b[at+72:])
		if m.has(table) && m.has(entries) && entries-table == (uint64(most)*8+7)/8*8 && slices.Contains(tableSizes, most) && direct <= files && files <= most {
			return opcache{files: files, most: most, misses: word(at + 8), bytes: float64(m.to - m.from)}, at, true
		}
	}
	return o, 0, false
}

// place is where a master's OPcache has the head of its table.
type place struct {
	shared
	at int // bytes into the mapping
}

// readOPcache reads what the OPcache of the master says; nil where it has none. Once the table was found, its head alone is read.
func (s *service) readOPcache(now time.Time) (*opcache, error) {
	if s.table != nil {
		o, _, err := readTable(s.procPath("map_files"), s.table.shared, s.table.at, tableSize)
		if err == nil && o != nil {
			return o, nil
		}
		s.table = nil // it has ended, or was reloaded: a master that is told to reload executes itself anew
	} else if now.Sub(s.sought) < findEvery {
		return nil, s.seekErr
	}
	s.sought = now
	o, err := s.seekOPcache()
	if s.seekErr = nil; err != nil {
		s.seekErr = fmt.Errorf("look for OPcache's counters in the memory of PHP-FPM (process %d): %w", s.master.PID, err)
	}
	return o, s.seekErr
}

// seekOPcache looks for the table in what the master shares.
func (s *service) seekOPcache() (*opcache, error) {
	const ask = "ask it with opcache_get_status() in a page"
	if err := s.isFPM(); err != nil {
		return nil, err
	}
	b, err := host.ReadHead(s.procPath("maps"), maxMaps+1)
	if err != nil {
		return nil, fmt.Errorf("read its mappings, which needs root, or CAP_SYS_PTRACE: %w", err)
	}
	if len(b) > maxMaps {
		return nil, fmt.Errorf("it has more mappings than the %d bytes of /proc/%d/maps that are read; %s", maxMaps, s.master.PID, ask)
	}
	all := parseMappings(b)
	if len(all.large) > 0 && all.loaded {
		for _, m := range all.large[:min(len(all.large), maxShared)] {
			o, at, err := readTable(s.procPath("map_files"), m, 0, tableWithin)
			if err != nil {
				return nil, fmt.Errorf("read the memory that it shares, which needs root, or CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE (before Linux 5.9 CAP_SYS_ADMIN): %w", err)
			}
			if o != nil {
				s.table = &place{m, at}
				return o, nil
			}
		}
	}
	switch {
	case len(all.large) > 0 || all.other:
		return nil, fmt.Errorf("no table of OPcache was recognised in what it shares (that of PHP 7.0 to 8.4, with opcache.so and opcache.preferred_memory_model mmap or shm, is known); %s", ask)
	case !all.started:
		return nil, errors.New("its own shared memory is not there: it is starting, or ending")
	}
	return nil, nil
}

// isFPM asks whether the process is what its title says, which anybody may write: root's, or one whose binary has the name.
func (s *service) isFPM() error {
	exe, err := os.Readlink(s.procPath("exe"))
	if err != nil {
		return fmt.Errorf("see which binary it is, which needs root, or CAP_SYS_PTRACE: %w", err)
	}
	if strings.HasPrefix(path.Base(exe), "php-fpm") {
		return nil
	}
	b, err := host.ReadHead(s.procPath("status"), 4096)
	if err != nil {
		return fmt.Errorf("see whose it is: %w", err)
	}
	if _, uid, _ := strings.Cut(string(b), "\nUid:"); !strings.HasPrefix(uid, "\t0\t0\t0\t0\n") {
		return fmt.Errorf("want a process of root's, or one whose binary is named php-fpm…, but it is another user's %s", exe)
	}
	return nil
}

// readTable looks for the table's head in so many bytes of a mapping, beginning at; nil where it is not there.
//
// It reads the file behind the mapping, and only if that is the kernel's own memory: to read a process's memory, or to ask any other file
// system, may wait for its owner without end (userfaultfd; FUSE whose server was stopped). What was never written to stays without pages.
func readTable(mapFiles string, m shared, at, size int) (*opcache, int, error) {
	name := fmt.Sprintf("%s/%x-%x", mapFiles, m.from, m.to)
	held, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0) // asks the file system nothing
	if err != nil {
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(held)
	var st unix.Statx_t
	if err := unix.Statx(held, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, 0, &st); err != nil {
		return nil, 0, &fs.PathError{Op: "statx", Path: name, Err: err}
	}
	if fmt.Sprintf("%02x:%02x", st.Dev_major, st.Dev_minor) != kernelsMemory {
		return nil, 0, nil // it was mapped anew
	}
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(held))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	b := make([]byte, size)
	n, err := f.ReadAt(b, m.offset+int64(at))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	o, at, found := tableOf(b[:n], m)
	if !found {
		return nil, 0, nil
	}
	// it has as many blocks as pages were ever written to
	if err := unix.Statx(held, "", unix.AT_EMPTY_PATH, unix.STATX_BLOCKS, &st); err == nil {
		o.used = float64(st.Blocks) * 512
	}
	return &o, at, nil
}

// offIn says whether a pool's own settings switch OPcache off.
func offIn(entries []phpfpm.Entry, pool string) bool {
	for _, kind := range []string{"php_admin_value", "php_admin_flag", "php_value", "php_flag"} {
		switch strings.ToLower(phpfpm.Value(entries, pool, kind+"[opcache.enable]")) {
		case "0", "off", "no", "false":
			return true
		}
	}
	return false
}

// putOPcache records what the OPcache of every service says, of each of its pools. What a pool's own settings say of it is only
// known where the configuration was read.
func (r *reader) putOPcache(out *probe.Out) {
	for _, s := range r.services {
		o, err := s.readOPcache(out.Now())
		if err != nil {
			for _, sig := range opcacheSignals {
				out.Mark(sig, err)
			}
			continue
		}
		if s.conf == nil && o != nil {
			out.Mark(opcacheOn, s.confErr)
		}
		for pool := range s.count {
			name := s.label(pool)
			off := o == nil || s.conf != nil && offIn(s.entries, pool)
			if off {
				out.Put(opcacheOn, 0, name)
				continue
			}
			if s.conf != nil {
				out.Put(opcacheOn, 1, name)
			}
			o.put(out, name)
		}
	}
}

func (o *opcache) put(out *probe.Out, pool string) {
	out.Put(opcacheFiles, float64(o.files), pool)
	out.Put(opcacheMaxFiles, float64(o.most), pool)
	out.Put(opcacheMisses, float64(o.misses), pool)
	out.Put(opcacheBytes, o.bytes, pool)
	if o.used > 0 {
		out.Put(opcacheUsed, o.used, pool)
	}
}
