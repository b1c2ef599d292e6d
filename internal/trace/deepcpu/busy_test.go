package deepcpu

import (
	"testing"
	"time"
)

func TestParseBusy(t *testing.T) {
	const stat = "cpu  100 20 3 99999 5000 7 11 13 17 19\ncpu0 1 2 3\n"
	if got, err := parseBusy([]byte(stat)); err != nil || got != 1410*time.Millisecond {
		t.Errorf("%v, %v, want 1.41s", got, err)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7", "cpu 1 2 3", "cpu 1 2 3 4 5 six 7", "cpu -1 2 3 4 5 6 7"} {
		if got, err := parseBusy([]byte(bad)); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func FuzzParseBusy(f *testing.F) {
	f.Add([]byte("cpu  100 20 3 99999 5000 7 11 13 17 19\ncpu0 1 2 3\n"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if got, err := parseBusy(stat); got < 0 || err != nil && got != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}
