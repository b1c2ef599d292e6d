package loadtool

import "plimsoll/internal/lazy"

// The parts of a summary.
const (
	percentiles = "percentiles"
	statuses    = "statuses"
	failures    = "failures"
)

var heyLines = []line{
	says(`^  Total:\s+(\S+ secs)`, func(s *summary, m []string) { s.Seconds = duration(m[1]) }),
	says(`^  Slowest:\s+(.+)`, func(s *summary, m []string) { s.max(duration(m[1])) }),
	says(`^  Average:\s+(.+)`, func(s *summary, m []string) { s.mean(duration(m[1])) }),
	says(`^  Requests/sec:\s+(\S+)`, func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(`^  Total data:\s+(\d+) bytes`, func(s *summary, m []string) { s.Bytes = count(m[1]) }),
	says(`^Latency distribution`, func(s *summary, _ []string) { s.section = percentiles }),
	says(`^Status code distribution`, func(s *summary, _ []string) { s.section, s.whole = statuses, true }),
	says(`^Error distribution`, func(s *summary, _ []string) { s.section = failures }),
	says(`^ +(\d+)%%? in (.+)`, func(s *summary, m []string) {
		if s.section == percentiles {
			s.percentile(number(m[1]), duration(m[2]))
		}
	}),
	says(`^ +\[(\d+)\]\s+(.+)`, func(s *summary, m []string) {
		switch s.section {
		case statuses:
			if n := leading().FindString(m[2]); classOf(m[1]) != "" {
				s.status(classOf(m[1]), count(n))
			}
		case failures:
			s.failure(kindOf(m[2]), count(m[1]))
		}
	}),
}

// leading is the number with which a text begins.
var leading = lazy.Regexp(`^\d+`)

func finishHey(s *summary) {
	byOutcome(s)
	if s.Status == nil { // zeros then, and the time of no reply
		s.Latency = nil
	}
}

var heyBegins = lazy.Regexp(`^  Total:\s+\S+ secs`)
