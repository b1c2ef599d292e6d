package loadtool

import "plimsoll/internal/lazy"

const functionTime = "function time"

// fortio prints several histograms, of which the function's time is that of requests.
var fortioLines = []line{
	says(`^Starting at .* with (\d+) thread\(s\)`, func(s *summary, m []string) { s.Connections = count(m[1]) }),
	says(`^Ended after (\S+) : (\d+) calls`, func(s *summary, m []string) { s.Seconds, s.Requests = duration(m[1]), count(m[2]) }),
	says(`^Aggregated Function Time : count \d+ avg (\S+) \+/- \S+ min \S+ max (\S+)`, func(s *summary, m []string) {
		s.section = functionTime
		s.mean(number(m[1]))
		s.max(number(m[2]))
	}),
	says(`^(?:Aggregated|Error cases|Connection time|Sockets used)`, func(s *summary, _ []string) { s.section = "" }),
	says(`^# target (\S+)% (\S+)`, func(s *summary, m []string) {
		if s.section == functionTime {
			s.percentile(number(m[1]), number(m[2]))
		}
	}),
	says(`^Code +(-?\d+) : (\d+) `, func(s *summary, m []string) {
		if class := classOf(m[1]); class != "" {
			s.status(class, count(m[2]))
		} else {
			s.failure("other", count(m[2])) // -1: no reply, and not why
		}
	}),
	says(`^Response Body/Total Sizes : .* sum (\d+)`, func(s *summary, m []string) { s.Bytes = count(m[1]) }),
	says(`^All done (\d+) calls .* (\S+) qps`, func(s *summary, m []string) {
		s.Requests, s.RPS, s.whole = count(m[1]), number(m[2]), true
	}),
}

var fortioBegins = lazy.Regexp(`^Fortio \S+ running at `)
