package tune

import (
	"cmp"
	"strings"

	"plimsoll/internal/change"
	"plimsoll/internal/model"
)

// ChangeOf is what a rule asks for in the terms of package change.
func ChangeOf(x model.FixChange) change.Change {
	c := change.Change{Kind: change.Kind(x.Kind), Name: x.Name, To: x.Value}
	switch x.Kind {
	case model.ChangeNginx:
		c.ListensAt = cmp.Or(x.ListensAt, x.Subject["listen"], x.Subject["dst"])
		c.Upstream = x.Subject["upstream"]
		if x.Name == "backlog" {
			c.Listen = x.Subject["listen"]
		}
	case model.ChangePHPFPM:
		c.Pool = x.Subject["pool"]
		c.ListensAt = cmp.Or(x.ListensAt, x.Subject["listen"])
	case model.ChangeBacklog:
		c.Name, c.Listen = "", x.Name
	case model.ChangeLimit:
		c.Process = x.Subject["groupname"]
	case model.ChangeNice, model.ChangePolicy, model.ChangeAffinity:
		c.Name, c.Process = "", x.Name
	case model.ChangeQuota:
		c.Name, c.Cgroup = "", x.Name
	}
	return c
}

// describe is a fix as it would be made.
func describe(c candidate, plan []change.Step) *model.TuneFix {
	fix := &model.TuneFix{Rule: c.root.Rule, Index: c.fix.Index, Title: c.fix.Title, Risk: c.fix.Risk, Costs: c.fix.Costs, MemoryBytes: c.fix.MemoryBytes,
		Outcome: model.Proposed, Changes: []model.TuneChange{}, Effect: []model.Difference{}}
	for _, s := range plan {
		fix.Changes = append(fix.Changes, changeOf(s))
	}
	return fix
}

func changeOf(s change.Step) model.TuneChange {
	return model.TuneChange{Kind: string(s.Change.Kind), What: What(s.Change), Host: s.Host, Old: s.Old, New: s.New,
		Scope: string(s.Scope), Restart: string(s.Restart), Files: s.Files, Undo: s.Undo, Notes: s.Notes}
}

// What names a setting without its value.
func What(c change.Change) string {
	words := []string{}
	if c.Kind != change.Sysctl {
		words = append(words, string(c.Kind))
	}
	for _, w := range []string{c.Name, c.Listen, c.Process, c.Cgroup, c.Upstream, c.Pool} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}
