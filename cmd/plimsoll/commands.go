package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
)

// commands lists every command, in the order of the help page.
func commands(w *world) []*cobra.Command {
	return []*cobra.Command{
		runCommand(w),
		watchCommand(w),
		diagnoseCommand(w),
		reportCommand(w),
		compareCommand(w),
		tuneCommand(w),
		undoCommand(w),
		sweepCommand(w),
		loadCommand(w),
		labCommand(w),
		rulesCommand(w),
		traceCommand(w),
		captureCommand(w),
		flameCommand(w),
		signalsCommand(w),
		doctorCommand(w),
		loadEngine(w),
		stackReader(w),
		collector(w),
		commandHolder(),
		serviceTest(),
		completionCommand(w),
		versionCommand(w),
	}
}

func versionCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "say which Plimsoll this is", Args: noArguments,
		Long: "Prints the version, the commit it was built from and the platform."}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := struct {
			Version  string `json:"version"`
			Commit   string `json:"commit"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{version, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if *asJSON {
			return printJSON(w.stdout, v)
		}
		layout.Table(w.stdout, [][]string{{"plimsoll", v.Version}, {"commit", v.Commit}, {"go", v.Go}, {"platform", v.Platform}})
		return nil
	}
	return withExits(c, exitOK, exitUsage)
}

// commit is what the build noted about its source, "unknown" without a note.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-modified"
		}
	}
	return rev + dirty
}

func completionCommand(w *world) *cobra.Command {
	c := &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "print the completion script of a shell",
		Long: `Prints a script that teaches the shell Plimsoll's commands, flags, lab cases and
rules. It is to be read by the shell itself.`,
		Example: `  . <(plimsoll completion bash)                                    # this shell
  plimsoll completion bash > /etc/bash_completion.d/plimsoll       # for good
  plimsoll completion zsh > "${fpath[1]}/_plimsoll"
  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      oneArgument("a shell: bash, zsh or fish"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		switch args[0] {
		case "bash":
			return c.Root().GenBashCompletionV2(w.stdout, true)
		case "zsh":
			return c.Root().GenZshCompletion(w.stdout)
		case "fish":
			return c.Root().GenFishCompletion(w.stdout, true)
		}
		return usage(c.CommandPath(), "no completion for %q; there is one for bash, zsh and fish", args[0])
	}
	return withExits(c, exitOK, exitUsage)
}
