package diagnose

import (
	"net"
	"strings"
	"sync"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
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
