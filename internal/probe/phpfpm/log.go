package phpfpm

import "bytes"

// logLine is what a line of FPM's log says, as far as rules ask.
type logLine struct {
	pool string // "" where the line is about FPM as a whole
	// kind is one of the kinds of plimsoll_phpfpm_log_messages_total, "" for a
	// line that is not worth counting (notices and debug output).
	kind string
}

// parseLogLine reads one line of FPM's log:
//
//	[21-Nov-2026 09:56:32] WARNING: [pool www] server reached pm.max_children setting (3), consider raising it
//
// ok is false for anything else.
func parseLogLine(line []byte) (l logLine, ok bool) {
	const stamp = len("[21-Nov-2026 09:56:32")
	if len(line) < stamp+2 || line[0] != '[' || line[3] != '-' || line[7] != '-' || line[15] != ':' {
		return l, false
	}
	end := bytes.IndexByte(line[stamp:], ']') // fractions of a second may follow
	if end < 0 {
		return l, false
	}
	level, msg, found := bytes.Cut(bytes.TrimLeft(line[stamp+end+1:], " "), []byte(": "))
	if !found {
		return l, false
	}
	if rest, found := bytes.CutPrefix(msg, []byte("[pool ")); found {
		if name, rest, found := bytes.Cut(rest, []byte("] ")); found {
			l.pool, msg = string(name), rest
		}
	}
	switch string(level) {
	case "WARNING", "ERROR", "ALERT":
		l.kind = kindOf(msg)
	case "NOTICE", "DEBUG":
	default:
		return logLine{}, false
	}
	return l, true
}

// kindOf goes by what FPM itself writes; what a script or system adds is left alone.
func kindOf(msg []byte) string {
	has := func(s string) bool { return bytes.Contains(msg, []byte(s)) }
	begins := func(s string) bool { return bytes.HasPrefix(msg, []byte(s)) }
	switch {
	case begins("server reached pm.max_children setting"), begins("server reached max_children setting"):
		return "max_children_reached"
	case begins("child ") && (has(" executing too slow (") || has(" execution timed out (")):
		return "slow_request" // the worker's end, if it comes to that, has a line of its own
	case begins("child ") && (has(" exited on signal ") || has(" exited with code ")):
		return "terminated"
	case begins("unable to bind listening socket"), begins("Another FPM instance"), begins("failed to listen"):
		return "listen_error"
	}
	return "other"
}
