package report

import (
	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// momentary are commands that show something only while requests come.
var momentary = lazy.Regexp(`\b(ss -\w*t\w* (state|dst|dport|src)|ss -t[an]+p?$|lslocks|top|htop|pidstat|vmstat|iostat|mpstat|sar|trace|strace|perf|tcpdump|jstack|py-spy|sleep|PROCESSLIST|innodb_trx|pg_stat_activity)\b|/proc/(PID|[0-9]+|\$\([^)]*\))/(task|stack|syscall|wchan)`)

// whileLoaded is what users bear of a load that is there again while a command runs, "" where it needs none of ours.
func whileLoaded(command string, plan model.Plan) string {
	l := plan.Load
	switch {
	case l == nil || !momentary().MatchString(command):
		return ""
	case tooShort(l):
		return "the load for 60 s more" + waitsAgain
	}
	return "the load once more" + waitsAgain
}

// theLoadAgain is what users bear of the load of a measurement that is made once more, with a comma behind it; "" where it was not ours.
func theLoadAgain(plan model.Plan) string {
	l := plan.Load
	if l == nil {
		return ""
	}
	text := "the load once more"
	if l.DurationMS > 0 {
		text += " for " + layout.Micros(float64(l.DurationMS)*1e3)
	}
	return text + waitsAgain + ", "
}

// waitsAgain is what users bear of a load that comes again.
const waitsAgain = " (users wait as in this run)"

// tooShort says whether a load is over before a look at it can be typed.
func tooShort(l *model.LoadPlan) bool {
	return l.DurationMS > 0 && l.DurationMS < longEnough && len(l.Stages) == 0
}

// longEnough is how many milliseconds a load has to last so that a look of ten seconds can be typed during it.
const longEnough = 30_000
