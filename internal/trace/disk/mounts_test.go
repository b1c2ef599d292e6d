package disk

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMounts(t *testing.T) {
	const text = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 254:16 / /data\040disk rw shared:1 - ext4 /dev/vdb rw
31 22 254:0 /netns /run/netns rw - ext4 /dev/vda rw
32 22 254:16 / /again rw - ext4 /dev/vdb rw
33 22 254:32 /part /only/a/part rw - ext4 /dev/vdc rw
`
	got, err := parseMounts(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(mounts{254 << 20: "/", 254<<20 | 16: "/data disk"}, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"1 2 3\n", "22 1 254 / / rw\n", "22 1 a:b / / rw\n"} {
		if got, err := parseMounts(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")
	f.Add("22 1 254:0 / /a\\040b\\1 rw\n")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := parseMounts(text); err == nil && m == nil {
			t.Error("neither mounts nor an error")
		}
	})
}

func TestParseInFlight(t *testing.T) {
	for text, want := range map[string]int{"       3        1\n": 4, "0 0\n": 0, "": maxRequests, "x y": maxRequests, "-1 0": maxRequests} {
		if got := parseInFlight(text); got != want {
			t.Errorf("%q gives %d, want %d", text, got, want)
		}
	}
	if d := cmp.Diff([]uint64{5, 9}, youngest([]uint64{9, 1, 5}, 2)); d != "" {
		t.Error(d)
	}
	if n := len(youngest([]uint64{9}, 4)); n != 1 {
		t.Errorf("%d, want the one there is", n)
	}
}

func FuzzParseInFlight(f *testing.F) {
	f.Add("       3        1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n := parseInFlight(text); n < 0 {
			t.Errorf("%q gives %d", text, n)
		}
	})
}
