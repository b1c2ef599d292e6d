package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/ruleset"
	"plimsoll/internal/ruleset/alerts"
	"plimsoll/rules"
)

// usualAlerts are the alerts as "rules export" writes them without flags.
func usualAlerts(t *testing.T) (ruleset.Rules, alerts.Set) {
	t.Helper()
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	w, _, _ := testWorld()
	all, err := alerts.Of(set, alertOptions(w))
	if err != nil {
		t.Fatal(err)
	}
	return set, all
}

// TestAlertsLeftOutPageIsFresh keeps the list of rules that are no alerts, with the reasons.
func TestAlertsLeftOutPageIsFresh(t *testing.T) {
	set, all := usualAlerts(t)
	left := all.LeftOut()
	var page strings.Builder
	page.WriteString("# Rules that are no alerts\n\nWhat `plimsoll rules export` leaves out, as its comments say it ([Alerts](alerts.md)). " +
		"Generated; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew.\n\n| rule | why |\n|---|---|\n")
	for _, r := range set.List {
		if why, ok := left[r.ID]; ok {
			fmt.Fprintf(&page, "| [%s](rules/%s.md) | %s |\n", r.ID, r.ID, why)
		}
	}
	fresh(t, "alerts-left-out.md", page.String())
	for _, r := range set.List {
		if _, ok := left[r.ID]; ok == slices.Contains(all.Alerts(), r.ID) {
			t.Errorf("%s: want it either among the alerts, or left out with a reason", r.ID)
		}
	}
}

// TestAlertsSilenceNoneOfThemselves: of two alerts of one host that make each other quiet, nobody would hear.
func TestAlertsSilenceNoneOfThemselves(t *testing.T) {
	_, all := usualAlerts(t)
	below := all.Silences()
	var walk func(path []string)
	walk = func(path []string) {
		for _, next := range below[path[len(path)-1]] {
			if next == path[0] {
				t.Errorf("%s: each makes the next one quiet", strings.Join(path, " → "))
			} else if len(path) < 3 {
				walk(append(slices.Clone(path), next))
			}
		}
	}
	for id := range below {
		walk([]string{id})
	}
}
