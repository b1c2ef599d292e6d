package main

import (
	"os"

	"github.com/spf13/cobra"

	"plimsoll/internal/session"
)

const holderName = "hold-command"

// holderCommand is the command line of the process between us and a command that is
// watched; the command's path and its words follow.
func holderCommand(w *world) []string { return []string{w.executable, holderName} }

// commandHolder is the process that ends a command when we are gone.
func commandHolder() *cobra.Command {
	return &cobra.Command{Use: holderName, Short: "run a command that is watched (Plimsoll's own child)", Hidden: true,
		Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			// So that "killall plimsoll" leaves it time to end the command.
			_ = os.WriteFile("/proc/self/comm", []byte("plimsoll-hold"), 0)
			if code := session.Hold(args[0], args[1:], os.Environ()); code != 0 {
				return codePassed(code)
			}
			return nil
		}}
}
