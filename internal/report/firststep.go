package report

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// firstFix writes a fix: the one thing to type first, what that prints and what to do then, what to do where it does not, and what it costs.
func firstFix(s *sheet, told model.Finding, r model.Report) {
	f, label := mostUseful(told.Fix), "fix"
	switch {
	case f.Undo == nothingChanged:
		label = "look"
	case told.Answer == model.Suspected:
		label = "try"
	}
	s.item(mustKeep, label, 2, atHost(told, f, r.Hosts)+f.Title)
	switch {
	case f.First != nil:
		s.whole("before", f.Before)
		s.typedFirst(f.First.Type, r)
		s.item(mustKeep, labelOf(f.First.Type), 5, s.namesRun(f.First.Then))
		s.notThere(f.First.Type, r)
	case adviceAlone(f):
		s.item(mustKeep, doFirst, mostCommand, f.Command)
	default:
		firstChange(s, told, f, r)
	}
	s.whole("cost", terms(f, r.Plan))
	back, commands := takeBack(f)
	if edit, ok := editOf(told, f); ok {
		back = edit.Back()
	}
	if f.Undo == nothingChanged {
		back = nothingBack + "; note what you change after it"
	}
	s.typed(mustKeep, "undo", commands)
	s.whole(labelUnless(commands, "undo"), back)
	measureAgain(s, r, afterLook(f), helpedIf(r, told), orElse(r.Verdict, told, f))
	if f.Undo == automatic && r.Plan.Load != nil {
		s.item(niceToKnow, "or", 2, "plimsoll tune URL --apply does it, measures again, and takes back what is in vain (plimsoll undo --all: all of it)")
	}
}

// labelOf is the label of what follows a command, or of what there is to do where there is none.
func labelOf(command string) string {
	if command == "" {
		return doFirst
	}
	return "then"
}

// firstChange writes what a fix sets, how that is typed or where it stands, and what is to be seen of it.
func firstChange(s *sheet, told model.Finding, f model.Fix, r model.Report) {
	s.item(mustKeep, "", 4, settings(f))
	s.item(context, "", 2, sizedToTest(f, r.Plan))
	if lines := typedLines(f); lines != "" {
		s.whole("before", f.Before)
		s.typed(mustKeep, "note first", noteFirst(f))
		s.typed(mustKeep, doFirst, lines)
		s.item(mustKeep, "then", 4, printsWhenSet(lines)+andInFiles(f))
		return
	}
	command, then := findSetting(told, f, r)
	s.typed(mustKeep, doFirst, command)
	s.item(mustKeep, "then", 4, then)
	s.notThere(command, r)
}

// loaded says how the load is there while a command runs that shows nothing without it, "" for any other.
func (s *sheet) loaded(command string, r model.Report) string {
	if !momentary().MatchString(command) {
		return ""
	}
	if r.Plan.Load == nil {
		return "see that users are active, and stay so while it runs"
	}
	changed := ""
	if tooShort(r.Plan.Load) {
		changed = "-d 60s"
	}
	if again := s.shortAgain(r, CommandAgain(r.Plan, r.Hosts), changed); again != "" {
		return "first, in terminal 2 where the load ran: `" + again + "`"
	}
	return strings.TrimSuffix("first, in terminal 2 where the load ran: the same command again with "+changed, " with ")
}

// typedFirst writes the command to begin with, behind what has to be there while it runs.
func (s *sheet) typedFirst(command string, r model.Report) {
	s.item(mustKeep, "before", 2, s.loaded(command, r))
	s.typed(mustKeep, doFirst, command)
}

// ifEmpty is the label of what to do where a command shows nothing.
const ifEmpty = "if empty"

// notThere adds what to do where a command does not show what it should, with the whole command for the evidence where that has room.
func (s *sheet) notThere(command string, r model.Report) {
	if command == "" {
		return
	}
	if silent().MatchString(command) {
		s.item(mustKeep, "prints", 1, "nothing, or OK: it is set; an error: nothing is set (as root?)")
		return
	}
	text := "(or a header only) as root; still so: stop"
	if hasRoot().MatchString(command) {
		text = "(or a header only) stop"
	}
	if show := evidence(s.run, r); show != "" {
		if whole := text + ", `" + show + "`"; utf8.RuneCountInString(layout.Unmarked(whole)) <= s.o.Width-labelWidth {
			text, s.showsHow = whole, true
		} else {
			text += ", see -v"
		}
	}
	s.item(mustKeep, ifEmpty, 1, text)
}

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
