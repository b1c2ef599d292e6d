package main

import (
	"fmt"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// pageWidth is the width of handbook pages: they are read on terminals, too.
const pageWidth = 80

// rulePage is a rule's page of the handbook, in Markdown that reads well as it is.
func rulePage(r *ruleset.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", r.ID, layout.Wrap(r.Title+".", pageWidth))
	fmt.Fprintf(&b, "%s\n\n", layout.Wrap(r.Story, pageWidth))
	fmt.Fprintf(&b, "A %s, judged for each %s to which this applies:\n\n%s\n", r.Kind, strings.Join(r.Subject, " and "), code(r.Applies))
	ruleClues(&b, r)
	if len(r.Unlike) > 0 {
		b.WriteString("\n## Its look-alikes\n\n")
		for _, u := range r.Unlike {
			bullet(&b, fmt.Sprintf("`%s`: %s.", u.Finding, u.How))
		}
	}
	ruleKinds(&b, "What it does to users", r.Does)
	ruleKinds(&b, "What it shows", r.Shows)
	if len(r.Explains) > 0 {
		b.WriteString("\n## What it explains\n\n")
		for _, e := range r.Explains {
			text := fmt.Sprintf("`%s`: %s.", e.Finding, e.How)
			if e.When != nil {
				text += fmt.Sprintf(" Only where `%s` is %s: %s.", strings.Join(strings.Fields(e.When.Measure), " "), e.When.Is, strings.TrimSpace(e.When.Why))
			}
			bullet(&b, text)
		}
	}
	if r.Impact != "" {
		b.WriteString("\n## Impact\n\n" + impactOf[r.ImpactOf] + ":\n\n" + code(r.Impact))
	}
	ruleFixes(&b, r)
	if len(r.Blind) > 0 {
		b.WriteString("\n## Blind spots\n\n")
		for _, s := range r.Blind {
			bullet(&b, s)
		}
	}
	if len(r.Sources) > 0 {
		b.WriteString("\n## Sources\n\n")
		for _, s := range r.Sources {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	ruleLab(&b, r)
	return b.String()
}

// impactOf says what a rule's impact is a share of.
var impactOf = map[string]string{
	"":                     "The share of the requests' time that was lost to it",
	model.ImpactFailed:     "The share of the requests that failed because of it",
	model.ImpactDelayed:    "The share of the requests that came late, or failed, because of it",
	model.ImpactPackets:    "The share of the packets that arrived at the host which belong to it",
	model.ImpactMachineCPU: "The share of the machine's CPU time that goes into it",
	model.ImpactProgramCPU: "The share of the program's CPU time that goes into it",
}

// ruleKinds lists what a cause does, or a symptom shows, by kind.
func ruleKinds(b *strings.Builder, title string, kinds map[string]string) {
	if len(kinds) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, kind := range ruleset.Kinds {
		how, ok := kinds[kind]
		if how != "" {
			how = ": " + how
		}
		if ok {
			bullet(b, fmt.Sprintf("`%s`%s.", kind, how))
		}
	}
}

// ruleLab tells where the rule has to be found and where not, and what is kept
// of real runs in which it was.
func ruleLab(b *strings.Builder, r *ruleset.Rule) {
	if len(r.Lab.Causes)+len(r.Lab.Lookalikes) > 0 {
		b.WriteString("\n## In the lab\n\n")
		labLine(b, "It has to be found in", r.Lab.Causes)
		if r.Lab.Uncaused != "" {
			bullet(b, "No case causes it: "+r.Lab.Uncaused+".")
		}
		labLine(b, "It must not be taken for the cause in", r.Lab.Lookalikes)
	}
	b.WriteString("\n## On real runs\n\n")
	found, quiet := r.Seen()
	if len(found) == 0 {
		bullet(b, notYetSeen+": its vectors are written by hand.")
	}
	labLine(b, "A recorded run is kept in which it is found:", found)
	labLine(b, "Recorded runs are kept in which it is quiet:", quiet)
}

// notYetSeen is said of a rule that no recorded run has confirmed.
const notYetSeen = "Not yet seen on a real fault"

func labLine(b *strings.Builder, lead string, cases []string) {
	if len(cases) > 0 {
		bullet(b, lead+" `"+strings.Join(cases, "`, `")+"`.")
	}
}

func ruleClues(b *strings.Builder, r *ruleset.Rule) {
	b.WriteString("## Clues\n")
	for _, c := range r.Clues {
		role := string(c.Role)
		if c.From != "" {
			role += ", from " + c.From
		}
		fmt.Fprintf(b, "\n### %s (%s)\n\n%s\n\n%s\n", c.ID, role,
			layout.Wrap("True when the measure is "+c.Is+": "+c.Why+".", pageWidth), code(c.Measure))
		fmt.Fprintf(b, "%s\n", layout.Wrap("It says: “"+c.Say+"”.", pageWidth))
		if c.ByHand != "" {
			fmt.Fprintf(b, "\nBy hand:\n\n%s", code(c.ByHand))
		}
	}
}

func ruleFixes(b *strings.Builder, r *ruleset.Rule) {
	if len(r.Fix) == 0 {
		return
	}
	b.WriteString("\n## Fix\n")
	for _, f := range r.Fix {
		fmt.Fprintf(b, "\n### %s\n\n", f.Title)
		for _, x := range f.Change {
			switch x.Kind {
			case model.ChangePerson:
				fmt.Fprintf(b, "%s\n\n", layout.Wrap(x.Name, pageWidth))
			case model.ChangeSysctl, model.ChangeNginx, model.ChangePHPFPM:
				fmt.Fprintf(b, "Set `%s` to `%s`.\n\n", x.Name, x.To)
			default:
				fmt.Fprintf(b, "Set %s of `%s` to `%s`.\n\n", x.Kind, x.Name, x.To)
			}
		}
		text := "Risk " + f.Risk + "; undo " + f.Undo + "; restart " + f.Restart + "."
		if f.Costs != "" {
			text = "It costs " + f.Costs + ". " + text
		}
		if f.Save != "" {
			text += " Before it: " + f.Save + "."
		}
		if f.Back != "" {
			text += " To take it back: " + f.Back + "."
		}
		fmt.Fprintf(b, "%s\n", layout.Wrap(text, pageWidth))
		if f.Accept != "" {
			fmt.Fprintf(b, "\nIt worked when, in the next run:\n\n%s", code(f.Accept))
		}
	}
}

func bullet(b *strings.Builder, text string) {
	fmt.Fprintf(b, "- %s\n", layout.Indent(layout.Wrap(text, pageWidth-2), "  "))
}

// code indents what is to be taken as it stands.
func code(text string) string {
	return "    " + layout.Indent(strings.TrimSpace(text), "    ") + "\n"
}
