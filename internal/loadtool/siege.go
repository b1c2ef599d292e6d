package loadtool

import "plimsoll/internal/lazy"

// siege prints JSON, or with json_output = false a table with the same names.
var siegeLines = []line{
	says(siegeName("Transactions|transactions"), func(s *summary, m []string) { s.Requests = count(m[1]) }),
	says(siegeName("Elapsed time|elapsed_time"), func(s *summary, m []string) { s.Seconds = number(m[1]) }),
	says(siegeName("Data transferred|data_transferred"), func(s *summary, m []string) { s.Bytes = size(m[1], "MB", sizes) }),
	says(siegeName("Response time|response_time"), func(s *summary, m []string) { s.mean(number(m[1])) }),
	says(siegeName("Transaction rate|transaction_rate"), func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(siegeName("Successful transactions|successful_transactions"), func(s *summary, m []string) { s.Good = count(m[1]) }),
	says(siegeName("Failed transactions|failed_transactions"), func(s *summary, m []string) { s.Failed = count(m[1]) }),
	says(siegeName("Longest transaction|longest_transaction"), func(s *summary, m []string) { s.max(number(m[1])) }),
	says(siegeName("Shortest transaction|shortest_transaction"), func(s *summary, _ []string) { s.whole = true }),
}

func siegeName(names string) string { return `^[\s{]*"?(?:` + names + `)"?:\s+([\d.]+)` }

// finishSiege makes requests of transactions, which leave out what failed.
func finishSiege(s *summary) {
	s.noReplies()
	switch {
	case s.Requests == nil:
	case s.Failed == nil:
		s.Requests = nil
	default:
		sum := map[string]int64{"all": *s.Requests}
		add(sum, "all", *s.Failed)
		s.Requests = new(sum["all"])
	}
}

var siegeBegins = lazy.Regexp(siegeName("Transactions|transactions"))
