package loadtool

import (
	"strings"

	"plimsoll/internal/lazy"
)

var k6Lines = []line{
	says(`^ +http_req_duration\.*: (.+)`, func(s *summary, m []string) {
		for pair := range strings.FieldsSeq(m[1]) {
			name, value, _ := strings.Cut(pair, "=")
			switch x := duration(value); {
			case name == "avg":
				s.mean(x)
			case name == "max":
				s.max(x)
			case name == "med":
				s.percentile(new(50.0), x)
			case strings.HasPrefix(name, "p("):
				s.percentile(number(strings.Trim(name, "p()")), x)
			}
		}
	}),
	says(`^ +http_req_failed\.*: +\S+% +(\d+) out of`, func(s *summary, m []string) { s.Failed = count(m[1]) }),
	says(`^ +http_req_failed\.*: +\S+% +✓ (\d+) +✗ `, func(s *summary, m []string) { s.Failed = count(m[1]) }), // before 1.0
	says(`^ +http_reqs\.*: +(\d+) +(\S+)/s`, func(s *summary, m []string) {
		s.Requests, s.RPS, s.whole = count(m[1]), number(m[2]), true
	}),
	says(`^ +data_received\.*: +(\S+) (k?B|[MGTP]B) `, func(s *summary, m []string) { s.Bytes = size(m[1], m[2], thousands) }),
	says(`^running \((\S+)\), \d+/\d+ VUs`, func(s *summary, m []string) { s.Seconds = duration(m[1]) }),
}

func finishK6(s *summary) {
	if s.Requests != nil && s.Failed != nil && *s.Failed <= *s.Requests {
		s.Good = new(*s.Requests - *s.Failed)
	}
	if l := s.Latency; l != nil && l.Max != nil && *l.Max == 0 {
		s.Latency = nil // no request got as far as being sent
	}
}

var k6Begins = lazy.Regexp(`^ +(execution: |█ TOTAL RESULTS)`)
