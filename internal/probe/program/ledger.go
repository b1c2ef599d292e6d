package program

import "time"

const (
	// maxKinds bounds the kinds that are told apart, maxTowards those of one doing and call; what is beyond is towards many.
	maxKinds, maxTowards = 256, 32
	// many stands for all that were met later than the first maxTowards.
	many = "many others"
	// throttled is the wait for a CPU that a control group's limit makes.
	throttled = "throttled"
	// child is the wait for a process that it started.
	child = "child"
	// shortLived is the thread of what came and went between two looks.
	shortLived = "short-lived processes"
)

// ledger adds up what the program did: as one course of time, and thread by thread.
type ledger struct {
	wall    map[kind]time.Duration   // adds up to the time that the program was there
	threads map[string]time.Duration // by doing, added up over the threads
	towards map[kind]int             // how many there are of a doing and a call
	looks   int

	// What was added since it was last entered, of which is not known yet what it was: of threads on a CPU or waiting for one
	// how much they ran, of those that wait for children whether these were seen.
	open map[kind]time.Duration
	all  map[string]time.Duration // that were ready, by thread's name, thread by thread
	ran  map[string]time.Duration // of it they ran
}

func newLedger() *ledger {
	l := &ledger{wall: map[kind]time.Duration{}, towards: map[kind]int{}, threads: map[string]time.Duration{}}
	l.begin()
	return l
}

func (l *ledger) begin() {
	l.open, l.all, l.ran = map[kind]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
}

// add takes what the threads did since the look before.
func (l *ledger) add(list []amount, room time.Duration) {
	l.looks++
	for _, a := range list {
		if a.kind.doing == ready {
			l.all[a.kind.thread] += a.d
		} else {
			l.threads[a.kind.doing] += a.d
		}
	}
	share(list, room, func(k kind, d time.Duration) {
		if k.doing == ready || k.doing == child {
			l.open[k] += d
			return
		}
		l.put(k, d)
	})
}

// put adds to a kind, if there is room for it.
func (l *ledger) put(k kind, d time.Duration) {
	if d <= 0 {
		return
	}
	if _, known := l.wall[k]; !known && k.towards != "" {
		of := kind{doing: k.doing, call: k.call}
		if l.towards[of] >= maxTowards {
			k.towards = many
		} else {
			l.towards[of]++
		}
	}
	if _, known := l.wall[k]; !known && len(l.wall) >= maxKinds {
		k = kind{doing: k.doing, towards: many}
	}
	l.wall[k] += d
}

// enter tells apart what was added since it was last called. cpu is what the program's processes used meanwhile, those that
// came and went among them; kept is for how long a control group kept the program from its CPUs.
func (l *ledger) enter(cpu, kept time.Duration) {
	waits := map[kind]time.Duration{}
	var all, saw time.Duration
	for k, d := range l.open {
		if k.doing != ready {
			continue
		}
		ran := d
		if of := l.all[k.thread]; of > 0 {
			ran = min(d, time.Duration(float64(d)*l.ran[k.thread].Seconds()/of.Seconds()))
		}
		k.doing = running
		l.put(k, ran)
		waits[k] = d - ran
		all += d - ran
	}
	part := 0.0
	if all > 0 {
		part = min(1, kept.Seconds()/all.Seconds())
	}
	for k, d := range waits {
		k.doing = throttled
		l.put(k, time.Duration(float64(d)*part))
		k.doing = queued
		l.put(k, time.Duration(float64(d)*(1-part)))
	}
	for name, d := range l.all {
		saw += l.ran[name]
		l.threads[running] += l.ran[name]
		l.threads[queued] += max(0, d-l.ran[name])
	}
	l.unseen(cpu - saw)
	l.begin()
}

// unseen gives what children computed that came and went between two looks its part of the time in which they were waited for.
func (l *ledger) unseen(cpu time.Duration) {
	for k, d := range l.open {
		if k.doing != child {
			continue
		}
		part := min(max(cpu, 0), d)
		cpu -= part
		l.put(kind{doing: running, thread: shortLived}, part)
		l.put(k, d-part)
	}
}
