package diagnose

import (
	"fmt"
	"net"
	"strings"
	"sync"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// listeners are the programs that listened on each host, by address.
var listeners = sync.OnceValues(func() (*query.Expression, error) {
	return query.Terms{}.Parse("max by (host, listen, owner) (max_over_time(plimsoll_tcp_listen_accepted[$run]))")
})

// withListener is a sentence that names the program, too, which has the address on this host that its first finding is about; unchanged where
// nobody saw one, or several.
func (r *run) withListener(sentence string, told []model.Finding) string {
	if len(told) == 0 {
		return sentence
	}
	subject := told[0].Subject
	host, dst, listen := subject["host"], subject["dst"], subject["listen"]
	switch {
	case dst != "":
		return behind(sentence, "dst", dst, " (", r.listenerAt(host, dst), ")")
	case listen != "" && subject["groupname"] == "":
		return behind(sentence, "listen", listen, ", program \"", r.ownerOf(host, func(l string) bool { return l == listen }), "\"")
	}
	return sentence
}

// behind adds a program to the first place of a sentence that speaks of a label's value, nothing where the program is "" or named already.
func behind(sentence, label, value, open, program, end string) string {
	if program == "" || strings.Contains(strings.ToLower(sentence), strings.ToLower(program)) {
		return sentence
	}
	spoken := model.SpokenSubject(map[string]string{label: value})
	return strings.Replace(sentence, spoken, spoken+open+program+end, 1)
}

// listenerAt is the one program that a host's own address belongs to, "" of another host's, and where it is not known.
func (r *run) listenerAt(host, address string) string {
	ip, port, err := net.SplitHostPort(address)
	if a := net.ParseIP(ip); err != nil || a == nil || !a.IsLoopback() {
		return ""
	}
	return r.ownerOf(host, func(listen string) bool {
		_, p, err := net.SplitHostPort(listen)
		return err == nil && p == port
	})
}

// ownerOf is the one program that has the listeners of a host which are meant, "" where there is none, or several.
func (r *run) ownerOf(host string, meant func(listen string) bool) string {
	expr, err := listeners()
	if err != nil {
		return ""
	}
	program := ""
	for _, s := range r.Ask(expr).Samples {
		if s.Labels["host"] != host || s.Labels["owner"] == "" || !meant(s.Labels["listen"]) {
			continue
		}
		if program != "" && program != s.Labels["owner"] {
			return ""
		}
		program = s.Labels["owner"]
	}
	return program
}

// What the rules say (records.yaml) of listeners whose requests are no users', how long these take, and of how long users waited.
const (
	othersListener = "listener:others:seconds"
	usersWaited    = "users:p99_waited:seconds"
)

// setAside notes of each cause or limit that may hold and is about a listener where none but others wait that it is
// nobody's who is a user: however true, it is not why users wait. Who asks about one program wants to know of its own. The rules
// leave out themselves what is of no listener: the ports towards a destination are lacked by whoever connects there
// (destination:without_port:ratio), and a full table of connections turns away whoever comes, users as well.
func (r *run) setAside(findings []model.Finding, set ruleset.Rules) {
	if r.Meta().Plan.Program != "" {
		return
	}
	var others, users []query.Sample
	asked := false
	for i := range findings {
		f := &findings[i]
		listen := aboutListener(*f)
		if listen == "" || f.Kind != ruleset.Cause && f.Kind != ruleset.Capacity || !mayHold(*f) {
			continue
		}
		if !asked {
			others, users, asked = r.term(set, othersListener), r.term(set, usersWaited), true
		}
		at, ok := query.Largest(others, map[string]string{"host": f.Subject["host"], "listen": listen})
		felt, known := query.Largest(users, nil)
		if !ok || !known {
			continue
		}
		f.Aside = fmt.Sprintf("who waits there is no user of this service: a request there takes %s on average, and 99 of 100 users waited less than %s in all",
			layout.Micros(1e6*at.Value), layout.Micros(1e6*felt.Value))
	}
}

// aboutListener is the listener that a finding is about: its subject's, else the one that its clue "where" names, where that is true.
func aboutListener(f model.Finding) string {
	listen := f.Subject["listen"]
	for _, c := range f.Clues {
		if listen == "" && c.ID == "where" && c.Truth == model.True {
			listen = c.Names["listen"]
		}
	}
	return listen
}

// term is what a shared term says, nothing where the set has none of that name.
func (r *run) term(set ruleset.Rules, name string) []query.Sample {
	expr, err := query.Parse(name, set.Known())
	if err != nil {
		return nil
	}
	return r.Ask(expr).Samples
}
