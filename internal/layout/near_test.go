package layout

import "testing"

func TestNearest(t *testing.T) {
	list := []string{"net.conntrack.table_full", "net.listen.queue_full", "cpu.saturated", "cpu.capacity", "srv"}
	for word, want := range map[string]string{
		"net.conntrack.tablefull":   "net.conntrack.table_full",
		"net.conntrack.table_fulll": "net.conntrack.table_full",
		"cpu.staurated":             "cpu.saturated",
		"queue_full":                "net.listen.queue_full",
		"conntrack":                 "net.conntrack.table_full",
		"svr":                       "srv",
		"CPU.capacity":              "cpu.capacity",
		"net.contrack.full":         "net.conntrack.table_full",
		"net.conntrack.fulll":       "net.conntrack.table_full",
		"net.lisen.queue":           "net.listen.queue_full",
		"net.nothing.full":          "",
		"something else":            "",
		"x":                         "",
		"":                          "",
	} {
		if got := Nearest(word, list); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	commands := []string{"run", "runs", "rules", "report"}
	for word, want := range map[string]string{"rul": "rules", "ruls": "rules", "rn": "run", "run": "run", "rnus": "runs", "repo": "report"} {
		if got := Nearest(word, commands); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
