package tidy

import (
	"slices"
	"strings"
	"testing"
)

// rooms is the architecture: which room may import which, the ground floor
// first. A room may name only rooms written above it, so imports run one way.
// The folders beneath a room belong to it, unless they stand here themselves.
// The first, internal/lazy, knows nothing of this program, and all may use it.
//
// DO NOT CHANGE THIS TABLE TO MEND A BUILD. A new arrow is a decision; it
// belongs into ARCHITECTURE.md first.
const rooms = `
internal/lazy:
rules:
internal/layout:
internal/input:
internal/secret:
internal/privilege:
internal/model:          internal/secret
internal/clock:          internal/model
internal/orphans:
internal/record:         internal/model
internal/record/writer:  internal/model internal/record internal/secret
internal/loadtool:       internal/model
internal/load:           internal/clock internal/input internal/model internal/secret
internal/host:           internal/layout internal/model
internal/service:        internal/host
internal/probe:          internal/layout internal/model internal/host internal/service
internal/change:         internal/layout internal/host internal/service
internal/capture:        internal/model
internal/trace:          internal/model internal/layout internal/privilege internal/secret internal/host
internal/record/notation: internal/model internal/record
internal/query:          internal/model internal/record
internal/ruleset:        internal/layout internal/model internal/query
internal/diagnose:       internal/layout internal/model internal/query internal/ruleset
internal/rulesuite:      internal/model internal/record internal/record/notation internal/query internal/ruleset internal/diagnose
internal/ssh:            internal/layout
internal/inventory:
internal/remote:         internal/layout internal/model internal/record internal/secret
internal/packets:        internal/model internal/record internal/capture
internal/compare:        internal/layout internal/model internal/record
internal/export:         internal/model internal/record
internal/breakdown:      internal/model internal/record internal/query
internal/bill:           internal/model internal/query internal/ruleset internal/layout
internal/collect:        internal/clock internal/model internal/record/writer internal/load internal/host internal/probe internal/capture internal/trace
internal/session:        internal/model internal/orphans internal/secret internal/record internal/record/writer internal/loadtool internal/load internal/trace internal/collect
internal/tune:           internal/model internal/change internal/compare
internal/flame:          internal/layout
internal/report:         internal/layout internal/model
internal/bucket:         internal/input internal/record internal/record/writer
internal/page/style:
internal/page:           internal/page/style internal/layout internal/model internal/record internal/query internal/ruleset internal/flame internal/report
internal/serve:          internal/page/style internal/input internal/layout
internal/exporter:       internal/input internal/layout internal/model internal/secret internal/trace internal/collect internal/export internal/serve
internal/flight:         internal/layout internal/model internal/secret internal/record/writer internal/collect
internal/live:           internal/model internal/record internal/record/writer
internal/judge:          internal/model internal/record internal/record/writer internal/query internal/ruleset internal/diagnose internal/breakdown internal/bill internal/flame internal/layout internal/report
lab:
internal/lab:            internal/layout internal/model internal/host internal/record internal/record/writer
internal/tidy:
scripts:
bench:                  internal/layout internal/page internal/model internal/record internal/record/writer internal/trace internal/collect internal/exporter internal/flight
cmd/plimsoll:            *
`

// table returns the rooms in their order, and what each may import.
func table(t *testing.T) (order []string, may map[string][]string) {
	t.Helper()
	may = map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(rooms), "\n") {
		room, list, _ := strings.Cut(line, ":")
		allowed := strings.Fields(list)
		if len(allowed) == 1 && allowed[0] == "*" {
			allowed = slices.Clone(order)
		}
		for _, a := range allowed {
			if !slices.Contains(order, a) {
				t.Fatalf("room %s names %s, which is not written above it", room, a)
			}
		}
		order, may[room] = append(order, room), append(allowed, "internal/lazy")
	}
	return order, may
}

// roomOf returns the room to which a folder belongs, "" for none.
func roomOf(folder string, order []string) string {
	best := ""
	for _, r := range order {
		if (folder == r || strings.HasPrefix(folder, r+"/")) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

func TestRoomsImportOneWay(t *testing.T) {
	order, may := table(t)
	lived := map[string]bool{}
	for _, s := range sources(t) {
		room := roomOf(s.folder, order)
		if room == "" {
			t.Errorf("%s lies in no room; give its folder a line in the table, or move it", s.path)
			continue
		}
		lived[room] = true
		if s.test {
			continue // a test may use other rooms to make what its own room reads
		}
		for _, imp := range s.imports {
			other, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if to := roomOf(other, order); to != room && !slices.Contains(may[room], to) {
				t.Errorf("%s: %s may not import %s", s.path, room, other)
			}
		}
	}
	for _, r := range order {
		if !lived[r] {
			t.Errorf("the table names %s, and there is no such room", r)
		}
	}
}
