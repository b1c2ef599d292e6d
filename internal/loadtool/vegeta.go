package loadtool

import (
	"strings"

	"plimsoll/internal/lazy"
)

var vegetaLines = []line{
	says(`^Requests +\[total, rate(?:, throughput)?\] +(\d+), (\S+?)(?:,|$)`, func(s *summary, m []string) { s.Requests, s.RPS = count(m[1]), number(m[2]) }),
	says(`^Duration +\[total, attack, wait\] +(\S+?),`, func(s *summary, m []string) { s.Seconds = duration(m[1]) }),
	says(`^Latencies +\[(.+)\] +(.+)`, func(s *summary, m []string) {
		values := strings.Split(m[2], ", ")
		for i, name := range strings.Split(m[1], ", ") {
			if i >= len(values) {
				break
			}
			switch x := duration(values[i]); name {
			case "mean":
				s.mean(x)
			case "max":
				s.max(x)
			default:
				s.percentile(number(name), x) // "min" is no number
			}
		}
	}),
	says(`^Bytes In +\[total, mean\] +(\d+),`, func(s *summary, m []string) { s.Bytes = count(m[1]) }),
	says(`^Status Codes +\[code:count\] +(.*)`, func(s *summary, m []string) {
		for pair := range strings.FieldsSeq(m[1]) {
			code, n, _ := strings.Cut(pair, ":")
			if class := classOf(code); class != "" {
				s.status(class, count(n))
			} else if code == "0" {
				s.failure("other", count(n)) // finishVegeta may know more
			}
		}
	}),
	says(`^Error Set:`, func(s *summary, _ []string) { s.section, s.whole = failures, true }),
	says(`^(.+)`, func(s *summary, m []string) {
		// A status of 4xx or 5xx is in the set, too, as that reply's line.
		if s.section == failures && !statusLine().MatchString(m[1]) && len(s.ErrorsSeen) < len(kinds)+1 {
			s.seen(kindOf(m[1]))
		}
	}),
}

var statusLine = lazy.Regexp(`^\d{3} `)

// finishVegeta says of which kind the errors were, if there was one alone.
func finishVegeta(s *summary) {
	if s.Status != nil || s.Errors != nil {
		byOutcome(s)
	}
	if n := s.Errors["other"]; n > 0 && len(s.ErrorsSeen) == 1 {
		s.Errors = map[string]int64{s.ErrorsSeen[0]: n}
		s.ErrorsSeen = nil
	}
}

var vegetaBegins = lazy.Regexp(`^Requests +\[total, rate`)
