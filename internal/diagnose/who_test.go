package diagnose

import (
	"slices"
	"testing"
)

// Who counted is told of what there is in the run, and of no source that a measure would take in its place; of a clue that does not hold nobody.
func TestWhoCounted(t *testing.T) {
	const have = `
  series:
    - 'limit_size{host="a"} 100x9'
    - 'used_size{host="a"} 96x9'
    - 'nginx_refused_total{host="a",cpu="0"} 0+1x9'
`
	for refused, want := range map[string][]string{
		"increase(nginx_refused_total[$window])":                                                         {"nginx"},
		"increase(nginx_refused_total[$window]) or on () increase(plimsoll_load_refused_total[$window])": {"nginx"},
		"increase(nginx_refused_total[$window]) + on (host) group_left () (0 * used_size)":               {"nginx", "the kernel"},
		"0 * increase(nginx_refused_total[$window])":                                                     nil,
	} {
		rs := goodSet(t, "increase(refused_total[$window])", refused)
		findings, err := Findings(over(written(t, have)), rs.Get("x.good"))
		if err != nil || len(findings) != 1 || len(findings[0].Clues) != 2 {
			t.Fatal(findings, err)
		}
		if got := findings[0].Clues[1].By; !slices.Equal(got, want) {
			t.Errorf("%s: counted by %q, want %q", refused, got, want)
		}
	}
	for series, want := range map[string]string{
		"plimsoll_service_log_errors_total": "the service's log", "plimsoll_load_outcomes_total": "the load", "plimsoll_phpfpm_pool_info": "PHP-FPM",
		"pg_stat_database_blks_read": "PostgreSQL", "plimsoll_requests_in_hand": kernel, "node_cpu_seconds_total": kernel,
	} {
		if got := counter(series); got != want {
			t.Errorf("%s: counted by %s, want %s", series, got, want)
		}
	}
}
