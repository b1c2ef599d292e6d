package report

import (
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// momentary are commands that show something only while requests come.
var momentary = lazy.Regexp(`\b(ss -\w*t\w* (state|dst|dport|src)|ss -t[an]+p?$|lslocks|top|htop|pidstat|vmstat|iostat|mpstat|sar|trace|strace|perf|tcpdump|jstack|py-spy|PROCESSLIST|innodb_trx|pg_stat_activity)\b|/proc/(PID|[0-9]+|\$\([^)]*\))/(task|stack|syscall|wchan)`)

// whileLoaded is what users bear of a load that is there again while a command runs, "" where it needs none of ours.
func whileLoaded(command string, plan model.Plan) string {
	const waits = ": users wait as in this measurement"
	l := plan.Load
	switch {
	case l == nil || !momentary().MatchString(command):
		return ""
	case tooShort(l):
		return "the load again for 60 s" + waits
	}
	return "the same load again" + waits
}

// tooShort says whether a load is over before a look at it can be typed.
func tooShort(l *model.LoadPlan) bool {
	return l.DurationMS > 0 && l.DurationMS < longEnough && len(l.Stages) == 0
}

// longEnough is how many milliseconds a load has to last so that a look of ten seconds can be typed during it.
const longEnough = 30_000
