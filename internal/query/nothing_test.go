package query

import (
	"context"
	"testing"

	"github.com/prometheus/prometheus/promql"
)

// What is not asked of the engine has no result there either.
func TestWhatNamesNoSeriesGivesNothing(t *testing.T) {
	q := runOf(t, `
series: ['a{host="s"} 1 2 3 4 5 6 7']
windows: {hold: [2s, 6s]}
`)
	for src, may := range map[string]bool{
		`a`:                                   true,
		`a{host="other"}`:                     false,
		`a > 100`:                             true, // the engine is asked
		`none`:                                false,
		`-none`:                               false,
		`sum(none)`:                           false,
		`topk(1, none)`:                       false,
		`a and none`:                          false,
		`none / a`:                            false,
		`a * on (host) group_left() none`:     false,
		`none > 0`:                            false,
		`a or none`:                           true,
		`none or a`:                           true,
		`none or nope`:                        false,
		`a unless none`:                       true,
		`none unless a`:                       false,
		`increase(none[$window])`:             false,
		`max_over_time((a - none)[$window:])`: false,
		`label_replace(none, "x", "$1", "host", "(.)")`: false,
		`clamp_min(a, scalar(none))`:                    true,
		`time()`:                                        true,
		`1 + $window_seconds`:                           true,
		`a + 1`:                                         true,
		`none + 1`:                                      false,
		`plimsoll_machine_info`:                         false,
	} {
		e := expressionOf(t, src)
		tree, _, _, err := e.query(q.windows, q.grain)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.mayGive(tree); got != may {
			t.Errorf("%s may give something: %v, want %v", src, got, may)
		}
		if may {
			continue
		}
		query, err := q.engine.NewInstantQuery(context.Background(), q.storage, nil, q.trees.hand(tree), q.at)
		if err != nil {
			t.Fatal(err)
		}
		if res := query.Exec(context.Background()); res.Err != nil || len(res.Value.(promql.Vector)) > 0 {
			t.Errorf("%s: the engine gives %v", src, res)
		}
	}
}
