package breakdown

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record/notation"
)

func TestLoadAverages(t *testing.T) {
	const machine = `
    - 'node_load1{host="a"} 1x8 3.5'
`
	const groups = `
    - 'namedprocess_namegroup_cpu_seconds_total{host="a",groupname="nginx",mode="user"} 0+0.5x9'
    - 'plimsoll_process_run_delay_seconds_total{host="a",groupname="nginx"} 0+0.5x9'
    - 'namedprocess_namegroup_cpu_seconds_total{host="b",groupname="stress",mode="user"} 0+1x9'
    - 'plimsoll_process_run_delay_seconds_total{host="b",groupname="stress"} 0+2x9'
    - 'namedprocess_namegroup_cpu_seconds_total{host="b",groupname="idle",mode="user"} 0+0.01x9'
    - 'plimsoll_process_run_delay_seconds_total{host="b",groupname="idle"} 0x9'
`
	for name, c := range map[string]struct{ series, want string }{
		"nothing was read": {`
    - 'node_load5{host="a"} 5x9'`, `[]`},
		"without the tracer": {machine + groups + `
    - 'node_procs_blocked{host="a"} 2x9'`, `[{"hosts":["a","b"],"load1":3.5,"runnable":{"threads":4.01,"groups":[{"groupname":"stress","share":0.7481},{"groupname":"nginx","share":0.2494}]},"uninterruptible":{"threads":2,"groups":[]}}]`},
		"what no reading of processes saw was runnable, too": {machine + groups + `
    - 'plimsoll_tasks_state_seconds_total{host="a",groupname="short",state="runnable"} 0+6x9'
    - 'plimsoll_tasks_state_seconds_total{host="b",groupname="dd",state="uninterruptible"} 0+1.5x9'
    - 'plimsoll_tasks_state_seconds_total{host="b",groupname="dd",state="stopped"} 0+9x9'`,
			`[{"hosts":["a","b"],"load1":3.5,"runnable":{"threads":6,"groups":[{"groupname":"short","share":1}]},"uninterruptible":{"threads":1.5,"groups":[{"groupname":"dd","share":1}]}}]`},
		"nobody in uninterruptible sleep is zero, since threads were counted": {machine + `
    - 'plimsoll_tasks_state_seconds_total{host="a",groupname="nginx",state="runnable"} 0+0.5x9'`,
			`[{"hosts":["a","b"],"load1":3.5,"runnable":{"threads":0.5,"groups":[{"groupname":"nginx","share":1}]},"uninterruptible":{"threads":0,"groups":[]}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			list := LoadAverages(written(t, "  series:"+c.series+"\n", model.Host{Name: "b", Machine: "m"}, model.Host{Name: "a", Machine: "m"}))
			for i := range list {
				for j := range list[i].Runnable.Groups {
					s := &list[i].Runnable.Groups[j].Share
					*s = float64(int(*s*10000+0.5)) / 10000
				}
			}
			got, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Two machines that were booted in the same second are two; hosts of one boot id
// are one; and where nobody knows the boot id each host stands for itself.
func TestABootIDMakesAMachine(t *testing.T) {
	for name, c := range map[string]struct {
		ids  [2]string
		want string
	}{
		"one boot id":   {[2]string{"x", "x"}, "a 3 b 3"},
		"two":           {[2]string{"x", "y"}, "a 1 b 2"},
		"none is known": {[2]string{"", ""}, "a 1 b 2"},
		"of one":        {[2]string{"x", ""}, "a 1 b 2"},
	} {
		r := written(t, `  series:
    - 'node_boot_time_seconds{host="a"} 5x9'
    - 'node_boot_time_seconds{host="b"} 5x9'
    - 'used{host="a"} 1x9'
    - 'used{host="b"} 2x9'
`, model.Host{Name: "a", Machine: c.ids[0]}, model.Host{Name: "b", Machine: c.ids[1]})
		e := query.MustParse(`host:machine:info * on (machine) group_left () sum by (machine) (
			max_over_time(used[$window:]) * on (host) group_left (machine) host:machine:info)`)
		got := ""
		for _, s := range r.Ask(e).Samples {
			got += fmt.Sprintf(" %s %v", s.Labels["host"], s.Value)
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if n := len(machines(r.Meta().Hosts)); n != map[bool]int{true: 1, false: 2}[c.want == "a 3 b 3"] {
			t.Errorf("%s: %v", name, machines(r.Meta().Hosts))
		}
	}
}

// written is a run of these hosts, and of what a vector says of it.
func written(t *testing.T, text string, hosts ...model.Host) *query.Run {
	t.Helper()
	var v notation.Run
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if err := v.Compile(); err != nil {
		t.Fatal(err)
	}
	v.Meta.Hosts = hosts
	first, last, _ := v.Store.Span()
	return query.Over(v.Meta, v.Store, first, last)
}
