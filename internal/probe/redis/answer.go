package redis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/host"
	"plimsoll/internal/lazy"
	"plimsoll/internal/probe"
)

const (
	// maxLines bounds an answer, dearest how many commands of one are told, and the others what is told of a server in all.
	maxLines    = 8000
	dearest     = 40
	maxCommands = 128
	maxErrors   = 32
)

// answer is what INFO says.
type answer struct {
	fields   map[string]string // those of numbers, and a few more
	commands []command
	errors   map[string]float64
}

type command struct {
	name                   string
	calls, usecs, rejected float64
	hasRejected            bool
}

// What the names of commands and of errors are made of; others are passed over.
var (
	commandName = lazy.Regexp(`^[a-z0-9][a-z0-9._|-]{0,63}$`)
	errorName   = lazy.Regexp(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
	word        = lazy.Regexp(`^[A-Za-z0-9._-]{1,40}$`)
)

// parse reads the text of INFO all: lines of field:value.
func parse(text string) (a answer, err error) {
	a = answer{fields: map[string]string{}, errors: map[string]float64{}}
	lines := 0
	for line := range strings.Lines(text) {
		if lines++; lines > maxLines {
			return a, fmt.Errorf("it answered with more than %d lines", maxLines)
		}
		field, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch {
		case !ok:
		case strings.HasPrefix(field, "cmdstat_"):
			err = a.command(strings.TrimPrefix(field, "cmdstat_"), value)
		case strings.HasPrefix(field, "errorstat_"):
			err = a.error(strings.TrimPrefix(field, "errorstat_"), value)
		default:
			a.fields[field] = value
		}
		if err != nil {
			return a, err
		}
	}
	if a.fields["redis_version"] == "" || a.fields["used_memory"] == "" {
		return a, errors.New("it answered INFO with no redis_version and used_memory")
	}
	return a, nil
}

// command reads calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0.
func (a *answer) command(name, value string) (err error) {
	name = strings.ToLower(name)
	if !commandName().MatchString(name) {
		return nil
	}
	c := command{name: name}
	for _, part := range strings.Split(value, ",") {
		key, text, _ := strings.Cut(part, "=")
		switch key {
		case "calls":
			c.calls, err = number(text)
		case "usec":
			c.usecs, err = number(text)
		case "rejected_calls":
			c.rejected, err = number(text)
			c.hasRejected = true
		}
		if err != nil {
			return err
		}
	}
	a.commands = append(a.commands, c)
	return nil
}

// error reads count=1.
func (a *answer) error(name, value string) (err error) {
	if errorName().MatchString(name) && (len(a.errors) < maxErrors || name == "OOM") {
		a.errors[name], err = number(strings.TrimPrefix(value, "count="))
	}
	return err
}

func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v != v || v-v != 0 {
		return 0, fmt.Errorf("it answered %.40q, want a number", text)
	}
	return v, nil
}

// newPut makes what puts the answers of one server. A command or an error that was told of once is told of again.
func newPut() func(*probe.Out, string, answer) {
	told, failed := map[string]bool{}, map[string]bool{}
	return func(out *probe.Out, listen string, a answer) {
		a.putFields(out, listen)
		a.putCommands(out, listen, told)
		if _, ok := a.fields["total_error_replies"]; ok {
			a.errors["OOM"] += 0 // such a server counts errors, so that there was none
		} else {
			out.Mark(errs, host.Absent("a Redis before 6.2 does not count its errors by kind"))
		}
		for name, n := range a.errors {
			if failed[name] || name == "OOM" || len(failed) < maxErrors {
				failed[name] = true
				out.Put(errs, n, listen, name)
			}
		}
	}
}

func (a *answer) putFields(out *probe.Out, listen string) {
	for _, n := range numbers {
		if v, err := number(a.fields[n.field]); err == nil {
			out.Put(n.signal, v*n.scale, listen)
		}
	}
	if v, err := number(a.fields["server_time_usec"]); err == nil {
		out.Put(clock, v*1e-6, listen)
	}
	labels := []string{listen}
	for _, name := range []string{"role", "redis_version", "maxmemory_policy"} {
		text := a.fields[name]
		if !word().MatchString(text) {
			text = "unknown"
		}
		labels = append(labels, text)
	}
	out.Put(info, 1, labels...)
}

// putCommands tells of the dearest commands, and of those that were told of before.
func (a *answer) putCommands(out *probe.Out, listen string, told map[string]bool) {
	slices.SortStableFunc(a.commands, func(x, y command) int { return cmp.Compare(y.usecs, x.usecs) })
	for i, c := range a.commands {
		if !told[c.name] && (i >= dearest || len(told) >= maxCommands) {
			continue
		}
		told[c.name] = true
		out.Put(commands, c.calls, listen, c.name)
		out.Put(duration, c.usecs*1e-6, listen, c.name)
		if c.hasRejected {
			out.Put(rejected, c.rejected, listen, c.name)
		}
	}
}
