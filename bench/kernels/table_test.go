package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const said = `@ release 5.10.0-32-amd64
@ doctor
{"hosts": [{"probes": [{"probe": "stat", "read": 1, "signals": {"a": {"state": "read"}}}]}],
 "tracers": [{"probe": "exec", "read": 1, "signals": {"starts": {"state": "read"}, "ends": {"state": "absent", "why": "needs Linux 5.15"}}},
  {"probe": "drops", "read": 1, "signals": {"packets": {"state": "read"}}}]}
@ trace drops 0
@ tests drops 1 1
    drops_test.go:1: 3, want 4
--- FAIL: TestFirewallDrops (1.00s)
@ trace exec 3
plimsoll: needs Linux 5.15
@ tests exec 0 0
@ case run 0 CAPACITY
more
@ case php-workers 1 vague
1 of 1 trials were not right
@ case tune+undo 0
as they were
@ end
`

// What came after a kernel was looked at has a row all the same.
func TestTableOfTwoDays(t *testing.T) {
	old, err := read(kernel{name: "5.10"}, []byte(said), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	later, err := read(kernel{name: "6.1"}, []byte(strings.ReplaceAll(said, "drops", "newer")), time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	got := table([]*seen{old, later})
	for _, want := range []string{"| `drops` | 1 of 1 signals, 1 of 2 tests | not tried |", "| `newer` | not tried | 1 of 1 signals, 1 of 2 tests |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}

func TestTable(t *testing.T) {
	s, err := read(kernel{name: "5.10", of: "Debian 11"}, []byte(said), time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	want := `
| | 5.10 |
|---|---|
| kernel of | Debian 11 |
| release | 5.10.0-32-amd64 |
| seen on | 2026-11-28 |
| probes' signals | 1 of 1 |
| ` + "`exec`" + ` | 1 of 2 signals |
| ` + "`drops`" + ` | 1 of 1 signals, 1 of 2 tests |
| run | capacity |
| php-workers | vague |
| tune+undo | right |

## Missing on 5.10 (5.10.0-32-amd64)

- ` + "`exec`, ends: absent: needs Linux 5.15\n- `plimsoll trace exec` ends with 3: plimsoll: needs Linux 5.15\n- `drops`, tests fail:\n\n  ```\n      drops_test.go:1: 3, want 4\n  --- FAIL: TestFirewallDrops (1.00s)\n  ```\n- php-workers ended with 1:\n\n  ```\n  1 of 1 trials were not right\n  ```\n"
	if d := cmp.Diff(want, strings.TrimPrefix(table([]*seen{s}), head)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestTypesAreFoundByTheirHeader(t *testing.T) {
	btf := []byte{0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 0}
	image := append(append([]byte("before, and a header of something else: \x9f\xeb\x01\x00"), btf...), "after"...)
	if got := findBTF(image); !cmp.Equal(got, btf) {
		t.Errorf("found %v", got)
	}
	if got := findBTF(image[:len(image)-6]); got != nil {
		t.Errorf("found %v where its end is missing", got)
	}
}
