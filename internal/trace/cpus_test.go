package trace

import "testing"

func TestParseCPUList(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8": 5, "0-63,128-191": 128} {
		if got, err := parseCPUList(list); err != nil || got != want {
			t.Errorf("%s are %d CPUs, %v; want %d", list, got, err, want)
		}
	}
	for _, bad := range []string{"", "x", "3-1", "0-", "-1", "99999999"} {
		if n, err := parseCPUList(bad); err == nil {
			t.Errorf("%q is read as %d CPUs", bad, n)
		}
	}
}

func FuzzParseCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, list string) {
		if n, err := parseCPUList(list); err == nil && n < 1 {
			t.Errorf("%q is read as %d CPUs", list, n)
		}
	})
}
