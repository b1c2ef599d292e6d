package diagnose

import (
	"os"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// A line of imports is nobody's who is a user: those who stand there stand longer than users waited in all. It is told of the
// rules as they are, since they say who is one.
func TestNobodyOfUsersIsThere(t *testing.T) {
	set, err := ruleset.Load(os.DirFS("../../rules"))
	if err != nil {
		t.Fatal(err)
	}
	// 100 requests a second, of 5 ms each, from users at port 80; ten a second at port 9001
	const load = `
    - 'plimsoll_load_outcomes_total{host="c",phase="hold",outcome="2xx"} 0+100x10'
    - 'plimsoll_load_latency_seconds{host="c",phase="hold",kind="waited",quantile="0.99"} 0.02x10'
    - 'plimsoll_load_wait_seconds_total{host="c",phase="hold"} 0+0.5x10'
`
	const users = `
    - 'plimsoll_requests_begun_total{host="s",listen="0.0.0.0:80"} 0+100x10'
    - 'plimsoll_requests_unread_seconds_bucket{host="s",listen="0.0.0.0:80",groupname="nginx",le="0.016384"} 0+100x10'
    - 'plimsoll_requests_unread_seconds_bucket{host="s",listen="0.0.0.0:80",groupname="nginx",le="+Inf"} 0+100x10'
    - 'plimsoll_requests_in_hand_seconds_bucket{host="s",listen="0.0.0.0:80",groupname="nginx",le="0.016384"} 0+100x10'
    - 'plimsoll_requests_in_hand_seconds_bucket{host="s",listen="0.0.0.0:80",groupname="nginx",le="+Inf"} 0+100x10'
    - 'plimsoll_requests_in_hand_seconds_sum{host="s",listen="0.0.0.0:80",groupname="nginx"} 0+0.5x10'
    - 'plimsoll_requests_in_hand_seconds_count{host="s",listen="0.0.0.0:80",groupname="nginx"} 0+100x10'
    - 'plimsoll_requests_failed_total{host="s",listen="0.0.0.0:80",how="left"} 0x10'
`
	const job = `
    - 'plimsoll_requests_upstream_wait_seconds_count{host="s",groupname="job",dst="127.0.0.1:9001"} 0+10x10'
`
	imports := func(seconds string) string {
		return `
    - 'plimsoll_requests_begun_total{host="s",listen="127.0.0.1:9001"} 0+9x10'
    - 'plimsoll_requests_in_hand_seconds_sum{host="s",listen="127.0.0.1:9001",groupname="php-fpm8.2"} 0+` + seconds + `x10'
`
	}
	for name, c := range map[string]struct {
		series  string
		program string
		aside   bool
	}{
		"each takes longer than users waited":                {load + imports("4"), "", true},
		"the time is less than twice what users waited":      {load + imports("0.9"), "", false},
		"users may have waited as long":                      {load + imports("0.1"), "", false},
		"who asks about one program asks about its own line": {load + imports("4"), "suppliers", false},
		"without a load a job asks there":                    {users + job + imports("4"), "", true},
		"without a load those who ask there may be users":    {users + imports("400"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := written(t, "  series:"+c.series)
			v.Meta.Plan.Program = c.program
			findings := []model.Finding{{Kind: ruleset.Cause, Answer: model.Confirmed, Subject: map[string]string{"host": "s", "listen": "127.0.0.1:9001", "pool": "import"}}}
			newRun(over(v), asItIs).setAside(findings, set)
			if got := findings[0].Aside; (got != "") != c.aside {
				t.Errorf("aside: %q", got)
			}
		})
	}
}

// A finding that is about no listener by its subject is about the one that its clue "where" names.
func TestAboutListener(t *testing.T) {
	line := map[string]string{"listen": "127.0.0.1:9001"}
	for want, f := range map[string]model.Finding{
		"0.0.0.0:80":     {Subject: map[string]string{"listen": "0.0.0.0:80"}, Clues: []model.Clue{{ID: "where", Truth: model.True, Names: line}}},
		"127.0.0.1:9001": {Subject: map[string]string{"proxy": "import"}, Clues: []model.Clue{{ID: "limit"}, {ID: "where", Truth: model.True, Names: line}}},
		"":               {Subject: map[string]string{"proxy": "import"}, Clues: []model.Clue{{ID: "where", Truth: model.False, Names: line}, {ID: "server", Truth: model.True, Names: line}}},
	} {
		if got := aboutListener(f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
