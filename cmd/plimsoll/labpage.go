package main

import (
	"fmt"

	"plimsoll/internal/lab"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
)

// testPage is what came of a lab test, as a page: its tables are those of the text.
func testPage(doc labTestDoc) sheet.Page {
	t := &sheet.Tested{Sentence: totals(doc.Tally), Notes: []string{whereKept(doc)}}
	if doc.Interrupted {
		t.Notes = append(t.Notes, notAllTrials)
	}
	matrix := sheet.Table{Title: "What was the truth, and what was named", Head: []string{"truth", "named", "runs", "judged"}, Rows: matrixRows(doc.Tally), Alarms: map[int]bool{}}
	for i, c := range doc.Tally.Cells {
		matrix.Alarms[i] = !c.Right
	}
	trials := sheet.Table{Title: "The trials", Head: []string{"trial", "outcome", "named", "to the verdict", "what is wrong"}, Alarms: map[int]bool{}}
	for i, one := range doc.Trials {
		trials.Rows = append(trials.Rows, trialRow(one))
		trials.Alarms[i] = one.Refused == "" && len(one.Wrong()) > 0
	}
	t.Tables = append(t.Tables, matrix,
		sheet.Table{Title: "Rules", Head: []string{"rule", "truth", "named", "both", "precision", "recall"}, Rows: scoreRows(doc.Tally)},
		sheet.Table{Title: "Beside simple ways of judging", Head: []string{"way", "cause found", "and no other", "quiet where healthy"}, Rows: wayRows(doc.Ways)},
		trials)
	return sheet.Page{Title: "Plimsoll: " + t.Sentence, Tested: t}
}

// tunedPage is what came of tuning cases, as a page: of a single one its walk, too.
func tunedPage(results []*lab.TuneResult) sheet.Page {
	right := 0
	table := sheet.Table{Title: "Cases, tuned and taken back", Head: []string{"case", "came to", "steps", "at the end", "good/s", "after", "undone", "what is wrong"}, Alarms: map[int]bool{}}
	for i, r := range results {
		if r.Pass {
			right++
		}
		table.Alarms[i] = !r.Pass
		table.Rows = append(table.Rows, append(tuneCells(r), wrongs(r.Wrong)))
	}
	p := sheet.Page{Tested: &sheet.Tested{Sentence: fmt.Sprintf("%d of %d cases came to what they should.", right, len(results)), Tables: []sheet.Table{table}}}
	p.Title = "Plimsoll: " + p.Tested.Sentence
	if len(results) == 1 && len(results[0].Tuning.Steps) > 0 {
		p.Tuned = sheet.Walk(results[0].Tuning)
	}
	return p
}

// tuneCells is what came of tuning a case, as a row of the table of cases.
func tuneCells(r *lab.TuneResult) []string {
	t := r.Tuning
	switch {
	case r.Came == lab.TuneSkipped:
		return []string{r.Case, string(r.Came), "", r.Why, "", "", ""}
	case len(t.Steps) == 0:
		return []string{r.Case, "WRONG", "", "", "", "", ""}
	}
	undone, end, came := "the same", string(t.End.Answer), string(r.Came)
	if len(r.Different) > 0 {
		undone = "NOT THE SAME"
	}
	if root := t.Steps[len(t.Steps)-1].Root; t.End.Answer == model.AnswerCause && root != nil {
		end = root.Rule
	}
	if !r.Pass {
		came = "WRONG"
	}
	return []string{r.Case, came, fmt.Sprint(len(t.Steps)), end,
		layout.OrDash(t.Steps[0].GoodRPS, layout.Rate), layout.OrDash(t.End.GoodRPS, layout.Rate), undone}
}
