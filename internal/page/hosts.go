package page

import (
	"cmp"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
)

// Host is what is shown of one host: small charts on one axis of time.
type Host struct {
	model.Host
	ID      int // its place on the page
	Figures []Figure
	// Quiet are what was read and is zero throughout, or is not there.
	Quiet []string
	// Unseen are what was not read, and why.
	Unseen []string
	// SharesWith is the host under which the machine's own charts are, "" for here.
	SharesWith string
}

// hosts draws each of these hosts, a machine's own charts under the first of its hosts.
func (r *reader) hosts(list []model.Host) []Host {
	out := make([]Host, len(list))
	first := map[string]string{}
	for i, h := range list {
		out[i] = Host{Host: h, ID: i + 1, SharesWith: first[h.Machine]}
		if h.Machine != "" && out[i].SharesWith == "" {
			first[h.Machine] = h.Name
		}
	}
	errs := make([]error, len(list))
	onAllCPUs(len(list), func(i int) {
		own := *r
		own.draw(&out[i])
		errs[i] = own.err
	})
	r.err = cmp.Or(r.err, errors.Join(errs...))
	return out
}

// draw draws all views of one host.
func (r *reader) draw(out *Host) {
	h := out.Host
	for _, v := range views() {
		if v.machine && out.SharesWith != "" {
			continue
		}
		list := v.courses(r, h.Name)
		if len(list) > 0 {
			v.limits = v.limitsOf(r, h)
		}
		if f := r.figure(v.plot, list); f != nil {
			out.Figures = append(out.Figures, *f)
			continue
		}
		if s := r.meta.Status[h.Name][v.signal]; s.State == model.Read {
			out.Quiet = append(out.Quiet, v.title)
		} else if s.Why != "" {
			out.Unseen = append(out.Unseen, v.title+" ("+string(s.State)+": "+s.Why+")")
		} else {
			out.Unseen = append(out.Unseen, v.title+" (was not looked for)")
		}
	}
}

// onAllCPUs does something n times, on all CPUs.
func onAllCPUs(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				do(i)
			}
		})
	}
	all.Wait()
}

// limitsOf are what the view's lines are held against on a host.
func (v view) limitsOf(r *reader, h model.Host) []svg.Limit {
	switch {
	case v.cpus && h.CPUs > 0:
		return []svg.Limit{{Value: float64(h.CPUs), Text: brief(float64(h.CPUs)) + " CPUs"}}
	case v.limit == nil:
		return nil
	}
	least, known := 0.0, false
	for s, err := range r.rec.Series(r.first, r.last, matchHost(v.limit.signal, h.Name)...) {
		if err == nil && (!known || s.Last() < least) {
			least, known = s.Last(), true
		}
	}
	if !known {
		return nil
	}
	return []svg.Limit{{Value: least, Text: strings.TrimSpace(v.limit.name + " " + v.unit.write(least))}}
}
