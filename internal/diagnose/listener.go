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
	if len(told) == 0 || told[0].Subject["dst"] == "" {
		return sentence
	}
	dst := told[0].Subject["dst"]
	program := r.listenerAt(told[0].Subject["host"], dst)
	if program == "" {
		return sentence
	}
	return strings.Replace(sentence, model.SpokenSubject(map[string]string{"dst": dst}), model.SpokenSubject(map[string]string{"dst": dst})+" ("+program+")", 1)
}

// listenerAt is the one program that a host's own address belongs to, "" of another host's, and where it is not known.
func (r *run) listenerAt(host, address string) string {
	ip, port, err := net.SplitHostPort(address)
	if a := net.ParseIP(ip); err != nil || a == nil || !a.IsLoopback() {
		return ""
	}
	expr, err := listeners()
	if err != nil {
		return ""
	}
	program := ""
	for _, s := range r.Ask(expr).Samples {
		if _, p, err := net.SplitHostPort(s.Labels["listen"]); err != nil || p != port || s.Labels["host"] != host || s.Labels["owner"] == "" {
			continue
		}
		if program != "" && program != s.Labels["owner"] {
			return ""
		}
		program = s.Labels["owner"]
	}
	return program
}
