package diagnose

import (
	"fmt"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// What the rules say (records.yaml) of listeners whose requests are no users', how long these take, and of how long users waited.
const (
	othersListener = "listener:others:seconds"
	usersWaited    = "users:p99_waited:seconds"
)

// setAside notes of each cause or limit that may hold and is about a listener where none but others wait that it is
// nobody's who is a user: however true, it is not why users wait. Who asks about one program wants to know of its own.
func (r *run) setAside(findings []model.Finding, set ruleset.Rules) {
	if r.Meta().Plan.Program != "" {
		return
	}
	var others, users []query.Sample
	asked := false
	for i := range findings {
		f := &findings[i]
		if f.Subject["listen"] == "" || f.Kind != ruleset.Cause && f.Kind != ruleset.Capacity || !mayHold(*f) {
			continue
		}
		if !asked {
			others, users, asked = r.term(set, othersListener), r.term(set, usersWaited), true
		}
		at, ok := query.Largest(others, map[string]string{"host": f.Subject["host"], "listen": f.Subject["listen"]})
		felt, known := query.Largest(users, nil)
		if !ok || !known {
			continue
		}
		f.Aside = fmt.Sprintf("who waits there is no user of this service: a request there takes %s on average, and 99 of 100 users waited less than %s in all",
			layout.Micros(1e6*at.Value), layout.Micros(1e6*felt.Value))
	}
}

// term is what a shared term says, nothing where the set has none of that name.
func (r *run) term(set ruleset.Rules, name string) []query.Sample {
	expr, err := query.Parse(name, set.Known())
	if err != nil {
		return nil
	}
	return r.Ask(expr).Samples
}
