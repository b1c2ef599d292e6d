package host

// Marker tells which processes have done nothing since they were looked at last.
type Marker interface {
	// Marks returns a number for each process of the machine that is to be seen, by
	// pid. As long as it stays the same no thread of the process has run, and nothing
	// that /proc/PID/stat says has changed but how much of its memory is resident. That
	// of a process that runs at the moment, or of which this is not known, is 0, which is
	// never the same. A network namespace does not matter; a PID namespace does: an
	// error says that the pids are not ours.
	Marks() (map[int]uint64, error)
}

// SetMarker gives h somebody to ask, so that not every process must be read in
// every round; nil takes it away. It may be called while the host is being sampled.
func (h *Host) SetMarker(m Marker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marker = m
}

// Marks are the marks of the machine's processes; nil when nobody can tell them.
func (h *Host) Marks() map[int]uint64 {
	h.mu.Lock()
	m := h.marker
	h.mu.Unlock()
	if m == nil || h.root != "" {
		return nil
	}
	marks, err := m.Marks()
	if err != nil {
		return nil // everything is read, as without it
	}
	return marks
}
