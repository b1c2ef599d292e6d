package report

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// mostCommand is how many lines a command has at most in a brief report.
const mostCommand = 4

// leftToFind are words in commands for what no run tells.
var leftToFind = lazy.Regexp(`\b(ADDRESS|SENDER|LOG|UNIT)\b`)

// fitToType says whether a command can be typed as it stands: whole lines, and nothing left to fill in.
func fitToType(command string, width int) bool {
	for _, line := range breakCommand(layout.Line(withoutComment(command, width-labelWidth)), width-labelWidth-4) {
		if utf8.RuneCountInString(line) > width-labelWidth-4 {
			return false
		}
	}
	return command != "" && !blankWord().MatchString(command) && !leftToFind().MatchString(command)
}

// withoutComment leaves out a command's comment where that makes it too long: a shell cannot
// continue one on the next line.
func withoutComment(command string, width int) string {
	if short, _, ok := strings.Cut(command, "  # "); ok && utf8.RuneCountInString(command) > width {
		return short
	}
	return command
}

// shortCommand writes as many whole lines of a command as fit; the rest is told of,
// since half a command is worse than none.
func (p *paper) shortCommand(label, text string) {
	if text == "" {
		return
	}
	laidOut := func(text string) string {
		part := newPaper(TextOptions{Width: p.width, Color: p.color})
		part.command(labelWidth+2, text)
		return string(p.paint(bold, label)) + part.b.String()[len(label):]
	}
	if all := laidOut(text); strings.Count(all, "\n") <= mostCommand {
		p.b.WriteString(all)
		return
	}
	first, _, _ := strings.Cut(layout.Clean(text), "\n")
	if part := laidOut(first); strings.Count(part, "\n") < mostCommand {
		p.b.WriteString(part)
	}
	p.para(labelWidth+2, dim, "… and more, which -v shows")
}

// noCheck is what is no check for the first screen: words in the place of a command, of which the numbers
// stand above already, and what slows a live service or a whole machine down.
var noCheck = lazy.Regexp(`^(compare|the|log) |^\w+, |\b(strace|perf trace -a|perf top|tcpdump)\b`)

// typedWords is a command line as it is typed, "" of none.
func typedWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = layout.Quote(w)
	}
	return strings.Join(quoted, " ")
}

// ownCommand says whether words are a command of Plimsoll's that measures. A run is a file, which may be a stranger's: whatever else it
// names is not to be typed.
func ownCommand(words []string) bool {
	return len(words) > 1 && words[0] == "plimsoll" && (words[1] == "run" || words[1] == "watch") && printable(words)
}

// printable says whether words are what they look like: a line feed ends a command, and other marks hide what is typed.
func printable(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		return strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) })
	})
}

// fromTheRun says of a watch with a command of its own that this comes from the run, whoever made that; "" of others.
func fromTheRun(words []string) string {
	if len(words) > 1 && words[1] == "watch" && slices.Contains(words, "--") {
		return "what is behind -- comes from the run: read it first"
	}
	return ""
}

// andThen are two parts of a sentence, either of which may be "".
func andThen(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// evidence is the command that shows the evidence of a run, "" of what is none.
func evidence(run string, r model.Report) string {
	if r.Plan.Remote != nil || r.Plan.Capture != nil {
		return ""
	}
	return "plimsoll show " + run + " -v"
}
