package loadtool

import "plimsoll/internal/lazy"

const (
	wrkStatus = "4xx or 5xx"
	asSent    = "as sent" // the section of wrk2 --u_latency that is not corrected
)

// wrk prints nothing of what did not happen; its last line tells that it got there.
var wrkLines = []line{
	says(`^ +\d+ threads and (\d+) connections`, func(s *summary, m []string) { s.Connections = count(m[1]) }),
	says(`^ +Latency +(\S+) +\S+ +(\S+) +\S+%$`, func(s *summary, m []string) {
		s.mean(duration(m[1]))
		s.max(duration(m[2]))
	}),
	says(`^ +Latency Distribution \(HdrHistogram - Uncorrected`, func(s *summary, _ []string) { s.section = asSent }),
	says(`^ *(\d+(?:\.\d+)?)% +(\S+)$`, func(s *summary, m []string) {
		if s.section != asSent {
			s.percentile(number(m[1]), duration(m[2]))
		}
	}),
	says(`^ +(\d+) requests in (\S+), ([\d.]+)([KMGTP]?B) read`, func(s *summary, m []string) {
		s.Requests, s.Seconds, s.Bytes = count(m[1]), duration(m[2]), size(m[3], m[4], sizes)
	}),
	says(`^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`, func(s *summary, m []string) {
		for i, kind := range wrkErrors {
			s.failure(kind, count(m[i+1]))
		}
	}),
	says(`^ +Non-2xx or 3xx responses: (\d+)`, func(s *summary, m []string) { s.status(wrkStatus, count(m[1])) }),
	says(`^Requests/sec: +(\S+)`, func(s *summary, m []string) { s.RPS = number(m[1]) }),
	says(`^Transfer/sec: `, func(s *summary, _ []string) { s.whole = true }),
}

var wrkErrors = []string{"connect", "read", "write", "timeout"}

func finishWrk(s *summary) {
	s.noReplies()
	if !s.whole || s.Requests == nil {
		return
	}
	for _, kind := range wrkErrors {
		s.failure(kind, new(int64(0)))
	}
	s.status(wrkStatus, new(int64(0)))
	s.Good = new(max(*s.Requests-s.Status[wrkStatus], 0))
}

var wrkBegins = lazy.Regexp(`^Running \S+ test @ `)
