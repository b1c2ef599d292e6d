package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// mostUseful is the first fix of which all values are known, and that changes anything: one that
// would do nothing here has no value (a process that hardly computes is not to be slowed down),
// or sets what is set. Else the first.
func mostUseful(list []model.Fix) model.Fix {
	unknown := func(c model.FixChange) bool { return c.Kind != model.ChangePerson && c.Value == "" }
	moves := func(c model.FixChange) bool { return c.Value == "" || c.Value != c.Old }
	for _, f := range list {
		if !slices.ContainsFunc(f.Changes, unknown) && (len(f.Changes) == 0 || slices.ContainsFunc(f.Changes, moves)) {
			return f
		}
	}
	return list[0]
}

// automatic is a fix that tune makes, and takes back.
const automatic = "automatic"

// terms are what a fix of a run with that plan risks and costs, in words.
func terms(f model.Fix, plan model.Plan) string {
	command := ""
	if f.First != nil {
		command = f.First.Type
	}
	looks := strings.Join(slices.DeleteFunc([]string{whileLoaded(command, plan), whileItLooks(f)}, func(s string) bool { return s == "" }), ", ")
	if f.Undo == nothingChanged {
		return layout.Line(andThen(cmp.Or(looks, "no risk"), f.Costs))
	}
	restart, risk := restartOf(f), f.Risk
	if risk == "low" && cutsOff(restart) { // who has users calls a restart no low risk
		risk = "medium"
	}
	parts := []string{risk + " risk", restarts(restart, f)}
	if text := lasts(f); text != "" {
		parts = append(parts, text)
	}
	if f.MemoryBytes != nil && *f.MemoryBytes >= 1 {
		parts = append(parts, "up to "+layout.Bytes(int64(*f.MemoryBytes))+" more memory than now")
	}
	if looks != "" {
		looks = "; looking: " + looks
	}
	return strings.Join(parts, ", ") + andCosts(f.Costs) + looks
}

const (
	// nothingChanged is the undo of a fix that is a look, impossible of one that cannot be taken back.
	nothingChanged = "none"
	impossible     = "impossible"
	// lookingAlone is the price of a look, nothingBack how it is taken back, noSetting that of no step at all.
	lookingAlone = "nothing"
	nothingBack  = "nothing: a look changes nothing"
	noSetting    = "nothing: no setting was changed"
)

// againCosts is the price of measuring again with a load of ours, "" where it needs none.
func againCosts(plan model.Plan) string {
	if plan.Load == nil {
		return ""
	}
	return "; checking repeats this load"
}

// whileItLooks is what a command costs the service while it runs, "" for little.
func whileItLooks(f model.Fix) string {
	if f.First == nil {
		return ""
	}
	command := typedInHost(f.First.Type)
	tool, _, _ := strings.Cut(strings.TrimPrefix(command, "plimsoll "), " ")
	switch {
	case tool == "strace":
		return "the process is a lot slower until ^C"
	case slices.Contains([]string{"trace", "perf", "tcpdump"}, tool), strings.Contains(command, "plimsoll trace "):
		return "requests a few percent slower meanwhile"
	case strings.Contains(f.First.Then, "plimsoll trace ") || strings.Contains(f.First.Then, "--trace full"):
		return "requests some 7 % slower while a trace runs"
	case strings.Contains(command, "EXPLAIN (ANALYZE"):
		return "it runs the statement once"
	}
	return ""
}

// wayIn is what stands before a command so that it is typed at a host, or as another user.
var wayIn = lazy.Regexp(`^(sudo (-u \S+ )?|ip netns exec \S+ |nsenter (-\w|\d+|\$\(lsns [^)]*\)| )+)+`)

// typedInHost is a command without what leads to where it is typed.
func typedInHost(command string) string { return wayIn().ReplaceAllString(command, "") }

// andCosts adds what a rule says of its fix' price; nothing is none.
func andCosts(text string) string {
	if text == "" || text == lookingAlone {
		return ""
	}
	return "; " + layout.Line(text)
}

// restartOf says what has to restart for a fix that one makes by hand. A backlog, which tune sets
// on the open socket, stands for a person in the configuration that the service reads when it starts.
func restartOf(f model.Fix) string {
	if slices.ContainsFunc(f.Changes, func(c model.FixChange) bool {
		return c.Kind == model.ChangeBacklog && (c.Old == "" || c.Old != c.Value)
	}) {
		return "service"
	}
	return f.Restart
}

// cutsOff says whether a restart ends what users have open.
func cutsOff(restart string) bool { return !slices.Contains([]string{"none", "", "reload"}, restart) }

// restarts says what restarts, and what becomes of the requests under way.
func restarts(word string, f model.Fix) string {
	sets := func(kind string) bool {
		return slices.ContainsFunc(f.Changes, func(c model.FixChange) bool { return c.Kind == kind })
	}
	name := whatRestarts(word, f)
	switch {
	case word == "reload" && sets(model.ChangePHPFPM):
		return "reloads PHP-FPM (requests under way are cut, unless process_control_timeout is set)"
	case word == "reload" && (sets(model.ChangeNginx) || name == "nginx" || name == "haproxy"):
		return "reloads " + cmp.Or(name, "nginx") + " (requests under way are finished)"
	case word == "reload":
		return "reloads " + cmp.Or(name, "what is changed") + " (most finish the requests under way)"
	case word == "host":
		return "restarts the host (cuts all requests)"
	case cutsOff(word):
		return "restarts " + cmp.Or(name, ofDevelopers(f), "the program") + " (cuts its requests)"
	}
	if steps := stepsIn(f); strings.Contains(steps, "version before") || strings.Contains(steps, "restart it") {
		return "no restart but of what is changed"
	}
	return "no restart"
}

// ofDevelopers is what restarts where a fix is a change of code, "" of others.
func ofDevelopers(f model.Fix) string {
	if strings.Contains(stepsIn(f), "evelopers") {
		return "it with its new code"
	}
	return ""
}

// stepsIn are a fix's steps, forth and back.
func stepsIn(f model.Fix) string {
	if f.First == nil {
		return f.Back
	}
	return f.First.Then + "\n" + f.First.Back + "\n" + f.Back
}

// named are the words by which a step says what it has restart or read its files anew.
var named = lazy.Regexp(`systemctl (restart|reload) ([a-z][\w.@-]*)|\b(nginx) -s reload|restart the (UNIT)\b|systemctl restart (UNIT)\b`)

// whatRestarts is what a fix has restart, or reload, as its own steps name it; "" where they name nothing, or several.
func whatRestarts(word string, f model.Fix) string {
	var names []string
	for _, m := range named().FindAllStringSubmatch(stepsIn(f), -1) {
		if name := strings.TrimRight(cmp.Or(m[2], m[3], m[4], m[5]), "."); (m[1] == "" || m[1] == "reload" == (word == "reload")) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) != 1:
		return ""
	case names[0] == "UNIT":
		return "that UNIT"
	}
	return names[0]
}

// takeBack is how a fix is taken back that one makes by hand: in words, and what is to be typed, a line each; "" of what there is none of.
func takeBack(f model.Fix) (text, commands string) {
	switch {
	case f.Undo == nothingChanged:
		return "", ""
	case f.First != nil && f.First.Back != "":
		return f.Back, f.First.Back
	case f.Back != "":
		return f.Back, ""
	case f.Undo == impossible:
		return "it cannot be taken back", ""
	case f.Undo != automatic:
		return notedBefore, ""
	}
	return setBack(f)
}

// notedBefore is how to take back what nobody wrote down.
const notedBefore = "set back what it was before (note that first)"

// backAsNoted is the way back of settings whose values no run tells, and which are noted first.
const backAsNoted = "the same command with the value that you noted"

// noteFirst is the command whose answer is to be noted of settings that are typed and whose values no run tells, "" of none.
func noteFirst(f model.Fix) string {
	var where string
	var names []string
	for _, c := range f.Changes {
		way, set, ok := strings.Cut(c.Type, "sysctl -w ")
		switch {
		case ok && c.Old == "" && c.Kind == model.ChangeSysctl:
			name, _, _ := strings.Cut(set, "=")
			where, names = way, append(names, name)
		case c.Kind == model.ChangeAffinity: // how many is known, and not which
			return asked().ReplaceAllString(c.Type, "taskset -cp $$p")
		case c.Kind == model.ChangeRPS && c.Type != "":
			return wayIn().FindString(c.Type) + "grep . /sys/class/net/" + layout.Quote(c.Name) + "/queues/rx-*/rps_cpus"
		}
	}
	if len(names) == 0 {
		return ""
	}
	return where + "sysctl " + strings.Join(names, " ")
}

// asked is what sets the CPUs of a process in a loop.
var asked = lazy.Regexp(`taskset -acp .* \$p`)

// setBack is takeBack for settings that are typed.
func setBack(f model.Fix) (text, commands string) {
	var words, lines []string
	unknown := false
	where := ""
	for _, c := range f.Changes {
		switch {
		case c.Old != "" && c.Old == c.Value:
		case c.Kind == model.ChangeAffinity: // how many is known, and not which
			words = append(words, "the same line with the list that you noted (such as 0-3)")
		case c.Kind == model.ChangeRPS && c.Type != "":
			words = append(words, "each number that you noted into its file again (`echo 0 >` it: 0 is the default)")
		case c.Back != "":
			lines = append(lines, c.Back)
		case c.Old == "" && c.Kind == model.ChangeSysctl:
			if !slices.Contains(words, backAsNoted) {
				words = append(words, backAsNoted)
			}
		case c.Old == "":
			unknown, where = true, takesEffect(c)
		default:
			words, where = append(words, settingName(c)+" back to "+c.Old), takesEffect(c)
		}
	}
	text = strings.Join(words, ", ")
	switch {
	case unknown && text == "":
		text = notedBefore
	case unknown:
		text += ", the rest to what it was (note that first)"
	}
	if text != "" {
		text += where
	}
	return text, strings.Join(lines, "\n")
}

// takesEffect is what has to follow for a setting in a file to count.
func takesEffect(c model.FixChange) string {
	switch c.Kind {
	case model.ChangeNginx:
		return ", then `nginx -t && nginx -s reload`"
	case model.ChangePHPFPM:
		return ", then `systemctl reload 'php*-fpm'`"
	case model.ChangeBacklog:
		return ", then a restart of the service"
	}
	return ""
}

// settingName is what is set, in words.
func settingName(c model.FixChange) string {
	switch c.Kind {
	case model.ChangeBacklog:
		return "the queue of " + c.Name
	case model.ChangeLimit:
		return "open files of " + c.Subject["groupname"]
	case model.ChangeNice:
		return "the nice value of " + c.Name
	case model.ChangeAffinity:
		return "the CPUs of the program " + strconv.Quote(c.Name)
	case model.ChangeQuota:
		return "the CPU quota of " + c.Name
	case model.ChangeRPS:
		return "the CPUs that take packets of " + c.Name
	}
	return c.Name
}

// lasts says for how long what is typed stays, "" where nothing is: what stands in a file stays.
func lasts(f model.Fix) string {
	var list []string
	for _, c := range f.Changes {
		text := ""
		switch {
		case c.Type == "":
		case c.Kind == model.ChangeSysctl:
			text = "the next boot (/etc/sysctl.d keeps it)"
		case slices.Contains([]string{model.ChangeRPS, model.ChangeTxQueue}, c.Kind):
			text = "the next boot"
		case c.Kind == model.ChangeQuota:
			text = "the unit or container restarts (CPUQuota= or --cpus keeps it)"
		case c.Kind == model.ChangeAffinity:
			text = "the process restarts (CPUAffinity= of its unit, or its container's cpuset, keeps it)"
		default:
			text = "the process restarts"
		}
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "lasts until " + strings.Join(list, ", or ")
}

// adviceAlone says whether what stands with a fix is for a person to read, and not to be
// typed as it is.
func adviceAlone(f model.Fix) bool {
	return len(f.Changes) > 0 && !slices.ContainsFunc(f.Changes, func(c model.FixChange) bool { return c.Kind != model.ChangePerson })
}

// changesOf words what a fix sets, old and new; what is so already is left out, and where
// things stand is said once.
func changesOf(f model.Fix) string {
	var list []string
	last := ""
	for _, c := range f.Changes {
		if c.Old != "" && c.Old == c.Value || c.Kind == model.ChangePolicy { // a class has a number that nobody knows
			continue
		}
		where := whereSet(c)
		if n := len(list); n > 0 && last == where {
			list[n-1] = strings.TrimSuffix(list[n-1], where)
		}
		from := ""
		if c.Old != "" {
			from = spokenSetting(c.Kind, c.Old) + " → "
		}
		to := cmp.Or(spokenSetting(c.Kind, c.Value), "more than now (this run does not tell how much)")
		list, last = append(list, layout.Line(settingName(c)+": "+from+to)+where), where
	}
	return strings.Join(list, "; ")
}

// spokenSetting is a value with its unit.
func spokenSetting(kind, value string) string {
	switch {
	case kind == model.ChangeAffinity && value == "1":
		return "1 CPU"
	case kind == model.ChangeAffinity && value != "all":
		return value + " CPUs"
	case kind != model.ChangeQuota:
		return value
	}
	var used, period float64
	if n, err := fmt.Sscan(value, &used, &period); n < 2 || err != nil || period <= 0 {
		return value
	}
	return fmt.Sprintf("%.3g CPUs", used/period)
}

// whereSet says where a setting stands that no command sets.
func whereSet(c model.FixChange) string {
	switch c.Kind {
	case model.ChangeNginx:
		return " (in nginx's configuration; then `nginx -t && nginx -s reload`)"
	case model.ChangePHPFPM:
		return " (in the pool's file: `grep -rl max_children /etc` finds it; then `systemctl reload 'php*-fpm'`)"
	case model.ChangeBacklog:
		return " (in the service's configuration: nginx's listen with backlog=, PHP-FPM's listen.backlog)"
	}
	return ""
}
