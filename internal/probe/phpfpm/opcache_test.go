package phpfpm

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/service/phpfpm"
)

const recordedMaps = "41ff7000-49ff7000 rw-s 00000000 00:01 1126                               /dev/zero (deleted)\n" +
	"7fc7cb884000-7fc7cb89a000 r--p 00000000 fe:00 6668322                    /usr/lib/php/20220829/opcache.so\n" +
	"7fc7ce842000-7fc7ce843000 rw-s 00000000 00:01 1128                       /dev/zero (deleted)\n" +
	"7fc7ce900000-7fc7cf900000 rw-p 00000000 00:00 0 \n"

// recordedHead is the head of the memory of a PHP 8.2 with room for 200 files, as it lies behind what the allocator keeps.
func recordedHead(m shared) []byte {
	b := make([]byte, 4096)
	for i, v := range []uint64{90, 4000, 0, 0, 0, 0, m.from + 0x1000, m.from + 0x1000 + 223*8} {
		binary.LittleEndian.PutUint64(b[0x80+8*i:], v)
	}
	for i, v := range []uint32{223, 223, 223} {
		binary.LittleEndian.PutUint32(b[0x80+64+4*i:], v)
	}
	return b
}

func TestOPcachesMemory(t *testing.T) {
	all := parseMappings([]byte(recordedMaps))
	m := shared{from: 0x41ff7000, to: 0x49ff7000}
	want := mappings{large: []shared{m}, started: true, loaded: true}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(shared{}, mappings{})); diff != "" {
		t.Fatal(diff)
	}
	head := recordedHead(m)
	o, at, found := tableOf(head, m)
	if diff := cmp.Diff(opcache{files: 223, most: 223, misses: 4000, bytes: 128 << 20}, o, cmp.AllowUnexported(opcache{})); diff != "" || !found || at != 0x80 {
		t.Error(found, at, diff)
	}
	for name, at := range map[string]int{"no prime of its list": 0x80 + 68, "more files than it takes": 0x80 + 64, "entries elsewhere": 0x80 + 56, "more files than entries": 0x80 + 72} {
		other := append([]byte{}, head...)
		other[at]++
		if _, _, found := tableOf(other, m); found {
			t.Error("taken for OPcache's table:", name)
		}
	}
}

// What a process maps is its own choice: only the kernel's own memory is read, of a PHP-FPM that has OPcache.
func TestMappingsOfOthersAreNotRead(t *testing.T) {
	fpms := "7fc7ce842000-7fc7ce843000 rw-s 00000000 00:01 1128                       /dev/zero (deleted)\n"
	for maps, want := range map[string]mappings{
		"": {},
		"41ff7000-49ff7000 rw-s 00000000 00:2d 1126  /dev/zero (deleted)\n" + fpms:  {other: true, started: true},
		"41ff7000-49ff7000 rw-s 00000000 00:01 1126  /memfd:x (deleted)\n":          {other: true},
		"41ff7000-49ff7000 rw-s 00000000 00:0f 1126  /anon_hugepage (deleted)\n":    {other: true},
		"41ff7000-49ff7000 r--s 00002000 00:01 1126  /SYSV00000000 (deleted)\n":     {large: []shared{{0x41ff7000, 0x49ff7000, 0x2000}}},
		"41ff7000-49ff7000 rw-p 00000000 00:01 1126  /dev/zero (deleted)\n" + fpms:  {started: true},
		"7fc7cb884000-7fc7cb89a000 r--p 00000000 fe:00 6 /x/opcache.so (deleted)\n": {loaded: true},
	} {
		if diff := cmp.Diff(want, parseMappings([]byte(maps)), cmp.AllowUnexported(shared{}, mappings{})); diff != "" {
			t.Errorf("%q: %s", maps, diff)
		}
	}
}

func TestReadTable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("/proc/PID/map_files needs root")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(leastOPcache); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		fd, flags int
		found     bool
	}{"the kernel's memory": {-1, unix.MAP_SHARED | unix.MAP_ANON, true}, "a file": {int(file.Fd()), unix.MAP_SHARED, false}} {
		b, err := unix.Mmap(of.fd, 0, leastOPcache, unix.PROT_READ|unix.PROT_WRITE, of.flags)
		if err != nil {
			t.Fatal(err)
		}
		from := uint64(uintptr(unsafe.Pointer(&b[0])))
		m := shared{from: from, to: from + leastOPcache}
		copy(b, recordedHead(m))
		o, at, err := readTable("/proc/self/map_files", m, 0, tableWithin)
		switch {
		case err != nil || (o != nil) != of.found:
			t.Errorf("%s: %+v, %v", name, o, err)
		case of.found && (at != 0x80 || o.files != 223 || o.used != float64(os.Getpagesize())):
			t.Errorf("%s at %d: %+v; want 223 files, and that no page is made by reading", name, at, o)
		}
		if err := unix.Munmap(b); err != nil {
			t.Fatal(err)
		}
	}
}

// A title may be anybody's; and where the mappings are not there, as of a process that ends, OPcache is not off.
func TestWhatIsNoneIsNotOff(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "proc/5")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	users, roots := "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n", "Name:\tx\nUid:\t0\t0\t0\t0\n"
	fpms := "7fc7ce842000-7fc7ce843000 rw-s 00000000 00:01 1128                       /dev/zero (deleted)\n"
	many := strings.Repeat("7fc7ce900000-7fc7cf900000 rw-p 00000000 00:00 0 \n", maxMaps/40)
	for i, of := range []struct{ exe, status, maps, err string }{
		{"/usr/sbin/php-fpm8.2", users, fpms, ""},
		{"/usr/sbin/php-fpm (deleted)", users, fpms, ""},
		{"/opt/server", roots, fpms, ""},
		{"/opt/x/server", users, fpms, "another user's"},
		{"/usr/sbin/php-fpm8.2", roots, "", "starting, or ending"},
		{"/usr/sbin/php-fpm8.2", roots, fpms + many, "more mappings"},
		{"/usr/sbin/php-fpm8.2", roots, recordedMaps[:strings.Index(recordedMaps, "\n")+1] + fpms, "no table of OPcache"}, // not asked: opcache.so is not there
	} {
		_ = os.Remove(filepath.Join(dir, "exe"))
		if err := os.Symlink(of.exe, filepath.Join(dir, "exe")); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"status": of.status, "maps": of.maps} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := &service{host: host.Recorded("server", root), master: host.Proc{PID: 5}}
		o, err := s.readOPcache(time.Unix(1, 0))
		if o != nil || (err == nil) != (of.err == "") || err != nil && !strings.Contains(err.Error(), of.err) {
			t.Errorf("%d: %v, %v; want %q", i, o, err, of.err)
		}
	}
}

func TestAPoolSwitchesOPcacheOff(t *testing.T) {
	entries := []phpfpm.Entry{{Section: "www", Key: "php_admin_value[opcache.enable]", Value: "0"}, {Section: "shop", Key: "php_admin_flag[opcache.enable]", Value: "On"}}
	if !offIn(entries, "www") || offIn(entries, "shop") || offIn(entries, "none") {
		t.Error("want OPcache switched off in www alone")
	}
}

func FuzzTable(f *testing.F) {
	m := shared{from: 0x41ff7000, to: 0x49ff7000}
	f.Add(recordedHead(m), recordedMaps)
	f.Fuzz(func(t *testing.T, b []byte, maps string) {
		for _, m := range append(parseMappings([]byte(maps)).large, m) {
			if o, at, found := tableOf(b, m); found && (at+tableSize > len(b) || o.files > o.most || o.most == 0 || o.bytes < leastOPcache) {
				t.Errorf("%d of %d files in %g bytes", o.files, o.most, o.bytes)
			}
		}
	})
}
