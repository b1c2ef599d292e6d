package report

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// What was kept is all listed with its last value, and all of it has its price.
func TestTheEndOfAWalkNamesAndPricesAllThatWasKept(t *testing.T) {
	some, more := 1.0*(1<<30), 2.0*(1<<30)
	raise := func(outcome model.TuneOutcome, to string, memory *float64) model.TuneStep {
		return model.TuneStep{Fix: &model.TuneFix{Risk: "medium", Costs: "connections behind them", MemoryBytes: memory, Outcome: outcome,
			Changes: []model.TuneChange{{Kind: "phpfpm", What: "phpfpm pm.max_children www", Host: "server", New: to, Restart: "reload", Files: []string{"/etc/php/www.conf"}}}}}
	}
	ports := model.TuneStep{Fix: &model.TuneFix{Risk: "low", Costs: "a service may find its port taken", Outcome: model.Kept,
		Changes: []model.TuneChange{{Kind: "sysctl", What: "net.ipv4.ip_local_port_range", Host: "server", New: "1024 65535"}}}}
	walk := model.Tuning{Steps: []model.TuneStep{raise(model.Kept, "16", &some), ports, raise(model.Kept, "201", &more), raise(model.Undone, "999", &more)},
		Last: []model.TuneLine{{File: "/etc/sysctl.d/90-plimsoll.conf", Line: "net.ipv4.ip_local_port_range = 1024 65535"}}}
	var b bytes.Buffer
	if err := Tuning(&b, walk, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	_, end, _ := strings.Cut(b.String(), "TO MAKE THIS LAST")
	for _, want := range []string{"= 1024 65535", "/etc/php/www.conf: stands there already", "phpfpm pm.max_children www on server: 201", "medium to low risk",
		"up to 3 GiB more memory: phpfpm pm.max_children www", "a service may find its port taken", "connections behind them", "phpfpm on server"} {
		if !strings.Contains(end, want) {
			t.Errorf("no %q in\n%s", want, end)
		}
	}
	for _, never := range []string{": 16", "999"} {
		if strings.Contains(end, never) {
			t.Errorf("%q in\n%s", never, end)
		}
	}
}
