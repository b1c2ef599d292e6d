package loadtool

import "plimsoll/internal/lazy"

var bombardierLines = []line{
	says(`^Bombarding .* using (\d+) connection\(s\)`, func(s *summary, m []string) { s.Connections = count(m[1]) }),
	says(`^ +Reqs/sec +(\S+)`, func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(`^ +Latency +(\S+) +\S+ +(\S+)`, func(s *summary, m []string) {
		s.mean(duration(m[1]))
		s.max(duration(m[2]))
	}),
	says(`^ +(\d+(?:\.\d+)?)% +(\S+)$`, func(s *summary, m []string) { s.percentile(number(m[1]), duration(m[2])) }),
	says(`^ +1xx - (\d+), 2xx - (\d+), 3xx - (\d+), 4xx - (\d+), 5xx - (\d+)`, func(s *summary, m []string) {
		for i, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
			s.status(class, count(m[i+1]))
		}
	}),
	says(`^ +others - (\d+)`, func(s *summary, m []string) { s.failure("other", count(m[1])) }),
	says(`^ +Errors:`, func(s *summary, _ []string) { s.section = failures }),
	says(`^ +Throughput: `, func(s *summary, _ []string) { s.whole = true }),
	says(`^ +(.+) - (\d+)$`, func(s *summary, m []string) {
		n := count(m[2])
		if s.section != failures || n == nil {
			return
		}
		// These are the "others", one by one.
		if kind := kindOf(m[1]); kind != "other" && s.Errors["other"] >= *n {
			s.Errors["other"] -= *n
			s.failure(kind, n)
		}
	}),
}

var bombardierBegins = lazy.Regexp(`^Bombarding `)
