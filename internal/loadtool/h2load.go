package loadtool

import (
	"strings"

	"plimsoll/internal/lazy"
)

var h2loadLines = []line{
	says(`^spawning thread #\d+: (\d+) total client\(s\)`, func(s *summary, m []string) {
		if n := count(m[1]); n != nil && s.Connections != nil {
			s.Connections = new(*s.Connections + *n)
		} else {
			s.Connections = n
		}
	}),
	says(`^finished in (\S+), (\S+) req/s`, func(s *summary, m []string) { s.Seconds, s.RPS = duration(m[1]), number(m[2]) }),
	says(`^requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`, func(s *summary, m []string) {
		s.Requests, s.Good, s.Failed = count(m[1]), count(m[2]), count(m[3])
		errored, timeout := count(m[4]), count(m[5])
		s.failure("timeout", timeout)
		if errored != nil && timeout != nil && *errored >= *timeout {
			s.failure("other", new(*errored-*timeout))
		}
	}),
	says(`^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`, func(s *summary, m []string) {
		for i, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
			s.status(class, count(m[i+1]))
		}
	}),
	says(`^traffic: \S+ \((\d+)\) total`, func(s *summary, m []string) { s.Bytes = count(m[1]) }),
	// Newer ones have more columns, so these go by name. "+/- sd" is the last.
	says(`^ +(min +max .*)\+/- sd`, func(s *summary, m []string) { s.columns = strings.Fields(m[1]) }),
	says(`^time for request: +(.+)`, func(s *summary, m []string) {
		values := strings.Fields(m[1])
		for i, name := range s.columns {
			if i >= len(values) {
				break
			}
			switch x := duration(values[i]); name {
			case "mean":
				s.mean(x)
			case "max":
				s.max(x)
			case "median":
				s.percentile(new(50.0), x)
			default:
				if p, ok := strings.CutPrefix(name, "p"); ok {
					s.percentile(number(p), x)
				}
			}
		}
	}),
	says(`^req/s +:`, func(s *summary, _ []string) { s.whole = true }),
}

func finishH2load(s *summary) {
	if l := s.Latency; l != nil && l.Max != nil && *l.Max == 0 {
		s.Latency = nil // no reply
	}
}

var h2loadBegins = lazy.Regexp(`^starting benchmark\.\.\.`)
