package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/lab"
	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

func labList(w *world) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "list the cases, as users report them", Args: noArguments,
		Long:    "Lists every case with what the person on call is told. What is really the matter\nis left out, so that you can practise; --truth adds it.",
		Example: "  plimsoll lab list\n  plimsoll lab list --truth --json | jq -r '.cases[] | select(.truth.then) | .id'"}
	truth := c.Flags().Bool("truth", false, "also say what is the matter; with --json, everything of each case")
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		list, err := theLab().List()
		if err != nil {
			return err
		}
		switch {
		case *asJSON && *truth:
			return printJSON(w.stdout, caseTruths{list})
		case *asJSON:
			return printJSON(w.stdout, caseList{untold(list)})
		}
		for _, x := range list {
			fmt.Fprintf(w.stdout, "%-20s %s\n", x.ID, wrapped(x.Symptom, w.columns()-21, 21))
			if *truth {
				fmt.Fprintf(w.stdout, "%21s%s\n%21s%s\n", "", wrapped(x.Title, w.columns()-21, 21), "", wrapped(truthWords(x.Truth), w.columns()-21, 21))
			}
		}
		return nil
	}
	return withExits(c, exitOK, exitUsage)
}

// told is what of a case may be said before it is revealed.
type told struct {
	ID      string `json:"id,omitempty"`
	Symptom string `json:"symptom"`
}

// What lab list prints with --json, and with --truth.
type (
	caseList struct {
		Cases []told `json:"cases"`
	}
	caseTruths struct {
		Cases []*lab.Case `json:"cases"`
	}
)

func untold(list []*lab.Case) []told {
	out := []told{}
	for _, c := range list {
		out = append(out, told{c.ID, c.Symptom})
	}
	return out
}

// truthWords says a truth in one line.
func truthWords(t lab.Truth) string {
	if len(t.Root) == 0 {
		return string(t.Answer)
	}
	text := string(t.Answer) + ": " + strings.Join(t.Root, " or ")
	for _, n := range t.Then {
		text += ", then " + strings.Join(n.Root, " or ")
	}
	return text
}

const labUpLong = `Brings a case up and leaves it standing until "lab down", for a person to find out
what is the matter. It prints what users report, the command that loads the
service, and where to look by hand; the truth it keeps to itself: "lab reveal"
tells it. With --random not even the case's name is told.

What the whole machine shares (nf_conntrack_max, fs.file-max,
netdev_max_backlog) is changed from now until "lab down".`

func labUp(w *world) *cobra.Command {
	c := &cobra.Command{Use: "up [CASE]", Short: "bring a case up, to practise on", ValidArgsFunction: completeCase, Long: labUpLong,
		Example: "  plimsoll lab up --random\n  plimsoll lab up php-workers --mend max-children"}
	mends := mendFlag(c)
	random := c.Flags().Bool("random", false, "a case that you do not know")
	asJSON := jsonFlag(c)
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case *random && (len(args) > 0 || len(*mends) > 0):
			return usage(c.CommandPath(), "with --random the case is not yours to choose, or to mend")
		case !*random && len(args) != 1:
			return usage(c.CommandPath(), "it needs a case, or --random; plimsoll lab list shows the cases")
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		x, err := chosen(args)
		if err != nil {
			return err
		}
		w.mayChange()
		if err := theLab().Up(c.Context(), x.ID, *mends...); err != nil {
			return labFailed(err)
		}
		command, err := theLab().Command(x, *mends)
		if err != nil {
			return err
		}
		g := newGame(x, command, *random)
		if *asJSON {
			return printJSON(w.stdout, g)
		}
		g.print(w)
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitMissing, exitInterrupted)
}

// chosen is the case that the user names, or any.
func chosen(args []string) (*lab.Case, error) {
	if len(args) == 1 {
		x, err := theLab().Case(args[0])
		return x, fail(exitUsage, err)
	}
	list, err := theLab().List()
	if err != nil {
		return nil, err
	}
	return list[rand.N(len(list))], nil
}

func mendFlag(c *cobra.Command) *[]string {
	return c.Flags().StringArray("mend", nil, "mend the limit `ID` of the case beforehand (\"lab reveal CASE\" names them); may be given again")
}

// game is what a person who practises is told.
type game struct {
	Case    string `json:"case,omitempty"`
	Symptom string `json:"symptom"`
	// Drive is the command line that loads the service, with Plimsoll watching.
	Drive  string   `json:"drive"`
	Look   []string `json:"look"`
	Reveal string   `json:"reveal"`
	Down   string   `json:"down"`
}

// looks are the same for every case: which of them to take is what there is to learn.
var looks = []string{
	"ip netns exec plimsoll-lab-server ss -ltnp",
	"ip netns exec plimsoll-lab-server ss -tan state all | awk '{print $1}' | sort | uniq -c",
	"ip netns exec plimsoll-lab-server nstat -az",
	"pidstat -wt 1",
	"vmstat 1",
	"iostat -x 1",
	"dmesg --follow",
	"tail -f /run/plimsoll-lab/case/*.log",
}

func newGame(x *lab.Case, command []string, random bool) game {
	g := game{Case: x.ID, Symptom: x.Symptom, Drive: driveLine(x, command), Look: looks, Reveal: "plimsoll lab reveal", Down: "plimsoll lab down"}
	if random {
		g.Case = ""
	}
	return g
}

func (g game) print(w *world) {
	name := "A case"
	if g.Case != "" {
		name = g.Case
	}
	fmt.Fprintf(w.stdout, "%s is up. What you are told:\n\n  %s\n\n", name, wrapped("“"+g.Symptom+"”", w.columns()-2, 2))
	fmt.Fprint(w.stdout, "The service is in plimsoll-lab-server (10.77.0.2), its users in\nplimsoll-lab-client (10.77.0.1). Load it, and let Plimsoll say what it thinks:\n\n")
	fmt.Fprintf(w.stdout, "  %s\n\n", g.Drive)
	fmt.Fprint(w.stdout, "Or load it and look for yourself (put “load” in place of “run”, without --host):\n\n")
	for _, line := range g.Look {
		fmt.Fprintf(w.stdout, "  %s\n", line)
	}
	fmt.Fprintf(w.stdout, "\nWhat was it?   %s\nTake it down   %s\n", g.Reveal, g.Down)
}

// driveLine is what a person types to drive a case that is up.
func driveLine(x *lab.Case, command []string) string {
	line := "ip netns exec plimsoll-lab-client plimsoll"
	hosts := " --host client=local --host server=netns:plimsoll-lab-server"
	if x.Load.URL == "" && len(command) == 0 {
		return "plimsoll watch -d " + time.Duration(x.Load.Duration).String() + " --host server=netns:plimsoll-lab-server"
	}
	if x.Load.URL == "" {
		return line + " watch" + hosts + " -- " + strings.Join(command, " ")
	}
	line += " run " + x.Load.URL + " -c " + strconv.Itoa(x.Load.Connections) + " -d " + time.Duration(x.Load.Duration).String()
	if x.Load.Rate > 0 {
		line += " -R " + strconv.FormatFloat(x.Load.Rate, 'f', -1, 64)
	}
	if x.Load.NoKeepAlive {
		line += " --no-keepalive"
	}
	return line + hosts
}

const labRevealLong = `Tells the truth of the case that is up, or of CASE: what was done to the host,
what a right verdict names, how that comes about, what shows it by hand, and what
mends it. The case stays up.`

func labReveal(w *world) *cobra.Command {
	c := &cobra.Command{Use: "reveal [CASE]", Short: "tell what is the matter with the case that is up", ValidArgsFunction: completeCase, Long: labRevealLong,
		Example: "  plimsoll lab reveal\n  plimsoll lab reveal conntrack-full",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c.CommandPath(), "%q is too much; it takes one case, or none for the one that is up", args[1])
			}
			return nil
		}}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		id := ""
		if len(args) == 1 {
			id = args[0]
		} else if up, err := theLab().Standing(); err != nil {
			return labFailed(err)
		} else if id = up; id == "" {
			return usage(c.CommandPath(), "no case is up; name one")
		}
		x, err := theLab().Case(id)
		if err != nil {
			return fail(exitUsage, err)
		}
		if *asJSON {
			return printJSON(w.stdout, x)
		}
		set, err := ruleSet(nil)
		if err != nil {
			return err
		}
		reveal(w.stdout, x, set, w.columns())
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitMissing, exitRules)
}

// reveal writes all there is to know of a case.
func reveal(out io.Writer, x *lab.Case, set ruleset.Rules, width int) {
	fmt.Fprintf(out, "%s\n\n%s\n", layout.Wrap(x.ID+": "+x.Title, width), layout.Wrap(strings.TrimSpace(x.What), width))
	fmt.Fprintf(out, "\nA right verdict is %s.\n", wrapped(truthWords(x.Truth), width-20, 2))
	for i, n := range x.Truth.Limits() {
		if i > 0 {
			fmt.Fprintln(out, "\nWhat binds next:")
		}
		for _, id := range n.Root {
			revealRule(out, set.Get(id), id, n.Subject, width)
		}
	}
	if len(x.Truth.Quiet) > 0 {
		fmt.Fprintf(out, "\nLook-alikes that it is not: %s.\n", wrapped(strings.Join(x.Truth.Quiet, ", "), width-28, 2))
	}
	fmt.Fprintln(out, "\nWhat mends it")
	for _, m := range x.Mends {
		fmt.Fprintf(out, "  %s (--mend %s)\n", wrapped(m.Title, width-4, 4), m.ID)
		for _, name := range slices.Sorted(maps.Keys(m.Set)) {
			fmt.Fprintf(out, "    %s: %q → %q\n", name, x.Vars[name], m.Set[name])
		}
	}
	if len(x.Mends) == 0 {
		fmt.Fprintln(out, "  nothing has to be")
	}
	fmt.Fprintf(out, "\nMeasured when the case was made\n  %s\n", wrapped(x.Seen.Faulty, width-2, 2))
	if x.Truth.Answer == model.AnswerCause {
		fmt.Fprintf(out, "  mended: %s\n", wrapped(x.Seen.Mended, width-10, 2))
	}
}

// revealRule writes the mechanism behind a rule and how to see it by hand.
func revealRule(out io.Writer, r *ruleset.Rule, id string, subject map[string]string, width int) {
	if r == nil {
		return // the verdict's tests find a truth without a rule
	}
	fmt.Fprintf(out, "\n%s\n  %s\n", id, wrapped(strings.TrimSpace(r.Story), width-2, 2))
	fmt.Fprintln(out, "\n  By hand, in the host (ip netns exec plimsoll-lab-server …):")
	seen := map[string]bool{}
	for _, c := range r.Clues {
		line := byHandFor(c.ByHand, subject)
		if line != "" && !seen[line] {
			seen[line] = true
			fmt.Fprintf(out, "    %s\n", layout.Indent(line, "    "))
		}
	}
}

// blank is a place in a rule's command that a run's values fill.
var blank = lazy.Regexp(`\{\{[^}]*\.([A-Za-z_]+)[^}]*\}\}`)

// byHandFor fills in what the truth knows of the subject; what only a run can
// tell stays a name in angle brackets.
func byHandFor(text string, subject map[string]string) string {
	return strings.TrimSpace(blank().ReplaceAllStringFunc(text, func(place string) string {
		name := blank().FindStringSubmatch(place)[1]
		if v, ok := subject[name]; ok {
			return v
		}
		return "<" + strings.ToLower(name) + ">"
	}))
}
