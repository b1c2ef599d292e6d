package report

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// afterUnclearWatch says what tells more where a watch found no cause: on a host that serves nobody what its busiest
// program waits for, elsewhere a load of ours on the listener that has the users.
func afterUnclearWatch(s *sheet, r model.Report) {
	f, served := judgedWell(r.Verdict)
	if served && f.Rule == programsWell {
		who := "the programs wait for"
		if name, uses := busiest(f, r.Verdict); name != "" {
			who = "the program " + strconv.Quote(name) + " waits for" + uses
		}
		s.item(mustKeep, "next", 2, "see what "+who+":")
		s.typed(mustKeep, doFirst, lookAtProgram(busiestName(f, r.Verdict), r.Hosts))
		s.item(mustKeep, "then", 2, "it says where all of its time goes: which disk, file, lock or peer it waits for, or what it computes")
		s.prices("a hundredth of a CPU or two while it watches", nothingBack)
		return
	}
	listen, speaks := usersAt(f)
	if listen != "" && speaks != spokenHTTP {
		s.item(mustKeep, "next", 4, "load "+layout.Line(listen)+", where the users are, with a load tool for what it speaks (no HTTP was seen there), and watch meanwhile:")
		s.typed(mustKeep, doFirst, "plimsoll watch"+hostFlags(r.Hosts)+" -- COMMAND")
		s.prices("its load comes on top of the users' own", nothingBack)
		return
	}
	url := urlOf(listen, r.Hosts)
	s.item(mustKeep, "next", 2, "load it with requests of Plimsoll's own, each of which is timed:")
	s.typed(mustKeep, doFirst, "plimsoll run "+url+hostFlags(r.Hosts))
	s.item(mustKeep, "then", 3, "it ends in a verdict like this one; "+toFillIn(url)+"the path: one that users ask for")
	s.prices("its load comes on top of the users' own, for some 15 s", nothingBack)
}

// lookAtProgram is the command that asks where a program's time goes.
func lookAtProgram(name string, hosts []model.Host) string {
	var c layout.Command
	c.Ours("plimsoll watch --of ")
	if name == "" {
		c.Ours("PROGRAM")
	} else {
		c.Outside(name)
	}
	c.Ours(" -d 30s" + hostFlags(hosts))
	return c.String()
}

// busiestName is the program that used most of the CPUs, "" where nobody knows.
func busiestName(f model.Finding, v model.Verdict) string {
	name, _ := busiest(f, v)
	return name
}

// programsWell is the rule that judges the programs of a host that serves nobody.
const programsWell = "process.unhindered"

// spokenHTTP is what a listener speaks that HTTP was seen of.
const spokenHTTP = "HTTP"

// judgedWell is the finding that tells whether users, or programs, were well served, false where none was judged.
func judgedWell(v model.Verdict) (model.Finding, bool) {
	all := slices.Concat(v.Grounds, v.Findings, v.RuledOut, v.Unknown)
	at := slices.IndexFunc(all, func(f model.Finding) bool { return f.Kind == "healthy" && !hadNothing(f) })
	if at < 0 {
		return model.Finding{}, false
	}
	return all[at], true
}

// whoFeels is whom an unclear verdict is about: the users, or on a host that serves nobody its programs.
func whoFeels(v model.Verdict) string {
	if f, ok := judgedWell(v); ok && f.Rule == programsWell {
		return "programs"
	}
	return "users"
}

// busiest is the program that used most of the CPUs, and how much, "" where nobody knows.
func busiest(f model.Finding, v model.Verdict) (name, uses string) {
	for _, c := range f.Clues {
		if c.ID == "who" && c.Truth == model.True && c.Value != nil {
			return c.Names["groupname"], " (it used most: " + fmt.Sprintf("%.3g", *c.Value) + " of " + cmp.Or(c.Names["cpus"], "the") + " CPUs)"
		}
	}
	for _, l := range v.LoadAverage {
		if len(l.Runnable.Groups) > 0 {
			return l.Runnable.Groups[0].Name, ""
		}
	}
	return "", ""
}

// usersAt is the listener that most users came to, and what it speaks, as far as that was seen.
func usersAt(f model.Finding) (listen, speaks string) {
	for _, c := range f.Clues {
		if c.ID == listenerClue && c.Truth == model.True {
			return c.Names["listen"], c.Names["speaks"]
		}
	}
	return "", ""
}

// The words of a URL that are for a person to fill in.
const (
	anyAddress = "ADDRESS"
	anyPort    = "PORT"
)

// urlOf is a URL at which a listener is reached from here.
func urlOf(listen string, hosts []model.Host) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		host, port = "", anyPort
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = anyAddress
		if len(hosts) == 1 && hosts[0].Spec == "local" {
			host = "127.0.0.1"
		}
	}
	scheme := "http"
	if strings.HasSuffix(port, "443") {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// toFillIn says what of a URL is not known, "" where all is.
func toFillIn(url string) string {
	switch {
	case strings.Contains(url, anyPort):
		return "ADDRESS and PORT: those that users connect to; "
	case strings.Contains(url, anyAddress):
		return "ADDRESS: the one that users connect to; "
	}
	return ""
}

// hostFlags are the flags by which the same hosts are observed again, "" where it is this one.
func hostFlags(hosts []model.Host) string {
	var flags strings.Builder
	for _, h := range hosts {
		if h.Spec != "local" {
			flags.WriteString(" --host " + layout.Quote(h.Name+"="+h.Spec))
		}
	}
	return flags.String()
}
