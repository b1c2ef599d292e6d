package loadtool

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// count reads a whole number; nil when it is none.
func count(word string) *int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// number reads a number that can be measured: finite and not below zero. A comma
// may stand before the decimals, as in some languages.
func number(word string) *float64 {
	x, err := strconv.ParseFloat(strings.Replace(word, ",", ".", 1), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return nil
	}
	return &x
}

// millis reads a number of milliseconds, in seconds.
func millis(word string) *float64 {
	x := number(word)
	if x == nil {
		return nil
	}
	return new(*x / 1e3)
}

// duration reads a time with its unit, "1.04ms", "1m2.5s", "15.0000 secs", in seconds.
func duration(text string) *float64 {
	text = strings.ReplaceAll(text, " ", "")
	text = strings.TrimSuffix(strings.TrimSuffix(text, "ecs"), "ec")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return nil
	}
	return new(float64(d) / 1e9) // d.Seconds adds two parts, and 1.14s would be 1.1400000000000001
}

var sizes = map[string]float64{
	"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50,
}

// thousands are the sizes of tools that count by the thousand.
var thousands = map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}

// size reads a number of bytes in a unit.
func size(word, unit string, units map[string]float64) *int64 {
	factor, ok := units[unit]
	if !ok {
		return nil
	}
	x := number(word)
	if x == nil || *x*factor >= 1<<62 {
		return nil
	}
	return new(int64(math.Round(*x * factor)))
}

func (s *summary) latency() *model.ToolLatency {
	if s.Latency == nil {
		s.Latency = &model.ToolLatency{}
	}
	return s.Latency
}

func (s *summary) mean(x *float64) {
	if x != nil {
		s.latency().Mean = x
	}
}

func (s *summary) max(x *float64) {
	if x != nil {
		s.latency().Max = x
	}
}

// percentile notes one, in its order. The hundredth is the maximum.
func (s *summary) percentile(percent, seconds *float64) {
	switch {
	case percent == nil || seconds == nil || *percent > 100:
	case *percent == 100:
		if s.latency().Max == nil {
			s.latency().Max = seconds
		}
	default:
		l := s.latency()
		i, told := slices.BinarySearchFunc(l.Percentiles, *percent, func(p model.ToolPercentile, x float64) int { return cmp.Compare(p.Percent, x) })
		if !told && len(l.Percentiles) < 32 {
			l.Percentiles = slices.Insert(l.Percentiles, i, model.ToolPercentile{Percent: *percent, Seconds: *seconds})
		}
	}
}

// status counts replies of a status code or of a class of them.
func (s *summary) status(class string, n *int64) {
	if n == nil {
		return
	}
	if s.Status == nil {
		s.Status = map[string]int64{}
	}
	add(s.Status, class, *n)
}

// failure counts errors of a kind.
func (s *summary) failure(kind string, n *int64) {
	if n == nil {
		return
	}
	if s.Errors == nil {
		s.Errors = map[string]int64{}
	}
	add(s.Errors, kind, *n)
}

// seen notes that there were errors of a kind.
func (s *summary) seen(kind string) {
	if !slices.Contains(s.ErrorsSeen, kind) {
		s.ErrorsSeen = append(s.ErrorsSeen, kind)
		slices.Sort(s.ErrorsSeen)
	}
}

// add adds n, and stays at the largest number there is.
func add(to map[string]int64, key string, n int64) {
	if n > math.MaxInt64-to[key] {
		to[key] = math.MaxInt64
		return
	}
	to[key] += n
}

// classOf is the class of a status code, "" when it is none.
func classOf(code string) string {
	if len(code) == 3 && code[0] >= '1' && code[0] <= '5' {
		return code[:1] + "xx"
	}
	return ""
}

// kinds of error by what the tools, or the libraries that they rest on, say of it;
// the first that fits counts.
var kinds = []struct {
	kind  string
	words []string
}{
	{"connect", []string{"dial tcp", "connection refused", "no route to host", "network is unreachable", "dialing to the given tcp address"}},
	{"timeout", []string{"timeout", "timed out", "deadline"}},
	{"write", []string{"write tcp", "broken pipe"}},
	{"read", []string{"eof", "read tcp", "connection reset", "connection closed", "server closed connection"}},
}

// kindOf is the kind of an error by its text.
func kindOf(text string) string {
	text = strings.ToLower(text)
	for _, k := range kinds {
		if slices.ContainsFunc(k.words, func(w string) bool { return strings.Contains(text, w) }) {
			return k.kind
		}
	}
	return "other"
}

// byOutcome is for tools that count each request once, as a reply of some status or
// as an error: it adds them up.
func byOutcome(s *summary) {
	if !s.whole {
		return
	}
	sum := map[string]int64{}
	for class, n := range s.Status {
		add(sum, "all", n)
		if class == "1xx" || class == "2xx" || class == "3xx" {
			add(sum, "good", n)
		}
	}
	for _, n := range s.Errors {
		add(sum, "all", n)
	}
	if s.Requests == nil {
		s.Requests = new(sum["all"])
	}
	s.Good = new(sum["good"])
}

// noReplies takes back a latency that nobody has: some tools print zeros then.
func (s *summary) noReplies() {
	if s.Requests != nil && *s.Requests == 0 {
		s.Latency = nil
	}
}
