package phpfpm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/service/phpfpm"
)

const (
	// leastOPcache is the smallest memory that OPcache takes (opcache.memory_consumption, MiB 8); FPM's own shared memory is smaller.
	leastOPcache = 8 << 20
	// maxMaps bounds what is read of a process' mappings, tableWithin where in the memory the head of OPcache's table is looked for.
	maxMaps     = 4 << 20
	tableWithin = 64 << 10
	// tableSize are the bytes of the head, and of the counters before it.
	tableSize = 48 + 28
)

// tableSizes are what OPcache rounds opcache.max_accelerated_files up to (zend_accel_hash.c).
var tableSizes = []uint32{5, 11, 19, 53, 107, 223, 463, 983, 1979, 3907, 7963, 16229, 32531, 65407, 130987, 262237, 524521, 1048793}

// shared is one mapping that a process shares with those that it starts.
type shared struct{ from, to uint64 }

func (m shared) has(address uint64) bool { return m.from <= address && address < m.to }

// sharedMappings are those that may be OPcache's, of /proc/PID/maps.
func sharedMappings(r io.Reader) (list []shared) {
	lines := bufio.NewScanner(io.LimitReader(r, maxMaps))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "rw-s" {
			continue
		}
		a, b, _ := strings.Cut(f[0], "-")
		from, err := strconv.ParseUint(a, 16, 64)
		to, bad := strconv.ParseUint(b, 16, 64)
		if err == nil && bad == nil && to > from && to-from >= leastOPcache {
			list = append(list, shared{from, to})
		}
	}
	return list
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
func tableOf(b []byte, m shared) (o opcache, found bool) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	for at := 0; at+tableSize <= len(b); at += 8 {
		table, entries := word(at+48), word(at+56)
		files, most := binary.LittleEndian.Uint32(b[at+64:]), binary.LittleEndian.Uint32(b[at+68:])
		direct := binary.LittleEndian.Uint32(b[at+72:])
		if m.has(table) && m.has(entries) && entries-table == (uint64(most)*8+7)/8*8 && slices.Contains(tableSizes, most) && direct <= files && files <= most {
			return opcache{files: files, most: most, misses: word(at + 8), bytes: float64(m.to - m.from)}, true
		}
	}
	return o, false
}

// readOPcache reads what the OPcache of a master says; nil where it has none. Nothing but the head of its memory is read.
func readOPcache(h *host.Host, pid int) (*opcache, error) {
	dir := func(name string) string { return h.Path("proc", strconv.Itoa(pid), name) }
	f, err := os.Open(dir("maps"))
	if err != nil {
		return nil, fmt.Errorf("read which memory PHP-FPM (process %d) shares; that needs root, or CAP_SYS_PTRACE: %w", pid, err)
	}
	defer f.Close()
	list := sharedMappings(f)
	if len(list) == 0 {
		return nil, nil
	}
	mem, err := os.Open(dir("mem"))
	if err != nil {
		return nil, fmt.Errorf("read OPcache's counters in the memory of PHP-FPM (process %d); that needs root, or CAP_SYS_PTRACE: %w", pid, err)
	}
	defer mem.Close()
	head := make([]byte, tableWithin)
	for _, m := range list {
		n, err := mem.ReadAt(head, int64(m.from))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read OPcache's counters in the memory of PHP-FPM (process %d): %w", pid, err)
		}
		o, found := tableOf(head[:n], m)
		if !found {
			continue
		}
		// the file behind a mapping has as many blocks as pages were ever written to
		if info, err := os.Stat(dir(fmt.Sprintf("map_files/%x-%x", m.from, m.to))); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				o.used = float64(st.Blocks) * 512
			}
		}
		return &o, nil
	}
	return nil, fmt.Errorf("PHP-FPM (process %d) shares memory in which no table of OPcache was recognised (PHP 7.0 to 8.4 were known): ask it with opcache_get_status() in a page", pid)
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
		o, err := readOPcache(r.host, s.master.PID)
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
