package exec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func chain(command string, above ...string) Chain {
	c := Chain{Command: command}
	copy(c.Above[:], above)
	return c
}

func TestExecText(t *testing.T) {
	lifetimes := make([]uint64, 28)
	lifetimes[13], lifetimes[14] = 600, 274
	s := Seen{Elapsed: 10 * time.Second, CPUs: 2, Rates: []float64{80, 87, 94}}
	s.Groups = []Group{
		{Chain: chain("stress", "sh", "php-fpm", "php-fpm"), Starts: 874, Ends: 874, Reaped: 874, CPU: 15600 * time.Millisecond,
			Lifetime: 17480 * time.Millisecond, Lifetimes: lifetimes, Exits: map[string]uint64{"1": 874},
			First: &Example{PID: 42, Arguments: []string{"stress", "--cpu", "1\x1b[2J"}, Cut: true}},
		{Chain: chain("sh", "php-fpm"), Forks: 874},
		{Chain: chain("sh", "cron"), ForksOnly: 1, Ends: 3, Exits: map[string]uint64{"0": 2, "SIGKILL": 1}, Lifetimes: make([]uint64, 28)},
	}
	s.Lost = map[string]uint64{"groups": 3, "ends": 0}
	want := `10 s on 2 CPUs: 874 programs started (87/s), 877 processes ended, 1 of them
without having executed anything since their fork.
starts/s  ▇██  94 at most

php-fpm → sh → stress: 87 starts/s, 78 % of the CPU, all fail with exit 1
    lived 20 ms on average, used 17.8 ms of CPU each; 4.1 ms █▄ 16.4 ms
    first: pid 42: stress --cpu 1\u001b[2J …

cron → sh: 1 fork without exec, 2 end well, 1 are killed by SIGKILL
    lived 0 µs on average

note: 3 events were lost (groups)
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Groups that are written alike are one in the text; the JSON keeps them apart.
func TestChainsWrittenAlikeAreJoined(t *testing.T) {
	one := Group{Chain: chain("sh", "php", "php"), Starts: 2, Ends: 2, Exits: map[string]uint64{"0": 2}, Lifetimes: []uint64{1, 1}}
	two := Group{Chain: chain("sh", "php"), Starts: 3, Ends: 3, Exits: map[string]uint64{"0": 1, "7": 2}, Lifetimes: []uint64{0, 3}}
	got := byChain([]Group{one, two})
	if len(got) != 1 || got[0].Starts != 5 || got[0].Exits["0"] != 3 || got[0].Exits["7"] != 2 || got[0].Lifetimes[1] != 4 {
		t.Errorf("%+v", got)
	}
	if one.Exits["0"] != 2 || one.Lifetimes[1] != 1 {
		t.Error("the group that was joined to is changed in the snapshot as well")
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 4}).Text(80); !strings.HasPrefix(text, "1 s on 4 CPUs: 0 ") {
		t.Errorf("%q", text)
	}
}
