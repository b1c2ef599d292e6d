package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll/internal/lab"
	cases "plimsoll/lab"
)

// theLab is the lab of the cases that the binary carries.
func theLab() *lab.Lab { return &lab.Lab{Cases: cases.FS} }

// labFailed sorts an error of the lab: what it could not do, it lacked something
// for, unless it was sorted already.
func labFailed(err error) error {
	var coded *exitError
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, &coded) {
		return err
	}
	return fail(exitMissing, err)
}

// completeCase offers the ids of cases to the shell.
func completeCase(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := theLab().List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID+"\t"+c.Symptom)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// labOptions checks the ids of cases and says how to run them, which changes the machine.
func labOptions(w *world, ids, mends []string) (lab.Options, error) {
	w.mayChange()
	for _, id := range ids {
		if _, err := theLab().Case(id); err != nil {
			return lab.Options{}, fail(exitUsage, err)
		}
	}
	binary, err := filepath.EvalSymlinks(w.executable)
	if err != nil {
		return lab.Options{}, fmt.Errorf("find this program's own file, to run it from outside: %w", err)
	}
	return lab.Options{Binary: binary, Mends: mends, Talk: talk(w)}, nil
}

// talk is where the driven binary's own talk goes: to a person who looks on.
func talk(w *world) io.Writer {
	if w.stderrTTY {
		return w.commandErr // it is this same program, which cleans
	}
	return nil
}
