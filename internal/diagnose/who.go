package diagnose

import (
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// counters are who counts what is read under a name that begins so, the longest beginnings first; all else is the kernel's.
var counters = []struct{ name, who string }{
	{"plimsoll_service_log_", "the service's log"},
	{"plimsoll_phpfpm_log_", "PHP-FPM's log"},
	{"plimsoll_capture_", "the captured packets"},
	{"plimsoll_load_", "the load"},
	{"plimsoll_nginx_", "nginx"}, {"nginx_", "nginx"},
	{"plimsoll_phpfpm_", "PHP-FPM"}, {"phpfpm_", "PHP-FPM"},
	{"plimsoll_mysql_", "MariaDB"}, {"mysql_", "MariaDB"},
	{"plimsoll_postgres_", "PostgreSQL"}, {"pg_", "PostgreSQL"},
	{"plimsoll_redis_", "Redis"}, {"redis_", "Redis"},
	{"plimsoll_memcached_", "memcached"}, {"memcached_", "memcached"},
	{"haproxy_", "HAProxy"}, {"varnish_", "Varnish"},
}

// kernel counts what no service tells of itself.
const kernel = "the kernel"

// countedBy tells who counted what the clues that hold were measured by: a reader believes the kernel's own counter sooner than a tool.
// Of what a measure names, and the run has nothing of (a load, where there was none), nobody counted any.
func (r *run) countedBy(rule *ruleset.Rule, clues []model.Clue) {
	for i := range clues {
		if clues[i].Truth != model.True {
			continue
		}
		at := slices.IndexFunc(rule.Clues, func(c ruleset.Clue) bool { return c.ID == clues[i].ID })
		if at < 0 {
			continue
		}
		for _, s := range rule.Clues[at].MeasureExpr.Selectors() {
			if who := counter(s.Name); !slices.Contains(clues[i].By, who) && r.Has(s.Name) {
				clues[i].By = append(clues[i].By, who)
			}
		}
		slices.Sort(clues[i].By)
	}
}

// counter is who counts a series.
func counter(series string) string {
	for _, c := range counters {
		if strings.HasPrefix(series, c.name) {
			return c.who
		}
	}
	return kernel
}
