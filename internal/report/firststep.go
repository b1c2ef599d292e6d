package report

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// firstFix writes a fix: what to look at, what to save and what to change, in this order, what that prints, and what it costs.
func firstFix(s *sheet, told model.Finding, r model.Report) {
	f, label := mostUseful(told.Fix), "fix"
	switch {
	case f.Undo == nothingChanged:
		label = "next"
	case told.Answer == model.Suspected:
		label = "try"
	}
	s.item(mustKeep, label, 2, atHost(told, f, r.Hosts)+f.Title)
	back, commands, note := wayBackOf(told, f)
	s.whole(lookFirst, f.Before)
	switch {
	case f.First != nil:
		s.firstStep(f, note, r)
	case adviceAlone(f):
		s.saved(note)
		s.item(mustKeep, changeThen, mostCommand, f.Command)
	default:
		firstChange(s, told, f, note, r)
	}
	s.cost(terms(f, r.Plan), againCosts(r.Plan))
	s.typed(mustKeep, "undo", commands)
	s.whole(labelUnless(commands, "undo"), back)
	measureAgain(s, r, afterwards(f), helpedIf(r, told), orElse(r.Verdict, told, f))
	if f.Undo == automatic && r.Plan.Load != nil {
		s.item(niceToKnow, "or", 2, "plimsoll tune URL --apply does it, measures again, and takes back what is in vain (plimsoll undo --all: all of it)")
	}
}

// wayBackOf is how a fix is taken back, in words and in commands, and what has to be noted for it before anything is changed.
func wayBackOf(told model.Finding, f model.Fix) (back, commands, note string) {
	back, commands = takeBack(f)
	if edit, ok := editOf(told, f); ok {
		back = edit.Back()
	}
	if f.Undo == nothingChanged {
		return nothingBack + "; before a change after it copy that file (cp -i FILE /root/), to put it back", "", ""
	}
	note = f.Save
	if without := strings.ReplaceAll(back, " (note that first)", ""); without != back {
		back, note = without, cmp.Or(note, "note what is set there now")
	}
	return back, commands, note
}

// firstStep writes a fix's own first step: a look, behind which it stands what is to be saved and done then, or the change itself.
func (s *sheet) firstStep(f model.Fix, note string, r model.Report) {
	label, then := lookFirst, "then"
	switch {
	case f.First.Type == "":
		then = changeThen
	case f.First.Old != "" || sets().MatchString(f.First.Type):
		label = changeThen
	}
	typed := f.First.Type
	if label == changeThen {
		s.saved(note)
		typed = strings.ReplaceAll(typed, "; ", "\n")
	}
	s.typedFirst(label, typed, r)
	s.notThere(typed, f.First.Then)
	if label != changeThen {
		s.saved(note)
	}
	s.item(mustKeep, then, 6, s.namesRun(f.First.Then))
}

// saved writes what has to be noted or saved before the change: a command, or words.
func (s *sheet) saved(note string) {
	if list := layout.Marked(note); len(list) == 1 && note == "`"+list[0]+"`" {
		s.typed(mustKeep, saveFirst, list[0])
		return
	}
	s.whole(saveFirst, note)
}

// sets are commands that set something.
var sets = lazy.Regexp(`\b(SET GLOBAL|ALTER SYSTEM SET|config set|sysctl -w)\b`)

// firstChange writes what a fix sets, how that is typed or where it stands, and what is to be seen of it.
func firstChange(s *sheet, told model.Finding, f model.Fix, note string, r model.Report) {
	s.item(mustKeep, "", 4, settings(f))
	s.item(context, "", 2, sizedToTest(f, r.Plan))
	if lines := typedLines(f); lines != "" {
		saved := noteFirst(f)
		s.typed(mustKeep, saveFirst, saved)
		if saved == "" {
			s.saved(note)
		}
		s.typed(mustKeep, changeThen, lines)
		s.item(mustKeep, "then", 4, printsWhenSet(lines)+andInFiles(f))
		return
	}
	command, then := findSetting(told, f, r)
	s.typed(mustKeep, lookFirst, command)
	s.notThere(command, then)
	s.item(mustKeep, "then", 5, then)
}

// loaded says how the load is there while a command runs that shows nothing without it, "" for any other.
func (s *sheet) loaded(command string, r model.Report) string {
	if !momentary().MatchString(command) {
		return ""
	}
	if r.Plan.Load == nil {
		return "look while users are active: it shows nothing without them"
	}
	changed := ""
	if tooShort(r.Plan.Load) {
		changed = "-d 60s"
	}
	if again := s.shortAgain(r, CommandAgain(r.Plan, r.Hosts), changed); again != "" {
		return "in terminal 2, where the load ran: `" + again + "`"
	}
	return strings.TrimSuffix("in terminal 2, where the load ran: the same command again with "+changed, " with ")
}

// typedFirst writes the command to begin with, behind the load that has to be there while it runs.
func (s *sheet) typedFirst(label, command string, r model.Report) {
	s.item(mustKeep, "load", 2, s.loaded(command, r))
	s.typed(mustKeep, label, command)
}

// ifEmpty is the label of what to do where a command shows nothing.
const ifEmpty = "if empty"

// notThere adds what to do where a command does not show what it should, unless what is to be done then says that.
func (s *sheet) notThere(command, then string) {
	if command == "" {
		return
	}
	if silent().MatchString(command) {
		s.item(proof, "prints", 1, "nothing, or OK: it is set; an error: nothing is set (as root?)")
		return
	}
	tool := mayShowNothing(command)
	if tool == "" || saysOfNothing().MatchString(then) {
		return
	}
	text := "(" + tool + ") as root; still so: stop, see -v"
	if hasRoot().MatchString(command) {
		text = "(" + tool + ") stop, see -v"
	}
	s.item(proof, ifEmpty, 1, text)
}

// Of a line of commands mayShowNothing is the first that may have nothing to show, with how that looks; "" where each always shows something.
func mayShowNothing(command string) string {
	for _, part := range strings.Split(command, "; ") {
		part = typedInHost(part)
		tool, _, _ := strings.Cut(part, " ")
		switch {
		case strings.Contains(part, "| wc "):
		case strings.HasPrefix(part, "plimsoll trace"):
			return "the trace"
		case slices.Contains([]string{"ss", "ps", "lslocks"}, tool) && !strings.Contains(part, "grep"):
			return tool + ": a header only"
		case strings.Contains(part, "grep"), slices.Contains([]string{"awk", "find", "findmnt", "journalctl", "lsof"}, tool):
			return tool
		}
	}
	return ""
}

// saysOfNothing are the words of a step that says itself what it means where the command before it shows nothing, or where that is what was found.
var saysOfNothing = lazy.Regexp(`\b[Nn]one\b|[Nn]o (such )?line|[Nn]othing (shown|printed)|[Nn]othing:|is missing|[Nn]either|[Nn]o unit\b|if it shows (a|no)|[Nn]ot there|if (it|the line) has none`)

// silent are commands that show nothing, or OK, when they did what they should; hasRoot are those of which no more is seen as root.
var (
	silent  = lazy.Regexp(`\b(SET GLOBAL|ALTER SYSTEM|config set|DROP INDEX|CREATE INDEX)\b`)
	hasRoot = lazy.Regexp(`^(sudo|curl|plimsoll|ip netns exec|nsenter|mysql|psql|redis-cli)\b`)
)

// printsWhenSet says what is to be seen of a command that sets something.
func printsWhenSet(lines string) string {
	says := "the new value"
	for _, line := range strings.Split(lines, "\n") {
		command := typedInHost(line)
		if !strings.HasPrefix(command, "sysctl ") && !strings.Contains(command, "renice ") && !strings.Contains(command, "taskset ") {
			says = "nothing if it worked"
		}
	}
	return "it prints " + says + "; an error: nothing is set (as root?)"
}

// andInFiles adds to what is typed what stands in a file besides.
func andInFiles(f model.Fix) string {
	for _, c := range moving(f) {
		if c.Kind == model.ChangeBacklog && c.Value != "" {
			return ". Then backlog=" + c.Value + " behind nginx's listen (PHP-FPM: listen.backlog), and restart it"
		}
		if where := whereSet(c); where != "" {
			return ". Then the rest" + where
		}
	}
	return ""
}

// moving are the changes of a fix that change anything.
func moving(f model.Fix) []model.FixChange {
	return slices.DeleteFunc(slices.Clone(f.Changes), func(c model.FixChange) bool { return c.Old != "" && c.Old == c.Value })
}

// settings are changesOf without where things stand, which is for what follows.
func settings(f model.Fix) string {
	text := changesOf(f)
	for _, c := range f.Changes {
		if where := whereSet(c); where != "" {
			text = strings.ReplaceAll(text, where, "")
		}
	}
	return text
}

// findSetting is the command that shows where settings of a service stand, and what to do there; "" where the run does not tell.
func findSetting(told model.Finding, f model.Fix, r model.Report) (command, then string) {
	list := moving(f)
	if len(list) == 0 {
		return "", ""
	}
	var names []string
	for _, c := range list {
		names = append(names, layout.Line(c.Name))
	}
	edit, _ := editOf(told, f)
	root, there := rootOf(list[0].Host, r.Hosts), ""
	if root != "" {
		there = "in that container (docker exec, kubectl exec): "
	}
	switch c := list[0]; c.Kind {
	case model.ChangeNginx:
		look := "nginx -T | grep -nE " + layout.Quote("^# conf|"+strings.Join(names, "|"))
		if root != "" {
			edit, _ = layout.EditOf("nginx-files")
			look = "grep -rnE " + layout.Quote(strings.Join(names, "|")) + " " + root + "/etc/nginx"
		}
		return look, there + edit.Steps("the values above ("+contextOf(list[0].Name)+", if it is nowhere)")
	case model.ChangePHPFPM:
		return `grep -rnE '^[; ]*pm\.' ` + root + "/etc " + root + "/usr/local/etc",
			there + edit.Steps("the values above, without a ; before them (of several files the pool's)")
	case model.ChangeBacklog:
		return whoListens(c, r), "users: names the program, Send-Q is its queue now: set it in the program's configuration (nginx: listen with backlog=; PHP-FPM: listen.backlog), then restart it"
	}
	return "", ""
}

// rootOf is where the files are of a host that is known by a process, "" of others. They are read from outside: what root ran
// by nsenter in a container would be the container's own program, with root's capabilities outside of it.
func rootOf(name string, hosts []model.Host) string {
	at := slices.IndexFunc(hosts, func(h model.Host) bool { return h.Name == name })
	if at < 0 {
		return ""
	}
	kind, arg, _ := strings.Cut(specAtMachine(hosts[at]), ":")
	switch {
	case kind == "pid" && isNumber(arg):
		return "/proc/" + arg + "/root"
	case kind == "container" && hasOwnNetwork(hosts[at], hosts):
		return fmt.Sprintf("/proc/$(lsns -rno PID %d | head -n1)/root", hosts[at].NetNS)
	}
	return ""
}

// contextOf is the block of nginx.conf in which a setting stands that has none yet.
func contextOf(setting string) string {
	switch {
	case setting == "worker_connections":
		return "in events"
	case strings.HasPrefix(setting, "worker_"):
		return "outside all blocks"
	}
	return "in http"
}

// editOf is how the file is changed in which a fix's settings stand, false of one that no file has.
func editOf(told model.Finding, f model.Fix) (layout.Edit, bool) {
	if list := moving(f); len(list) > 0 && typedLines(f) == "" {
		switch list[0].Kind {
		case model.ChangeNginx:
			return layout.EditOf("nginx")
		case model.ChangePHPFPM:
			return layout.EditPHP(programOf(told)), true
		}
	}
	return layout.Edit{}, false
}

// programOf is the program that has what a finding is about, as its rule's clue "server" names it; "" where none does.
func programOf(told model.Finding) string {
	for _, c := range told.Clues {
		if c.ID == serverClue && c.Truth == model.True {
			return c.Names["owner"]
		}
	}
	return ""
}

// whoListens shows whose a listener is.
func whoListens(c model.FixChange, r model.Report) string {
	pieces := []layout.Piece{{Text: "ss -lxp"}}
	if _, port, err := net.SplitHostPort(c.Name); err == nil && isNumber(port) {
		pieces = []layout.Piece{{Text: fmt.Sprintf("ss -ltnp sport = :%s", port)}}
	}
	return ByHand{Plan: r.Plan, Hosts: r.Hosts}.Command(pieces, map[string]string{"host": c.Host}, nil)
}

// typedLines are the commands that make a fix's changes, a line each.
func typedLines(f model.Fix) string {
	var list []string
	for _, c := range f.Changes {
		if c.Type != "" && (c.Old == "" || c.Old != c.Value) {
			list = append(list, c.Type)
		}
	}
	return strings.Join(list, "\n")
}

// atHost says on which machine a fix is made, "" where there is only this one.
func atHost(told model.Finding, f model.Fix, hosts []model.Host) string {
	name := told.Subject["host"]
	if len(f.Changes) > 0 {
		name = cmp.Or(f.Changes[0].Host, name)
	}
	if onHost(name, hosts) == "" {
		return ""
	}
	return "on " + layout.Line(name) + ": "
}

// sizedToTest says of a number of workers that it is no more than this test's own, "" of anything else.
func sizedToTest(f model.Fix, plan model.Plan) string {
	at := slices.IndexFunc(f.Changes, func(c model.FixChange) bool { return c.Kind == model.ChangePHPFPM && c.Value != "" })
	if at < 0 {
		return ""
	}
	value := f.Changes[at].Value
	if plan.Load != nil && value == strconv.Itoa(plan.Load.Connections+1) {
		return value + ": one for each of the " + plural(plan.Load.Connections, "connection", "connections") + " of this test, and one more; your users need as many as they send at once"
	}
	return value + ": one more for each request that waited, as far as the CPUs and half of the free memory suffice; your users may send more or fewer"
}
