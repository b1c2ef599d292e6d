package page

import (
	"strings"

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

// host draws all views of one host. seen are the machines whose own charts are drawn.
func (r *reader) host(h model.Host, seen map[string]string) Host {
	out := Host{Host: h, SharesWith: seen[h.Machine]}
	if h.Machine != "" && out.SharesWith == "" {
		seen[h.Machine] = h.Name
	}
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
	return out
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
