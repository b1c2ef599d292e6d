package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/input"
	"plimsoll/internal/judge"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// thresholdsFile is the name of a site's thresholds below the site's folder.
const thresholdsFile = "thresholds.yaml"

// siteFlags are those by which a site changes the rules.
type siteFlags struct {
	rules, thresholds string
}

// words are the flags as they would be given again.
func (f *siteFlags) words() (list []string) {
	if f.rules != "" {
		list = append(list, "--rules="+f.rules)
	}
	if f.thresholds != "" {
		list = append(list, "--thresholds="+f.thresholds)
	}
	return list
}

func (f *siteFlags) add(c *cobra.Command) {
	f.addRules(c)
	c.Flags().StringVar(&f.thresholds, "thresholds", "", "take a site's thresholds from `FILE` (default /etc/plimsoll/thresholds.yaml where it is there)")
}

func (f *siteFlags) addRules(c *cobra.Command) {
	c.Flags().StringVar(&f.rules, "rules", "", "add the rules of this `DIR` to the built-in ones; one of the same id replaces it")
}

// extended returns the built-in rules with those of --rules.
func (f *siteFlags) extended() (ruleset.Rules, error) {
	set, err := ruleSet(nil)
	if err != nil || f.rules == "" {
		return set, err
	}
	source, err := folder(f.rules)
	if err != nil {
		return set, err
	}
	set, err = ruleset.Extend(set, source, filepath.Clean(f.rules))
	return set, fail(exitRules, err)
}

// set returns the rules for a run that is to be made: the built-in ones, those
// of --rules, and the site's thresholds.
func (f *siteFlags) set(w *world) (ruleset.Rules, error) {
	set, err := f.extended()
	if err != nil {
		return set, err
	}
	list, err := f.ownThresholds(w)
	if err != nil {
		return set, err
	}
	set, err = set.WithThresholds(list)
	return set, fail(exitRules, err)
}

// changes is what a site changes about the rules, nil for nothing. Then the rules
// are not read: that takes a tenth of a second, which a short watch would feel.
func (f *siteFlags) changes(w *world) (*model.Site, error) {
	list, err := f.ownThresholds(w)
	if err != nil || f.rules == "" && len(list) == 0 {
		return nil, err
	}
	set, err := f.set(w)
	return judge.SiteOf(set), err
}

// ownThresholds reads --thresholds, else the site's file if it is there.
func (f *siteFlags) ownThresholds(w *world) ([]model.Threshold, error) {
	file := f.thresholds
	if file == "" {
		file = filepath.Join(w.etc, thresholdsFile)
	}
	raw, err := input.Read(file, maxThresholds)
	if f.thresholds == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitRules, fmt.Errorf("read the site's thresholds: %w", err))
	}
	list, err := ruleset.ParseThresholds(file, raw)
	return list, fail(exitRules, err)
}

// setFor returns the rules for a run that was made: with the thresholds that
// were in force then, whatever this machine has, unless --thresholds says
// otherwise. rules reads those of the site. notes say what else was in force.
func (f *siteFlags) setFor(meta model.Run, rules func() (ruleset.Rules, error)) (set ruleset.Rules, notes []string, err error) {
	if set, err = rules(); err != nil {
		return set, nil, err
	}
	var own []model.Threshold
	if f.thresholds != "" {
		if own, err = f.ownThresholds(nil); err != nil {
			return set, nil, err
		}
		own = append([]model.Threshold{}, own...) // not nil: a file without any counts, too
	}
	set, notes, err = judge.RulesFor(meta, set, f.rules, own)
	return set, notes, fail(exitRules, err)
}

// oneOf returns the rules of the folder given as argument, alone, or the
// built-in ones with those of --rules.
func (f *siteFlags) oneOf(c *cobra.Command, args []string) (ruleset.Rules, error) {
	if f.rules == "" {
		return ruleSet(args)
	}
	if len(args) > 0 {
		return ruleset.Rules{}, usage(c.CommandPath(), "%s and --rules %s: give one of them; --rules adds to the built-in rules", args[0], f.rules)
	}
	return f.extended()
}

// siteMark says in a list what a site did to a rule.
func siteMark(s model.Site, rule string) string {
	switch {
	case slices.Contains(s.Added, rule):
		return " [this site's]"
	case slices.Contains(s.Replaced, rule):
		return " [this site's, in the place of the built-in rule]"
	case slices.ContainsFunc(s.Thresholds, func(t model.Threshold) bool { return t.Rule == rule }):
		return " [thresholds of this site]"
	}
	return ""
}

// sitePart is the part of a rule's page about what a site did to it.
func sitePart(s model.Site, rule string) string {
	var b strings.Builder
	switch {
	case slices.Contains(s.Added, rule):
		bullet(&b, "The rule is this site's own.")
	case slices.Contains(s.Replaced, rule):
		bullet(&b, "The rule is this site's own, and replaces the built-in one.")
	}
	for _, t := range s.Thresholds {
		if t.Rule == rule {
			reason := ""
			if t.Why != "" {
				reason = ": " + t.Why
			}
			bullet(&b, fmt.Sprintf("`%s` is held against %s in the place of %s%s.", t.Clue, t.Is, t.Was, reason))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n## At this site\n\n" + b.String()
}

// ruleSet loads the rules that the binary carries, or those of a folder.
func ruleSet(args []string) (ruleset.Rules, error) {
	if len(args) == 0 {
		set, err := ruleset.LoadTried(rules.FS)
		return set, fail(exitRules, err)
	}
	source, err := folder(args[0])
	if err != nil {
		return ruleset.Rules{}, err
	}
	set, err := ruleset.Load(source)
	if err == nil && len(set.List) == 0 {
		err = errors.New("no rule.yaml in it; want <layer>/<id>/rule.yaml")
	}
	return set, fail(exitRules, err)
}

// folder opens a folder of rules. A link in it leads to no file outside, whose text
// would be shown as a fault of a rule.
func folder(path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder; want one that holds <layer>/<id>/rule.yaml", path)
	}
	if err != nil {
		return nil, fail(exitRules, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fail(exitRules, err)
	}
	return root.FS(), nil
}
