package loadtool

import (
	"strings"

	"plimsoll/internal/lazy"
)

// JMeter's lines with "=" tell of all since the start, and each replaces the one
// before; those with "+" tell of the last half minute. The first word is the
// listener's name. Decimals are written as where it runs.
var jmeterLines = []line{
	says(`^.{1,100} = +(\d+) in +(\S+) = +(\S+)/s Avg: +(\d+) Min: +\d+ Max: +(\d+) Err: +(\d+) `, func(s *summary, m []string) {
		s.Requests, s.Seconds, s.RPS, s.Failed = count(m[1]), clock(m[2]), number(m[3]), count(m[6])
		s.mean(millis(m[4]))
		s.max(millis(m[5]))
		if s.Requests != nil && s.Failed != nil && *s.Failed <= *s.Requests {
			s.Good = new(*s.Requests - *s.Failed)
		}
	}),
	says(`^\.\.\. end of run`, func(s *summary, _ []string) { s.whole = true }),
}

// clock reads "00:01:05", or "65s" as older ones print it.
func clock(text string) *float64 {
	if h, rest, ok := strings.Cut(text, ":"); ok {
		m, sec, _ := strings.Cut(rest, ":")
		text = h + "h" + m + "m" + sec + "s"
	}
	return duration(text)
}

var jmeterBegins = lazy.Regexp(`^Starting (the|standalone) test @ `)
