package filter

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// parser reads an expression. As in pcap-filter(7), "and" and "or" bind equally,
// from the left, and a value alone has the words of the one before it.
type parser struct {
	text   string
	words  []word
	last   words
	depth  int
	blamed *Error
}

type word struct {
	text string
	at   int
}

// words are those before a value: "tcp src port".
type words struct {
	proto, kind string
	dir         direction
}

// The limits of an expression.
const (
	maxLength = 16 << 10
	maxDepth  = 100
)

// parse makes a tree of an expression, nil of an empty one. The error is a *Error.
func parse(text string) (node, error) {
	p := &parser{text: text, words: split(text)}
	if len(text) > maxLength {
		p.blame(0, "it has %d bytes, at most %d are taken", len(text), maxLength)
		return nil, p.blamed
	}
	if len(p.words) == 0 {
		return nil, nil
	}
	n := p.expression()
	if p.blamed == nil && len(p.words) > 0 {
		p.blame(p.words[0].at, "%q: want and, or, or the end", p.words[0].text)
	}
	if p.blamed != nil {
		return nil, p.blamed
	}
	return n, nil
}

// split cuts an expression into words; parentheses and ! stand for themselves.
func split(text string) (list []word) {
	start := -1
	end := func(i int) {
		if start >= 0 {
			list = append(list, word{text[start:i], start})
		}
		start = -1
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			end(i)
		case '(', ')', '!':
			end(i)
			list = append(list, word{text[i : i+1], i})
		case '&', '|':
			end(i)
			n := 1
			if i+1 < len(text) && text[i+1] == text[i] {
				n = 2
			}
			list = append(list, word{text[i : i+n], i})
			i += n - 1
		default:
			if start < 0 {
				start = i
			}
		}
	}
	end(len(text))
	return list
}

// blame keeps the first thing that is wrong.
func (p *parser) blame(at int, format string, args ...any) {
	if p.blamed == nil {
		p.blamed = &Error{Expression: p.text, At: at, What: fmt.Sprintf(format, args...)}
	}
}

// next is the next word, "" at the end.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0].text
}

// take takes the next word if it is one of those.
func (p *parser) take(any ...string) bool {
	for _, w := range any {
		if len(p.words) > 0 && p.words[0].text == w {
			p.words = p.words[1:]
			return true
		}
	}
	return false
}

// at is where the next word stands.
func (p *parser) at() int {
	if len(p.words) == 0 {
		return len(p.text)
	}
	return p.words[0].at
}

func (p *parser) expression() node {
	n := p.term()
	for p.blamed == nil {
		switch {
		case p.take("and", "&&"):
			n = both{n, p.term()}
		case p.take("or", "||"):
			n = oneOf{n, p.term()}
		default:
			return n
		}
	}
	return n
}

func (p *parser) term() node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.blame(p.at(), "more than %d parentheses or negations within one another", maxDepth)
		return nil
	}
	at := p.at()
	switch {
	case p.take("not", "!"):
		return not{p.term()}
	case p.take("("):
		n := p.expression()
		if p.blamed == nil && !p.take(")") {
			p.blame(at, "this parenthesis is not closed")
		}
		return n
	}
	return p.primitive()
}

// protocols are those that can stand alone, or before what they are looked for in.
var protocols = map[string]protocol{
	"ip": {ether: etherIPv4}, "ip6": {ether: etherIPv6}, "arp": {ether: etherARP}, "rarp": {ether: etherRARP},
	"tcp": {ip: ipTCP, four: true, six: true}, "udp": {ip: ipUDP, four: true, six: true}, "sctp": {ip: ipSCTP, four: true, six: true},
	"icmp": {ip: ipICMP, four: true}, "icmp6": {ip: ipICMPv6, six: true},
}

const wanted = "want host, net, port, portrange, with src or dst before it, or ip, ip6, tcp, udp, sctp, icmp, icmp6, arp, rarp"

func (p *parser) primitive() node {
	at, w := p.at(), words{}
	proto, alone := protocols[p.next()]
	if alone {
		w.proto = p.next()
		p.words = p.words[1:]
	}
	said := p.direction(&w)
	if kind := p.next(); p.take("host", "net", "port", "portrange") {
		w.kind, said = kind, true
	}
	switch {
	case !said && alone:
		return proto
	case !said:
		switch {
		case p.next() == "":
			p.blame(at, "the expression ends here; %s", wanted)
		case p.last == words{}:
			p.blame(at, "%q: %s", p.next(), wanted)
		}
		w = p.last
	}
	if w.kind == "" {
		w.kind = "host"
	}
	p.last = w
	if p.blamed != nil {
		return nil
	}
	value := p.next()
	at = p.at()
	if value == "" || value == ")" {
		p.blame(at, "a value for %s is missing", w.kind)
		return nil
	}
	p.words = p.words[1:]
	if w.kind == "port" || w.kind == "portrange" {
		return p.ports(w, at, value)
	}
	return p.address(w, at, value)
}

// direction reads src, dst, "src or dst" or "src and dst"; it says whether one was there.
func (p *parser) direction(w *words) bool {
	at := p.at()
	switch {
	case p.take("src"):
		w.dir = src
	case p.take("dst"):
		w.dir = dst
	default:
		return false
	}
	if len(p.words) < 2 || p.words[1].text != "src" && p.words[1].text != "dst" {
		return true
	}
	first, how, second := w.dir, p.words[0].text, p.words[1].text
	if first == src && second == "dst" || first == dst && second == "src" {
		switch how {
		case "or", "||":
			w.dir = srcOrDst
		case "and", "&&":
			w.dir = srcAndDst
		default:
			p.blame(at, "want \"src or dst\" or \"src and dst\"")
		}
		p.words = p.words[2:]
	}
	return true
}

func (p *parser) ports(w words, at int, value string) node {
	n := ports{dir: w.dir}
	switch w.proto {
	case "":
		n.over = []uint32{ipSCTP, ipTCP, ipUDP}
	case "tcp", "udp", "sctp":
		n.over = []uint32{protocols[w.proto].ip}
	default:
		p.blame(at, "%s has no ports; want tcp, udp or sctp before %s", w.proto, w.kind)
	}
	low, high, isRange := strings.Cut(value, "-")
	if isRange != (w.kind == "portrange") || !isRange {
		low, high = value, value
	}
	a, errA := strconv.ParseUint(low, 10, 16)
	b, errB := strconv.ParseUint(high, 10, 16)
	if errA != nil || errB != nil {
		p.blame(at, "%q: want %s; names are not looked up", value, map[string]string{"port": "a port, 0 to 65535", "portrange": "a range of ports like 8000-8010"}[w.kind])
	}
	n.least, n.most = uint32(min(a, b)), uint32(max(a, b))
	return n
}

func (p *parser) address(w words, at int, value string) node {
	net, why := parseNet(w.kind, value)
	if why != "" {
		p.blame(at, "%q: %s", value, why)
		return nil
	}
	n := address{net: net, dir: w.dir}
	four := net.Addr().Is4()
	switch {
	case w.proto == "" && four:
		n.ether = []uint32{etherIPv4, etherARP, etherRARP}
	case w.proto == "" || w.proto == "ip6" && !four:
		n.ether = []uint32{etherIPv6}
	case four && (w.proto == "ip" || w.proto == "arp" || w.proto == "rarp"):
		n.ether = []uint32{protocols[w.proto].ether}
	default:
		p.blame(at, "%s has no address like %s; write \"%s and %s %s\"", w.proto, value, w.proto, w.kind, value)
	}
	return n
}

// parseNet reads an address, or a net: 10.0.0.0/8, 10 or 10.1 for short, fd00::/8.
func parseNet(kind, value string) (netip.Prefix, string) {
	var none netip.Prefix
	if kind == "host" {
		a, err := netip.ParseAddr(value)
		if err != nil || a.Zone() != "" {
			return none, "want an IP address; names are not looked up"
		}
		return netip.PrefixFrom(a, a.BitLen()), ""
	}
	text, bits, slash := strings.Cut(value, "/")
	parts := strings.Count(text, ".") + 1
	if !strings.Contains(text, ":") {
		text += strings.Repeat(".0", max(4-parts, 0))
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return none, "want a net like 10.0.0.0/8 or fd00::/8; names are not looked up"
	}
	n := a.BitLen()
	if a.Is4() {
		n = 8 * parts
	}
	if slash {
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > a.BitLen() {
			return none, fmt.Sprintf("want a length from 0 to %d behind the slash", a.BitLen())
		}
	}
	net := netip.PrefixFrom(a, n)
	if net.Masked() != net {
		return none, "it has bits set beyond its length; want " + net.Masked().String()
	}
	return net, ""
}
