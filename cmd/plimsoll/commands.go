package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
)

// commands lists every command, in the order of the help page.
func commands(w *world) []*cobra.Command {
	return []*cobra.Command{
		runCommand(w),
		watchCommand(w),
		againCommand(w),
		snapshotCommand(w),
		diagnoseCommand(w),
		reportCommand(w),
		compareCommand(w),
		exportCommand(w),
		serveCommand(w),
		runsCommand(w),
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
		loadLead(w),
		stackReader(w),
		collector(w),
		guest(w),
		changer(w),
		commandHolder(),
		runFinisher(),
		lastingJudge(w),
		serviceTest(),
		manCommand(w),
		sbomCommand(w),
		completionCommand(w),
		versionCommand(w),
	}
}

// versionDocument is what version --json prints.
type versionDocument struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Rules is the hash of the built-in rule set, as a verdict's rules_hash.
	Rules    string          `json:"rules_hash"`
	Kernel   string          `json:"kernel"`
	Features map[string]bool `json:"kernel_features"`
}

func versionCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "say which Plimsoll this is", Args: noArguments,
		Long: "Prints the version, the commit it was built from, the platform, the hash of the\nrules that are built in, and what this machine's kernel has of what Plimsoll\nuses."}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := versionDocument{version, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, "", release(), kernelFeatures()}
		set, err := ruleSet(nil)
		if err != nil {
			return err
		}
		v.Rules = set.Hash
		if *asJSON {
			return printJSON(w.stdout, v)
		}
		has := []string{}
		for _, name := range slices.Sorted(maps.Keys(v.Features)) {
			word := name
			if !v.Features[name] {
				word = "no " + name
			}
			has = append(has, word)
		}
		layout.Table(w.stdout, [][]string{{"plimsoll", v.Version}, {"commit", v.Commit}, {"go", v.Go}, {"platform", v.Platform},
			{"rules", fmt.Sprintf("%d, %.12s", len(set.List), v.Rules)}, {"kernel", v.Kernel + ": " + strings.Join(has, ", ")}})
		return nil
	}
	return withExits(c, exitOK, exitUsage)
}

// kernelFeatures are those that decide what can be seen at all.
func kernelFeatures() map[string]bool {
	features := map[string]bool{}
	for name, path := range map[string]string{"type information (BTF)": "/sys/kernel/btf/vmlinux", "pressure": "/proc/pressure/cpu",
		"control groups v2": "/sys/fs/cgroup/cgroup.controllers", "connection tracking": "/proc/sys/net/netfilter/nf_conntrack_max"} {
		_, err := os.Stat(path)
		features[name] = err == nil
	}
	return features
}

// release is the kernel's, "unknown" where it does not say.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// builtFrom is the commit of a release, set when it is linked.
var builtFrom = ""

// commit is what the build noted about its source, "unknown" without a note.
func commit() string {
	if builtFrom != "" {
		return builtFrom
	}
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
