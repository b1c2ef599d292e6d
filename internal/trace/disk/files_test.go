package disk

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// However files come, grow and go, no series ever falls, and together they tell
// of all I/O there was.
func TestSeriesNeverFall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	k := newFiles()
	counts := map[File]uint64{}
	before := map[File]uint64{}
	var total uint64
	for range 200 {
		for range 50 {
			f := File{Name: "p", Syscall: "read", File: "/" + strconv.Itoa(int(random.ExpFloat64()*200))}
			n := random.Uint64N(8)
			counts[f] += n
			total += n
		}
		list := lists(counts, k.gone)
		var sum uint64
		now := map[File]uint64{}
		for _, f := range k.series(list) {
			now[f.key()] = f.Requests
			sum += f.Requests
			if f.Requests < before[f.key()] {
				t.Fatalf("%+v fell from %d", f, before[f.key()])
			}
		}
		for f := range before {
			if _, there := now[f]; !there {
				t.Fatalf("%+v is gone", f)
			}
		}
		if sum != total {
			t.Fatalf("%d in all, want %d", sum, total)
		}
		before = now
		for f, n := range counts {
			if _, own := k.own[f]; !own && random.IntN(4) == 0 {
				k.forget(f, n)
				delete(counts, f)
			}
		}
	}
	if len(k.own) == 0 || len(k.own) > maxOwn || len(before) > maxOwn+1 {
		t.Errorf("%d files have a series of their own, of %d series", len(k.own), len(before))
	}
}

func lists(maps ...map[File]uint64) []File {
	var list []File
	for _, m := range maps {
		for f, n := range m {
			f.Requests = n
			list = append(list, f)
		}
	}
	return list
}

// A file that is busy when it is first seen is never told as other's.
func TestBusyFileIsExact(t *testing.T) {
	k := newFiles()
	busy := File{Name: "dd", Syscall: "pread64", Direct: true, File: "/data/x", Requests: 1009}
	if d := cmp.Diff([]File{busy}, k.series([]File{busy})); d != "" {
		t.Error(d)
	}
}

// What could not be remembered stays, so that no sum falls.
func TestForgetWithinTheBound(t *testing.T) {
	k := newFiles()
	for i := range maxGone {
		f := File{Name: strconv.Itoa(i), File: "/x"}
		if !k.canForget(f) {
			t.Fatalf("%+v cannot be forgotten", f)
		}
		k.forget(f, 3)
	}
	if !k.canForget(File{Name: "0", File: "/y"}) || k.canForget(File{Name: "new", File: "/x"}) {
		t.Error("beyond the bound, those that have room can be forgotten, and no others")
	}
}

func TestPath(t *testing.T) {
	tr := &Trace{mounts: mounts{8: "/", 9: "/data disk"}}
	var none, whole, cut bpfTargetFile
	copy(bytesOf(&whole, 0), "x")
	copy(bytesOf(&whole, 1), "db")
	whole.Whole = 1
	cut = whole
	cut.Whole = 0
	for _, c := range []struct {
		key  bpfTarget
		file bpfTargetFile
		want string
	}{
		{bpfTarget{Dev: 8}, whole, "/db/x"},
		{bpfTarget{Dev: 9}, whole, "/data disk/db/x"},
		{bpfTarget{Dev: 9}, cut, "…/db/x"},
		{bpfTarget{Ino: 7}, none, "inode 7"},
		{bpfTarget{Of: ofMetadata}, none, "metadata"},
		{bpfTarget{Of: ofSwap}, none, "swap"},
		{bpfTarget{Of: ofUnknown}, none, "unknown"},
	} {
		if got := tr.path(&c.key, &c.file); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func bytesOf(f *bpfTargetFile, part int) []byte { return f.Part[part][:] }
