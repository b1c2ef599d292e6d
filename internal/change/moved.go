package change

import (
	"errors"
	"slices"
)

// follow finds the services of an entry as they run now, and reaches its files
// through them. What it changes is to be written into the journal.
func (e *Entry) follow() (changed bool, err error) {
	if e.Boot != bootID() {
		return false, nil
	}
	var errs []error
	services := make([]*service, 0, len(e.Masters)+1)
	if e.Service != nil {
		own := *e.Service // a closed entry's copy may be looked at still
		e.Service = &own
		services = append(services, e.Service)
	}
	e.Masters = slices.Clone(e.Masters)
	for i := range e.Masters {
		services = append(services, &e.Masters[i])
	}
	for _, s := range services {
		before := s.process
		found, err := s.moved()
		errs = append(errs, err)
		if found && s.process != before {
			changed = true
			e.Change.goOn(before, s.process)
		}
	}
	return e.reach() || changed, errors.Join(errs...)
}

// goOn names the process that a service goes on as.
func (c *Change) goOn(before, now process) {
	if c.PID == before.PID {
		c.PID = now.PID
	}
}

// reach reaches files in the mounts of a service that has ended through the
// process that it goes on as, if these are the same files.
func (e *Entry) reach() (changed bool) {
	if e.Service == nil {
		return false
	}
	e.Parts = slices.Clone(e.Parts)
	for i := range e.Parts {
		p := &e.Parts[i]
		if p.Target.Kind != inFile || p.Target.Process == nil || p.Target.Process.alive() || !e.Service.alive() {
			continue
		}
		there := p.Target
		there.Process = &process{e.Service.PID, e.Service.Start}
		if now, err := there.get(); err == nil && p.ours(now) {
			p.Target, changed = there, true
		}
	}
	return changed
}
