package loadtool

import (
	"strings"

	"plimsoll/internal/lazy"
)

// oha has a Success rate of replies of any status.
var ohaLines = []line{
	says(`^  Total:\s+(\S+) (.+)`, func(s *summary, m []string) { s.Seconds = ohaTime(m[1], m[2]) }),
	says(`^  Slowest:\s+(\S+) (.+)`, func(s *summary, m []string) { s.max(ohaTime(m[1], m[2])) }),
	says(`^  Average:\s+(\S+) (.+)`, func(s *summary, m []string) { s.mean(ohaTime(m[1], m[2])) }),
	says(`^  Requests/sec:\s+(\S+)`, func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(`^  Total data:\s+(\S+) ([KMGTP]?i?B)`, func(s *summary, m []string) { s.Bytes = size(m[1], m[2], sizes) }),
	says(`^Response time distribution:`, func(s *summary, _ []string) { s.section = percentiles }),
	says(`^Status code distribution`, func(s *summary, _ []string) { s.section, s.whole = statuses, true }),
	says(`^Error distribution`, func(s *summary, _ []string) { s.section = failures }),
	says(`^\S`, func(s *summary, _ []string) { s.section = "" }),
	says(`^ +(\d+\.\d+)% in (\S+) (.+)`, func(s *summary, m []string) {
		if s.section == percentiles {
			s.percentile(number(m[1]), ohaTime(m[2], m[3]))
		}
	}),
	says(`^ +\[(\d+)\] (.+)`, func(s *summary, m []string) {
		switch {
		case s.section == statuses && classOf(m[1]) != "":
			s.status(classOf(m[1]), count(leading().FindString(m[2])))
		case s.section == failures && !strings.HasPrefix(m[2], ohaUnfinished):
			s.failure(kindOf(m[2]), count(m[1]))
		}
	}),
}

// ohaUnfinished is what oha says of requests under way when its time was over.
const ohaUnfinished = "aborted due to deadline"

// ohaUnits is how many of its units a second has; there is one of ten seconds, too.
var ohaUnits = map[string]float64{"ns": 1e9, "us": 1e6, "ms": 1e3, "sec": 1, "10 sec": 0.1, "min": 1. / 60, "10 min": 1. / 600, "hr": 1. / 3600}

// ohaTime reads a time in seconds.
func ohaTime(word, unit string) *float64 {
	x, a := number(word), ohaUnits[unit]
	if x == nil || a == 0 {
		return nil
	}
	return new(*x / a)
}

var ohaBegins = lazy.Regexp(`^  Success rate:`)
