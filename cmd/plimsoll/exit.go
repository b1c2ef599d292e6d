package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"plimsoll/internal/change"
	"plimsoll/internal/collect/pipe"
	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/session"
)

// The exit codes, in one place. Help, docs/cli.md and the tests take them from here.
const (
	exitOK          = 0
	exitNotPassed   = 1
	exitUsage       = 2
	exitMissing     = 3
	exitUnreachable = 4
	exitRunDir      = 5
	exitRules       = 6
	exitInternal    = 70
	exitInterrupted = 130
)

var exitSentences = []struct {
	code     int
	sentence string
}{
	{exitOK, "It was done. A run that was made and judged ends with 0 whatever the verdict says, if the load that was asked for was offered and something succeeded."},
	{exitNotPassed, "What was put to the test did not pass: not one request of a load succeeded, or less was offered than was asked for, a lab case got another verdict than its truth, a rule's vector failed or a mutant of a rule passed them all, a run was worse than the one it was compared with, or a change could not be taken back."},
	{exitUsage, "The command line is wrong; the message says how, and what would be right."},
	{exitMissing, "Something is missing on this machine: a privilege, a program, a namespace, a process."},
	{exitUnreachable, "The target (or the Prometheus server, or what is to observe a host) cannot be reached, or has nothing to give, so there was nothing to measure."},
	{exitRunDir, "The run directory (or a capture) cannot be read, or not to its end, or cannot be written (disk full, no permission, no run in it); or what was to be printed could not be."},
	{exitRules, "The rules are broken; `plimsoll rules check` says where."},
	{exitInternal, "A fault of Plimsoll's own. Please report it with the message."},
	{exitInterrupted, "It was interrupted before there was anything to judge, or before a load was done as planned (what it saw until then is printed), or nobody read what it said."},
}

// exitError is an error with its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// fail gives err an exit code; nil stays nil.
func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// usage makes an error of the command line; the message ends with where to look.
func usage(command, format string, args ...any) error {
	return fail(exitUsage, errors.New(andThen(fmt.Sprintf(format, args...), command+" --help shows how")))
}

// andThen is a sentence, or one and a question, and what to do next behind it.
func andThen(said, next string) string {
	if strings.HasSuffix(said, "?") {
		return said + " " + next
	}
	return said + "; " + next
}

// codePassed is the end of a watched command: its code, and nothing to say.
type codePassed int

func (c codePassed) Error() string { return fmt.Sprintf("the command ended with %d", int(c)) }

// passedOn returns the exit code of an end that needs no message.
func passedOn(err error) (code int, quiet bool) {
	var c codePassed
	if errors.As(err, &c) {
		return int(c), true
	}
	return 0, false
}

// codeOf finds the exit code for an error: the one it was given, else by its cause.
func codeOf(err error) int {
	var coded *exitError
	var engine load.EngineError
	var dir session.DirError
	var dns *net.DNSError
	var dial pipe.DialError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &engine) && engine.Code > 0:
		return engine.Code
	case errors.As(err, &dir):
		return exitRunDir
	case errors.Is(err, context.Canceled), unread(err):
		return exitInterrupted
	case isAny(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS):
		return exitRunDir
	case isAny(err, syscall.EMFILE, syscall.ENFILE):
		return exitMissing
	case errors.As(err, &dns), errors.As(err, &dial), isAny(err, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT):
		return exitUnreachable
	case isAny(err, fs.ErrPermission, fs.ErrNotExist, exec.ErrNotFound, change.ErrFull):
		return exitMissing
	}
	return exitInternal
}

// errUnread: what is said on standard output is not read any more.
var errUnread = errors.New("nobody reads what tune says any more")

// unread says whether an error is that nobody reads what is said on standard output.
func unread(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Path == os.Stdout.Name() && errors.Is(path, syscall.EPIPE)
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// exitTable writes the codes and their sentences; without codes, all of them.
func exitTable(codes ...int) string {
	var b strings.Builder
	for _, e := range exitSentences {
		if len(codes) == 0 || contains(codes, e.code) {
			fmt.Fprintf(&b, "  %3d  %s\n", e.code, layout.Indent(layout.Wrap(e.sentence, 72), "       "))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func contains(list []int, n int) bool {
	for _, v := range list {
		if v == n {
			return true
		}
	}
	return false
}
