package deepcpu

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/ebpf-profiler/interpreter/interpreterconfig"

	"plimsoll/internal/host"
)

// language is one whose functions the library can name, each by a BPF program of its own.
type language struct {
	name string
	// programs are the names of its interpreters, without a version; inside is how the names of files begin that other programs
	// load which have it built in (Apache's PHP, uWSGI's Python).
	programs []string
	inside   []string
	read     func(*interpreterconfig.Config)
}

var languages = []language{
	{"PHP", []string{"php", "php-fpm", "php-cgi"}, []string{"libphp"}, func(c *interpreterconfig.Config) { c.PHP.Disabled = false }},
	{"Python", []string{"python"}, []string{"libpython"}, func(c *interpreterconfig.Config) { c.Python.Disabled = false }},
	{"Node", []string{"node", "nsolid"}, []string{"libnode.so"}, func(c *interpreterconfig.Config) { c.V8.Disabled = false }},
	{"Java", []string{"java"}, []string{"libjvm.so"}, func(c *interpreterconfig.Config) { c.Hotspot.Disabled = false }},
	{"Ruby", []string{"ruby"}, []string{"libruby"}, func(c *interpreterconfig.Config) { c.Ruby.Disabled = false }},
	{"Perl", []string{"perl"}, []string{"libperl.so"}, func(c *interpreterconfig.Config) { c.Perl.Disabled = false }},
	{".NET", []string{"dotnet"}, []string{"libcoreclr.so"}, func(c *interpreterconfig.Config) { c.Dotnet.Disabled = false }},
	{"Erlang", []string{"beam.smp"}, nil, func(c *interpreterconfig.Config) { c.BEAM.Disabled = false }},
}

// anyLanguage is all of them in a sentence.
func anyLanguage() string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// reading is the library's configuration for languages, of all where there are none named.
func reading(names []string) (interpreterconfig.Config, error) {
	if len(names) == 0 {
		return interpreterconfig.AllInterpreters(), nil
	}
	c := interpreterconfig.NoInterpreters()
	for _, name := range names {
		i := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
		if i < 0 {
			return c, fmt.Errorf("asked to name the functions of %q: want %s", name, anyLanguage())
		}
		languages[i].read(&c)
	}
	return c, nil
}

// languageOf names the language that a binary is the interpreter of, "" of any other.
func languageOf(executable string) string {
	name := strings.TrimRight(strings.TrimSuffix(path.Base(executable), " (deleted)"), "0123456789.-")
	for _, l := range languages {
		if slices.Contains(l.programs, name) {
			return l.name
		}
	}
	return ""
}

// maxMaps is how much is read of the list of what a process has mapped: thousands of lines.
const maxMaps = 1 << 20

// languagesOn lists the languages of which an interpreter runs on the hosts, in the order above. A process that may not be
// looked into is taken for none.
func languagesOn(hosts []*host.Host) (found []string, err error) {
	is := map[string]bool{}
	for _, h := range hosts {
		procs, err := h.Procs()
		if err != nil {
			return nil, err
		}
		for _, p := range procs {
			if p.Kernel {
				continue
			}
			dir := h.Path("proc", strconv.Itoa(p.PID))
			executable, _ := os.Readlink(dir + "/exe")
			if l := languageOf(executable); l != "" {
				is[l] = true
			} else if maps, err := host.ReadHead(dir+"/maps", maxMaps); err == nil {
				for _, l := range languagesIn(maps) {
					is[l] = true
				}
			}
		}
	}
	for _, l := range languages {
		if is[l.name] {
			found = append(found, l.name)
		}
	}
	return found, nil
}

// languagesIn are those that a program has inside, by /proc/PID/maps.
func languagesIn(maps []byte) (found []string) {
	for _, l := range languages {
		if slices.ContainsFunc(l.inside, func(file string) bool { return bytes.Contains(maps, []byte("/"+file)) }) {
			found = append(found, l.name)
		}
	}
	return found
}
