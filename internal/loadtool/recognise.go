package loadtool

import (
	"path"
	"slices"
	"strings"
)

// mostNested is how many shells may stand within one another.
const mostNested = 4

// names are the tools by the name of their program.
var names = map[string]string{
	"wrk": "wrk", "wrk2": "wrk2", "ab": "ab", "hey": "hey", "oha": "oha", "h2load": "h2load", "k6": "k6", "vegeta": "vegeta",
	"fortio": "fortio", "siege": "siege", "jmeter": "jmeter", "jmeter.sh": "jmeter", "ApacheJMeter.jar": "jmeter", "bombardier": "bombardier",
}

// prefixes are programs that start another one, which is named among their words.
var prefixes = []string{
	"env", "nice", "taskset", "ip", "sudo", "doas", "time", "timeout", "stdbuf", "nohup", "setsid", "chrt", "ionice", "numactl", "unshare",
	"nsenter", "chroot", "exec", "command", "xargs", "cgexec", "systemd-run", "runuser", "setpriv", "prlimit", "strace", "perf",
	"java", "docker", "podman", "nerdctl", "kubectl",
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"}

// toolsIn returns the load tools that a command line starts, also behind
// prefixes and within what a shell is told to do.
func toolsIn(argv []string, depth int) []string {
	for len(argv) > 0 && (isAssignment(argv[0]) || slices.Contains(keywords, argv[0])) {
		argv = argv[1:]
	}
	if len(argv) == 0 || depth > mostNested {
		return nil
	}
	name, args := program(argv[0]), argv[1:]
	switch tool := names[name]; {
	case tool == "wrk" && hasRate(args): // wrk2's own build calls it wrk, which has no such option
		return []string{"wrk2"}
	case tool != "":
		return []string{tool}
	case slices.Contains(shells, name):
		return toolsOfShell(args, depth)
	case slices.Contains(prefixes, name):
		for i, word := range args {
			if base := program(word); names[base] != "" || slices.Contains(shells, base) {
				return toolsIn(args[i:], depth+1)
			}
		}
	}
	return nil
}

// toolsOfShell returns those in the script of "sh -c SCRIPT".
func toolsOfShell(args []string, depth int) (list []string) {
	for i, word := range args {
		if !strings.HasPrefix(word, "-") || strings.HasPrefix(word, "--") {
			continue // "busybox sh -c": the name of the shell; or a long option
		}
		if strings.Contains(word, "c") && i+1 < len(args) {
			for _, words := range simpleCommands(args[i+1]) {
				list = append(list, toolsIn(words, depth+1)...)
			}
			return list
		}
	}
	return nil
}

// program is a program's name by its path, or by a container image with its tag.
func program(word string) string {
	name, _, _ := strings.Cut(path.Base(word), ":")
	return name
}

func hasRate(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-R") || strings.HasPrefix(a, "--rate") })
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/-.")
}

// keywords are words of the shell's grammar before a command.
var keywords = []string{"do", "then", "else", "elif", "if", "while", "until", "!", "{", "(", "time"}

// simpleCommands cuts a script into simple commands, and these into words. It knows
// quotes and backslashes, and what stands between commands; that is enough to find
// the name of a program where the shell would look for one.
func simpleCommands(script string) (list [][]string) {
	var words []string
	var word strings.Builder
	begun := false
	endWord := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	quote, escaped := rune(0), false
	for _, r := range script {
		switch {
		case escaped:
			escaped = false
			if r != '\n' {
				word.WriteRune(r)
				begun = true
			}
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			endWord()
		case strings.ContainsRune(";|&\n()`", r):
			endWord()
			list, words = append(list, words), nil
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	endWord()
	return append(list, words)
}
