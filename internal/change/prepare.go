package change

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/host"
)

// Prepare looks at a change and makes nothing: what is set now, whether it can
// be changed, how far that reaches. Beside the errors of this room it returns
// fs.ErrNotExist (no such setting) and fs.ErrPermission. h need not stay open.
func Prepare(h *host.Host, c Change) (Step, error) {
	s := Step{Change: c, Host: h.Name, Spec: h.Spec, New: c.To, Restart: None}
	if h.Recorded() {
		return s, fmt.Errorf("%s is a recorded host: %w", h.Name, ErrNotPossible)
	}
	if len(c.To) > 4096 || strings.ContainsAny(c.To, "\n\r\x00") {
		return s, fmt.Errorf("%s %s: want one line, got %q", c.Kind, c.Name, c.To)
	}
	var err error
	if s.netns, err = namespaceOf(h); err != nil {
		return s, err
	}
	prepare, ok := map[Kind]func(*host.Host, Change, *Step) error{
		Sysctl: prepareSysctl, Nginx: prepareNginx, PHPFPM: preparePHPFPM, Backlog: prepareBacklog, Limit: prepareLimit,
		Affinity: prepareAffinity, Nice: prepareNice, Policy: preparePolicy, Quota: prepareQuota, RPS: prepareRPS, IRQ: prepareIRQ,
		TxQueue: prepareTxQueue, Ring: prepareRing,
	}[c.Kind]
	if !ok {
		return s, fmt.Errorf("no changes of kind %q", c.Kind)
	}
	if err := prepare(h, c, &s); err != nil {
		return s, err
	}
	if len(s.parts) == 0 {
		return s, fmt.Errorf("%s on %s: %w", c, h.Name, ErrAlready)
	}
	s.Undo = s.undoSentence()
	return s, nil
}

func (s *Step) undoSentence() string {
	text := "plimsoll undo writes the old value back"
	if len(s.Files) > 0 {
		text = "plimsoll undo puts back " + strings.Join(s.Files, " and ") + " byte for byte"
		if s.Restart == Reload {
			text += " and reloads the service"
		}
	}
	if !slices.ContainsFunc(s.parts, func(p part) bool { return !p.Target.untilReboot() }) {
		text += "; so does a restart of what it belongs to, or of the machine"
	}
	return text
}
