package report

import (
	"io"

	"plimsoll/internal/model"
)

// JSON writes the report as one indented document. A list that is empty is []
// and never null; "load" is null when Plimsoll drove no load itself.
func JSON(w io.Writer, r model.Report) error {
	return Document(w, filled(r))
}

// filled returns r with empty lists in the place of nil ones.
func filled(r model.Report) model.Report {
	r.Verdict.Root = filledFindings(r.Verdict.Root)
	r.Verdict.Grounds = filledFindings(r.Verdict.Grounds)
	r.Verdict.Findings = filledFindings(r.Verdict.Findings)
	r.Verdict.RuledOut = filledFindings(r.Verdict.RuledOut)
	r.Verdict.Unknown = filledFindings(r.Verdict.Unknown)
	r.Verdict.Nearest = orEmpty(r.Verdict.Nearest)
	r.Verdict.LoadAverage = orEmpty(r.Verdict.LoadAverage)
	r.Hosts = orEmpty(r.Hosts)
	r.Windows = orEmpty(r.Windows)
	r.Notes = orEmpty(r.Notes)
	if r.Breakdown != nil {
		b := *r.Breakdown
		b.Parts, b.Warnings = filledParts(b.Parts), orEmpty(b.Warnings)
		r.Breakdown = &b
	}
	if r.Load != nil && r.Load.Outcomes == nil {
		l := *r.Load
		l.Outcomes = map[string]int64{}
		r.Load = &l
	}
	return r
}

func filledParts(list []model.BreakdownPart) []model.BreakdownPart {
	out := make([]model.BreakdownPart, len(list))
	for i, p := range list {
		p.Signals = orEmpty(p.Signals)
		if len(p.Parts) > 0 {
			p.Parts = filledParts(p.Parts)
		}
		out[i] = p
	}
	return out
}

func filledFindings(list []model.Finding) []model.Finding {
	out := make([]model.Finding, len(list))
	for i, f := range list {
		f.Clues = orEmpty(f.Clues)
		f.Explains = orEmpty(f.Explains)
		f.Fix = filledFixes(f.Fix)
		if f.Subject == nil {
			f.Subject = map[string]string{}
		}
		out[i] = f
	}
	return out
}

func filledFixes(list []model.Fix) []model.Fix {
	out := make([]model.Fix, len(list))
	for i, f := range list {
		f.Changes = orEmpty(f.Changes)
		out[i] = f
	}
	return out
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
