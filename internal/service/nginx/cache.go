package nginx

import (
	"slices"
	"strings"
)

// Pass is what requests meet in a place (a location, or an if in one) from which they are passed on.
type Pass struct {
	Upstream string // the address, as the socket signals write it; UnknownUpstream where variables say it
	Cached   bool   // replies are kept there (proxy_cache and its kin)
	// Forbids is what in the configuration keeps a kept reply from ever being found, or a reply from being kept; "" where nothing does.
	Forbids string
}

// UnknownUpstream stands for whatever a place may lead to of which the configuration does not tell.
const UnknownUpstream = "unknown"

// cacheScope is what a block inherits of one of nginx's families of directives (proxy_, fastcgi_ …).
type cacheScope struct {
	on, unbuffered bool
	key            []string
	never, bypass  []string // X_no_cache, X_cache_bypass
}

// families are those of which replies can be kept.
var families = []string{"proxy", "fastcgi", "uwsgi", "scgi"}

// ofOneRequest are variables that are another text in each request. Those that are of a connection, or of a second, are
// the same in many, and $request_time is nearly nothing when a key is made.
var ofOneRequest = []string{"request_id", "msec"}

// maxText bounds what is told of a configuration's words.
const maxText = 60

// passes notes for each place and address how many such places there are.
func (b *builder) passes(block []*Directive, around map[string]cacheScope) {
	here := map[string]cacheScope{}
	for _, family := range families {
		here[family] = around[family].with(family, block)
	}
	for _, d := range block {
		family, ok := strings.CutSuffix(d.Name, "_pass")
		switch {
		case ok && len(d.Args) == 1 && (family == "grpc" || slices.Contains(families, family)):
			s := here[family]
			addresses := b.addresses(d.Args[0])
			if len(addresses) == 0 {
				addresses = []string{UnknownUpstream}
			}
			for _, address := range addresses {
				b.out.Passes[Pass{address, s.on, s.forbids(family)}]++
			}
		case d.Name == "server" || d.Name == "location" || d.Name == "if" || d.Name == "limit_except":
			b.passes(d.Block, here)
		}
	}
}

// with applies a family's directives of a block: what is said there is in place of what was said around it.
func (s cacheScope) with(family string, block []*Directive) cacheScope {
	var never, bypass []string // such a directive may stand in a block several times
	for _, d := range block {
		name, ok := strings.CutPrefix(d.Name, family+"_")
		if !ok || len(d.Args) == 0 {
			continue
		}
		switch name {
		case "cache":
			s.on = d.Args[0] != "off"
		case "cache_key":
			s.key = d.Args
		case "no_cache":
			never = append(never, d.Args...)
			s.never = never
		case "cache_bypass":
			bypass = append(bypass, d.Args...)
			s.bypass = bypass
		case "buffering":
			s.unbuffered = d.Args[0] == "off"
		}
	}
	return s
}

// forbids says what keeps a cache from ever answering; that it is switched off before what is in its key, which then makes no difference.
func (s cacheScope) forbids(family string) string {
	if !s.on {
		return ""
	}
	for _, d := range []struct {
		name string
		args []string
	}{{"_no_cache", s.never}, {"_cache_bypass", s.bypass}} {
		if i := slices.IndexFunc(d.args, always); i >= 0 {
			return family + d.name + " " + strings.ToValidUTF8(d.args[i][:min(len(d.args[i]), maxText)], "")
		}
	}
	if s.unbuffered {
		return family + "_buffering off"
	}
	for _, text := range s.key {
		for _, name := range variables(text) {
			if slices.Contains(ofOneRequest, name) {
				return "$" + name + " in " + family + "_cache_key"
			}
		}
	}
	return ""
}

// always says whether an argument of X_no_cache holds for each request: one without
// a variable that is neither nothing nor 0, or one that is never empty.
func always(text string) bool {
	names := variables(text)
	if len(names) == 0 {
		return text != "" && text != "0"
	}
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(ofOneRequest, n) })
}

// variables lists the names of a text's variables: $name and ${name}.
func variables(text string) (names []string) {
	for {
		_, rest, ok := strings.Cut(text, "$")
		if !ok {
			return names
		}
		rest = strings.TrimPrefix(rest, "{")
		end := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			names = append(names, rest[:end])
		}
		text = rest[end:]
	}
}
