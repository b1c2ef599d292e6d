package diagnose

import (
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// RequestRate is how many requests a second users began in a run that has no load of ours, nil where that was not seen: how busy it was, for
// whoever measures again.
func RequestRate(q *query.Run, rules ruleset.Rules) *float64 {
	if q.Meta().Plan.Load != nil {
		return nil
	}
	list, err := q.Samples("users:begun:requests / $window_seconds", rules.Known())
	if err != nil || len(list) == 0 || list[0].Value <= 0 {
		return nil
	}
	return &list[0].Value
}
