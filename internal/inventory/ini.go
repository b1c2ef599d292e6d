package inventory

import (
	"strings"
)

// readINI reads an inventory in INI: [group], [group:vars], [group:children].
func readINI(text []byte) (*book, error) {
	b := newBook()
	name, kind := ungrouped, "hosts"
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		var err error
		if line[0] == '[' && !isRange(line) {
			name, kind, err = section(line, n)
			b.group(name, n)
		} else {
			err = b.entry(name, kind, line, n)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// isRange says whether a line that begins with a bracket names hosts, as [a:c].example does, and no group.
func isRange(line string) bool {
	head, _, _ := strings.Cut(line, " ")
	return !strings.HasSuffix(head, "]") && strings.Contains(head, "]") && !strings.Contains(head, "]#")
}

// section reads a line in brackets.
func section(line string, n int) (name, kind string, err error) {
	inside, rest, closed := strings.Cut(line[1:], "]")
	if rest = strings.TrimSpace(rest); !closed || rest != "" && rest[0] != '#' && rest[0] != ';' {
		return "", "", fault(n, "%q: want [GROUP], [GROUP:vars] or [GROUP:children]", clip(line))
	}
	name, kind, of := strings.Cut(strings.TrimSpace(inside), ":")
	if !of {
		kind = "hosts"
	}
	if name == "" || strings.ContainsAny(name, " \t") || kind != "hosts" && kind != "vars" && kind != "children" {
		return "", "", fault(n, "%q: want [GROUP], [GROUP:vars] or [GROUP:children]", clip(line))
	}
	return name, kind, nil
}

// entry reads a line of a section.
func (b *book) entry(name, kind, line string, n int) error {
	if kind == "vars" { // the line as it stands: a value may hold any quote
		key, text, is := strings.Cut(line, "=")
		if !is { // what stands there may be a password
			return fault(n, "want NAME=VALUE below [%s:vars]", clip(name))
		}
		b.groups[name].set(strings.TrimSpace(key), bare(strings.TrimSpace(text)), n)
		return nil
	}
	words, err := split(line)
	if err != nil {
		return fault(n, "%v", err)
	}
	if kind == "children" {
		if len(words) != 1 {
			return fault(n, "want one group a line below [%s:children]", name)
		}
		return b.nest(name, words[0], n)
	}
	pattern, portHere := hostAndPort(words[0])
	hosts, err := b.add(name, pattern, n)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if portHere != "" {
			b.hosts[host].set(port, portHere, n)
		}
		for i, word := range words[1:] {
			key, text, is := strings.Cut(word, "=")
			if !is {
				return fault(n, "want NAME=VALUE behind a host: word %d has no =", i+2)
			}
			b.hosts[host].set(key, text, n)
		}
	}
	return nil
}

// hostAndPort parts HOST:PORT, the colons of ranges and of IPv6 addresses aside.
func hostAndPort(word string) (host, port string) {
	i := strings.LastIndexByte(word, ':')
	if i < 0 || strings.IndexByte(word[i:], ']') >= 0 || strings.IndexByte(word[:i], ':') >= 0 && !strings.HasSuffix(word[:i], "]") && !strings.Contains(word[:i], "[") {
		return word, ""
	}
	host, port = word[:i], word[i+1:]
	if port == "" || strings.Trim(port, "0123456789") != "" {
		return word, ""
	}
	return host, port
}

// split parts a line into words as a shell does: quotes hold words together, and # begins a comment.
func split(line string) (words []string, err error) {
	var word strings.Builder
	begun := false
	var quote rune
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			if begun {
				words, begun = append(words, word.String()), false
				word.Reset()
			}
		case r == '#' && !begun:
			return words, nil
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// bare is a value without the quotes around it, and without a comment behind it.
func bare(text string) string {
	if len(text) > 1 && (text[0] == '\'' || text[0] == '"') {
		if end := strings.IndexByte(text[1:], text[0]); end >= 0 {
			return text[1 : end+1]
		}
	}
	text, _, _ = strings.Cut(text, " #")
	return strings.TrimSpace(text)
}

// Configured is the inventory that an ansible.cfg names, "" for none.
func Configured(config []byte) (file string) {
	in := ""
	for line := range strings.Lines(string(config)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = line
			continue
		}
		if key, text, is := strings.Cut(line, "="); is && in == "[defaults]" && strings.TrimSpace(key) == "inventory" {
			file, _, _ = strings.Cut(strings.TrimSpace(text), " ;")
			file = strings.TrimSpace(file)
		}
	}
	return file
}
