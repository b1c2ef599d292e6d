package phpfpm

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	list := sharedMappings(strings.NewReader(recordedMaps))
	want := []shared{{0x41ff7000, 0x49ff7000}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(shared{})); diff != "" {
		t.Fatal(diff)
	}
	m := list[0]
	head := recordedHead(m)
	o, found := tableOf(head, m)
	if diff := cmp.Diff(opcache{files: 223, most: 223, misses: 4000, bytes: 128 << 20}, o, cmp.AllowUnexported(opcache{})); diff != "" || !found {
		t.Error(found, diff)
	}
	for name, at := range map[string]int{"no prime of its list": 0x80 + 68, "more files than it takes": 0x80 + 64, "entries elsewhere": 0x80 + 56, "more files than entries": 0x80 + 72} {
		other := append([]byte{}, head...)
		other[at]++
		if _, found := tableOf(other, m); found {
			t.Error("taken for OPcache's table:", name)
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
	m := shared{0x41ff7000, 0x49ff7000}
	f.Add(recordedHead(m), recordedMaps)
	f.Fuzz(func(t *testing.T, b []byte, maps string) {
		for _, m := range append(sharedMappings(strings.NewReader(maps)), m) {
			if o, found := tableOf(b, m); found && (o.files > o.most || o.most == 0 || o.bytes < leastOPcache) {
				t.Errorf("%d of %d files in %g bytes", o.files, o.most, o.bytes)
			}
		}
	})
}
