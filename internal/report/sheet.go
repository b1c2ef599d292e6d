package report

import (
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
)

// briefLines is how many lines a brief report has at most: those of the smallest
// terminal but one, in which the shell asks for the next command.
const briefLines = 23

// doFirst marks the one thing that is typed first. Where something is changed there are up to three: what to look at, what to note or save,
// which the way back needs, and the change, in this order.
const (
	doFirst    = "do first"
	lookFirst  = "look"
	saveFirst  = "save"
	changeThen = "change"
)

// block is some lines of a brief report that are shown or left out together.
type block struct {
	text    string
	shorter []string // the same in fewer lines, each in fewer than the one before
	keep    int      // those of the lowest go first
	yields  bool     // shorter does before anything goes that is a reason
	dear    int      // the more, the later it is made shorter
}

// less is a block that has a shorter text, in that.
func (b block) less() block {
	b.text, b.shorter = b.shorter[0], b.shorter[1:]
	return b
}

// The blocks by what they are worth. What has mustKeep stays.
const (
	niceToKnow = iota
	background
	further
	proof
	context
	mustKeep
)

// sheet collects the blocks of a brief report.
type sheet struct {
	o      TextOptions
	run    string // how the run is named on a command line
	kept   string // the same of one that plimsoll again makes again, "" of others
	blocks []block
	steps  []Step // what the blocks say, as long as it is
}

// Step is a thing to do, or its price, under a label, which is "" where it goes on with the one before.
type Step struct {
	Label, Text string
	Typed       bool // it is a command, to be typed as it stands
}

// add lays a block out.
func (s *sheet) add(keep int, write func(p *paper)) {
	p := newPaper(s.o)
	write(p)
	s.blocks = append(s.blocks, block{text: p.b.String(), keep: keep})
}

// item adds a labelled text of at most so many lines.
func (s *sheet) item(keep int, label string, most int, text string) {
	if text != "" {
		s.add(keep, func(p *paper) { p.short(label, most, text) })
		last := &s.blocks[len(s.blocks)-1]
		toOne := slices.Contains([]string{"offered", "got", "how sure"}, label)
		if n := last.lines(); n > 2 || n == 2 && toOne {
			least := (n + 1) / 2
			if toOne {
				least = 1
			}
			last.dear = dearness(label)
			last.shorten(s.o, least, func(p *paper, most int) { p.short(label, most, text) })
			if tellsWhich().MatchString(text) {
				last.shorter = slices.DeleteFunc(last.shorter, func(short string) bool { return !saysWhich().MatchString(short) })
			}
		}
		s.numbered(label, most, text)
		s.steps = append(s.steps, Step{Label: label, Text: layout.Unmarked(text)})
	}
}

// tellsWhich are the words by which one is told why an answer is not sure, or which sign is missing; saysWhich are those that no shorter text
// may lack then.
var (
	tellsWhich = lazy.Regexp(`^not sure: (all|its)|; (assumed|not read|not so): `)
	saysWhich  = lazy.Regexp(`may\s+also\s+be|ruled\s+out|(assumed|not\s+read|not\s+so):\s+\S`)
)

// prices adds what a step costs, and how it is taken back. Neither is ever cut.
func (s *sheet) prices(cost, back string) {
	s.whole("cost", cost)
	s.whole("undo", back)
}

// cost adds what a step costs, of which nothing is left out but what measuring again costs, where there is no room.
func (s *sheet) cost(text, again string) {
	s.whole("cost", text)
	last := &s.blocks[len(s.blocks)-1]
	p := newPaper(s.o)
	p.hang(0, labelWidth, "cost", bold, layout.Line(text+again))
	if with := p.b.String(); strings.Count(with, "\n") > last.lines() {
		last.text, last.shorter, last.yields = with, []string{last.text}, true
	} else {
		last.text = with
	}
}

// whole adds a labelled text of which nothing is left out, however much else there is.
func (s *sheet) whole(label, text string) {
	if text != "" {
		s.add(mustKeep, func(p *paper) { p.hang(0, labelWidth, label, bold, layout.Line(text)) })
		s.steps = append(s.steps, Step{Label: label, Text: layout.Unmarked(text)})
	}
}

// shorten adds to a block what write writes in fewer lines than it has, in no fewer than least.
func (b *block) shorten(o TextOptions, least int, write func(p *paper, most int)) {
	now := b.lines()
	for most := now - 1; most >= least; most-- {
		p := newPaper(o)
		write(p, most)
		if text := p.b.String(); strings.Count(text, "\n") < now && strings.Count(text, "…") <= strings.Count(b.text, "…") {
			now, b.shorter = strings.Count(text, "\n"), append(b.shorter, text)
		}
	}
}

// dearness is how dear the lines under a label are: what to do is never half said as long as anything else can be said in fewer words.
func dearness(label string) int {
	switch label {
	case "then", doFirst, changeThen:
		return 4
	case "again":
		return 3
	case "goes into": // where the time goes is the answer of a capacity
		return 2
	}
	return 0
}

// stepMark is where a numbered step of a text begins.
var stepMark = lazy.Regexp(`(?:^| )[\dA-C]\) `)

// stepsOf are a text's numbered steps, each whole, nil of one that has none.
func stepsOf(text string) (list []string) {
	at := stepMark().FindAllStringIndex(text, -1)
	if len(at) < 2 {
		return nil
	}
	if lead := strings.TrimSpace(text[:at[0][0]]); lead != "" {
		list = append(list, lead)
	}
	for i, from := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		list = append(list, strings.TrimSpace(text[from[0]:end]))
	}
	return list
}

// numbered lays the numbered steps of the text that was added last out a step to a line, where that has room, else one behind the other.
func (s *sheet) numbered(label string, most int, text string) {
	list := stepsOf(text)
	if list == nil {
		return
	}
	p, last := newPaper(s.o), &s.blocks[len(s.blocks)-1]
	for _, step := range list {
		p.short(label, most, step)
		label = ""
	}
	if all := p.b.String(); strings.Count(all, "\n") > strings.Count(last.text, "\n") {
		*last = block{text: all, shorter: []string{last.text}, keep: last.keep, dear: 1}
	} else {
		last.text = all
	}
}

// typed adds a command to be typed, under a label, "" for none.
func (s *sheet) typed(keep int, label, command string) {
	if command != "" {
		s.add(keep, func(p *paper) { p.shortCommand(label, command) })
		s.steps = append(s.steps, Step{Label: label, Text: command, Typed: true})
	}
}

// fit leaves blocks out, the last of those least worth keeping first, until they have
// no more than so many lines. Where that is not enough it shortens what stays, the longest first. What there is room for in the end comes back.
func fit(blocks []block, most int) string {
	blocks = slices.Clone(blocks)
	var out []int            // what was left out, in that order
	whole := map[int]block{} // what was shortened, as it was
	shorten := func(i int) {
		if _, before := whole[i]; !before {
			whole[i] = blocks[i]
		}
		blocks[i] = blocks[i].less()
	}
	for {
		n, least, longest, yielding := 0, -1, -1, -1
		for i, b := range blocks {
			if slices.Contains(out, i) {
				continue
			}
			n += b.lines()
			if b.keep < mustKeep && b.text != "" && (least < 0 || b.keep <= blocks[least].keep) {
				least = i
			}
			if len(b.shorter) > 0 && b.yields {
				yielding = i
			}
			if len(b.shorter) > 0 && (longest < 0 || b.shortenedBefore(blocks[longest])) {
				longest = i
			}
		}
		switch {
		case n <= most || least < 0 && longest < 0:
			room := madeWhole(blocks, whole, most-n)
			return joined(blocks, broughtBack(blocks, out, room))
		case yielding >= 0 && (least < 0 || blocks[least].keep >= proof):
			shorten(yielding)
		case least >= 0:
			out = append(out, least)
		default:
			shorten(longest)
		}
	}
}

// madeWhole puts those back that were shortened, as far as there is room, the dearest first, and says how many lines are left.
func madeWhole(blocks []block, whole map[int]block, room int) int {
	order := slices.Sorted(maps.Keys(whole))
	slices.SortStableFunc(order, func(a, b int) int { return rank(whole[a]) - rank(whole[b]) })
	for _, i := range order {
		b := whole[i]
		for b.lines()-blocks[i].lines() > room && len(b.shorter) > 0 {
			b = b.less()
		}
		if more := b.lines() - blocks[i].lines(); more <= room {
			room -= more
			blocks[i] = b
		}
	}
	return room
}

// rank orders what was shortened by how soon it is put back.
func rank(b block) int {
	if b.yields {
		return 1
	}
	return -b.dear
}

// lines is how many lines a block has.
func (b block) lines() int { return strings.Count(b.text, "\n") }

// shortenedBefore says whether a block is made shorter before another one.
func (b block) shortenedBefore(o block) bool {
	if b.dear != o.dear {
		return b.dear < o.dear
	}
	return b.lines() > o.lines()
}

// broughtBack are those that stay out when what has room has come back, the most worth keeping first.
func broughtBack(blocks []block, out []int, room int) []int {
	var still []int
	for _, i := range slices.Backward(out) {
		if n := blocks[i].lines(); n <= room {
			room -= n
		} else {
			still = append(still, i)
		}
	}
	return still
}

// joined is the blocks' text, without those that are out.
func joined(blocks []block, out []int) string {
	var all strings.Builder
	for i, b := range blocks {
		if !slices.Contains(out, i) {
			all.WriteString(b.text)
		}
	}
	return all.String()
}

// short is hang in the report's own column, of at most so many lines.
func (p *paper) short(label string, most int, text string) {
	p.hang(0, labelWidth, label, bold, shortest(text, p.width-labelWidth, most))
}

// shortest leaves out of text what does not fit so many lines, from the end of a sentence or of
// a part of one on; only where there is none is it cut, and that shows.
func shortest(text string, width, most int) string {
	lines, sources := laid(layout.Line(text), width, width)
	if len(lines) <= most {
		return text
	}
	lines = sources
	whole := strings.Join(lines[:most], " ") + " " // a part may end with the line
	for _, end := range []string{". ", "; ", " (", ", "} {
		if at := strings.LastIndex(whole, end); at >= len(whole)/3 {
			return whole[:at]
		}
	}
	return strings.Join(lines[:most-1], " ") + " " + cut(lines[most-1]+" "+lines[most], width-1)
}
