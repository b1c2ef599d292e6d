package loadtool

import "plimsoll/internal/lazy"

const abStatus = "not 2xx"

// ab's times are whole milliseconds but for the mean.
var abLines = []line{
	says(`^Concurrency Level: +(\d+)`, func(s *summary, m []string) { s.Connections = count(m[1]) }),
	says(`^Time taken for tests: +(\S+) seconds`, func(s *summary, m []string) { s.Seconds = number(m[1]) }),
	says(`^Complete requests: +(\d+)`, func(s *summary, m []string) { s.Requests = count(m[1]) }),
	says(`^Failed requests: +(\d+)`, func(s *summary, m []string) { s.Failed = count(m[1]) }),
	says(`^ +\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)`, func(s *summary, m []string) {
		for i, kind := range abErrors {
			s.failure(kind, count(m[i+1]))
		}
	}),
	says(`^Write errors: +(\d+)`, func(s *summary, m []string) { s.failure("write", count(m[1])) }),
	says(`^Non-2xx responses: +(\d+)`, func(s *summary, m []string) { s.status(abStatus, count(m[1])) }),
	says(`^Total transferred: +(\d+) bytes`, func(s *summary, m []string) { s.Bytes = count(m[1]) }),
	says(`^Requests per second: +(\S+)`, func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(`^Time per request: +(\S+) \[ms\] \(mean\)`, func(s *summary, m []string) { s.mean(millis(m[1])) }),
	says(`^Transfer rate: `, func(s *summary, _ []string) { s.whole = true }),
	says(`^ +(\d+)% +(\d+)`, func(s *summary, m []string) { s.percentile(number(m[1]), millis(m[2])) }),
}

var abErrors = []string{"connect", "read", "length", "other"}

// finishAB adds the zeros of which ab prints nothing.
func finishAB(s *summary) {
	s.noReplies()
	if !s.whole || s.Failed == nil {
		return
	}
	s.failure("write", new(int64(0)))
	s.status(abStatus, new(int64(0)))
	if *s.Failed == 0 {
		for _, kind := range abErrors {
			s.failure(kind, new(int64(0)))
		}
	}
}

var abBegins = lazy.Regexp(`^Server Software: `)
