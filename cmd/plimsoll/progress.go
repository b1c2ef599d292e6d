package main

import (
	"fmt"
	"io"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/session"
)

// progressLine redraws one line on a terminal.
type progressLine struct {
	out   io.Writer
	drawn bool
}

// progress returns what shows the course of a session, nil when nobody looks on.
func (w *world) progress() *progressLine {
	if !w.stderrTTY || w.env("TERM") == "dumb" {
		return nil
	}
	return &progressLine{out: w.stderr}
}

// show draws p in place of what was drawn before.
func (l *progressLine) show(p session.Progress) {
	l.say(progressText(p))
}

// say draws a text in place of what was drawn before.
func (l *progressLine) say(text string) {
	l.drawn = true
	l.clear()
	fmt.Fprint(l.out, text)
}

// end takes the line away.
func (l *progressLine) end() {
	if l != nil && l.drawn {
		l.clear()
	}
}

// clear takes back what was drawn; that nobody can see it ends no session.
func (l *progressLine) clear() { _ = layout.Own(l.out, "\r\x1b[K") }

func progressText(p session.Progress) string {
	text := fmt.Sprintf("%-8s %3.0f", p.Window, p.Elapsed.Seconds())
	if p.Planned > 0 {
		text += fmt.Sprintf(" of %.0f", p.Planned.Round(time.Second).Seconds())
	}
	text += " s"
	if p.RPS > 0 || p.Failed > 0 {
		text += fmt.Sprintf("   %s replies/s, %s good   %s failed", layout.Rate(p.RPS), layout.Rate(p.GoodRPS), layout.Count(p.Failed))
	}
	if p.FailedAttempts > 0 {
		text += "   " + layout.Count(p.FailedAttempts) + " connects failed"
	}
	return text
}

// courseText is how far the open window is.
func courseText(p session.Progress) string {
	text := fmt.Sprintf("%s, %.0f s", p.Window, p.Elapsed.Seconds())
	if p.Planned > 0 {
		text = fmt.Sprintf("%s, %.0f of %.0f s", p.Window, p.Elapsed.Seconds(), p.Planned.Seconds())
	}
	return text
}
