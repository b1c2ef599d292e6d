package layout

import (
	"strings"
	"testing"
)

// A known program's own setting is named, and no other's.
func TestAtOnce(t *testing.T) {
	for program, want := range map[string]string{"varnishd": "thread_pool_max=27 ", "php-fpm8.2": "pm.max_children = 53", "python3": "gunicorn", "gunicorn": "--threads 53 ", "tinyproxy": "MaxClients 53", "x": "workers or threads"} {
		if got := AtOnce(program, "53"); !strings.Contains(got, want) || program == "varnishd" && strings.Contains(got, "gunicorn") {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
