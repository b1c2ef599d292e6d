package breakdown

import (
	"cmp"
	"fmt"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// reader reads what a run holds about its hold window.
type reader struct {
	meta        model.Run
	run         *record.Run
	first, last int64 // of the run
	from, to    int64 // the hold window
	failed      error // the first error of the store
	read        map[string][]record.Series
	listening   []process // nil before listeners
}

// series returns the series of a signal whose labels are as pairs says (record.Match).
// What was read once is kept: the same is asked of one process after the other.
func (r *reader) series(signal string, pairs ...string) []record.Series {
	key := signal + "\x00" + strings.Join(pairs, "\x00")
	list, known := r.read[key]
	if known {
		return list
	}
	for s, err := range r.run.Series(r.first, r.last, record.Match(signal, pairs...)...) {
		if err != nil {
			r.failed = cmp.Or(r.failed, err)
			break
		}
		list = append(list, s)
	}
	if r.read == nil {
		r.read = map[string][]record.Series{}
	}
	r.read[key] = list
	return list
}

// unseen says why a signal tells nothing of a host, "" when it does. What a
// run says of it counts; one that was never tried may still have series.
func (r *reader) unseen(host, signal string) string {
	st, tried := r.meta.Status[host][signal]
	switch {
	case !tried && len(r.series(signal, "host", host)) > 0, tried && st.State == model.Read:
		return ""
	case !tried:
		return fmt.Sprintf("%s was not looked for on %s", signal, host)
	case st.Why == "":
		return fmt.Sprintf("%s: %s on %s", signal, st.State, host)
	}
	return fmt.Sprintf("%s: %s", signal, st.Why)
}

// measured is a number, or the reason why there is none.
type measured struct {
	value float64
	why   string
}

func (m measured) known() bool { return m.why == "" }

// over divides; of nothing nothing is known.
func (m measured) over(n float64, of string) measured {
	if m.known() && n <= 0 {
		return measured{why: "there were no " + of + " in the window"}
	}
	return measured{value: m.value / n, why: m.why}
}

// increase is how much a counter grew on a host over the hold window, all
// series that match added up.
func (r *reader) increase(host, signal string, pairs ...string) measured {
	if why := r.unseen(host, signal); why != "" {
		return measured{why: why}
	}
	var sum measured
	for _, l := range r.series(signal, append([]string{"host", host}, pairs...)...) {
		sum.value += l.Increase(r.from, r.to)
	}
	return sum
}

// mean is the mean of a level on a host over the hold window, all series that
// match added up. A reading counts for the time since the one before it.
func (r *reader) mean(host, signal string, pairs ...string) measured {
	if why := r.unseen(host, signal); why != "" {
		return measured{why: why}
	}
	var sum measured
	for _, l := range r.series(signal, append([]string{"host", host}, pairs...)...) {
		sum.value += l.Mean(r.from, r.to)
	}
	return sum
}
