package nginx

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"plimsoll/internal/host/rooted"
)

// directive is one directive of an nginx configuration and where it stands.
type directive struct {
	name  string
	args  []string
	file  string // as nginx names it
	line  int    // of the directive's name, from 1
	block []*directive
	// isBlock tells an empty block from a directive without one.
	isBlock bool
	// words are where the name and the arguments stand in the file, with their
	// quotes; end is behind the ";" or "}" that ends it, open behind its "{".
	words     []Span
	open, end int
}

const (
	maxDepth      = 64      // of blocks and includes
	maxDirectives = 500_000 // of one configuration
	maxConfFile   = 16 << 20
	maxConfFiles  = 10_000
	maxConfBytes  = 64 << 20 // of one configuration
)

// parseConf parses the text of one file; includes stay what they are. The
// rules are those of ngx_conf_read_token in nginx's ngx_conf_file.c.
func parseConf(src []byte, file string) ([]*directive, error) {
	p := &confParser{src: string(src), file: file, line: 1}
	list, err := p.block(0)
	if err != nil {
		return nil, fmt.Errorf("parse %s: line %d: %w", file, p.line, err)
	}
	return list, nil
}

type confParser struct {
	src   string
	file  string
	pos   int
	line  int
	count int
}

// block parses directives up to the brace that closes them, or the file's end at depth 0.
func (p *confParser) block(depth int) ([]*directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("want at most %d blocks inside each other", maxDepth)
	}
	var list []*directive
	for {
		p.space()
		if p.pos == len(p.src) {
			if depth > 0 {
				return nil, fmt.Errorf(`want "}", got the end of the file`)
			}
			return list, nil
		}
		if p.src[p.pos] == '}' {
			if depth == 0 {
				return nil, fmt.Errorf(`want a directive, got "}"`)
			}
			p.pos++
			return list, nil
		}
		d, err := p.directive(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
}

func (p *confParser) directive(depth int) (*directive, error) {
	if p.count++; p.count > maxDirectives {
		return nil, fmt.Errorf("want at most %d directives", maxDirectives)
	}
	d := &directive{file: p.file, line: p.line}
	var words []string
	for {
		p.space()
		if p.pos == len(p.src) {
			return nil, fmt.Errorf(`want ";" or "{", got the end of the file`)
		}
		switch c := p.src[p.pos]; c {
		case ';', '{':
			if len(words) == 0 {
				return nil, fmt.Errorf("want a directive, got %q", string(c))
			}
			p.pos++
			d.name, d.args, d.isBlock = words[0], words[1:], c == '{'
			d.open, d.end = p.pos, p.pos
			if c == ';' {
				return d, nil
			}
			var err error
			if strings.HasSuffix(d.name, "_by_lua_block") {
				err = p.lua()
			} else {
				d.block, err = p.block(depth + 1)
			}
			d.end = p.pos
			return d, err
		case '}':
			return nil, fmt.Errorf(`want ";" or "{", got "}"`)
		}
		begin := p.pos
		w, err := p.word()
		if err != nil {
			return nil, err
		}
		words = append(words, w)
		d.words = append(d.words, Span{begin, p.pos})
	}
}

// space skips blanks and comments.
func (p *confParser) space() {
	for ; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case '\n':
			p.line++
		case ' ', '\t', '\r':
		case '#':
			i := strings.IndexByte(p.src[p.pos:], '\n')
			if i < 0 {
				p.pos = len(p.src)
				return
			}
			p.pos += i
			p.line++
		default:
			return
		}
	}
}

// word reads one token, quoted or not.
func (p *confParser) word() (string, error) {
	quote := p.src[p.pos]
	if quote == '"' || quote == '\'' {
		p.pos++
	} else {
		quote = 0
	}
	begun := p.line
	var w strings.Builder
	for ; p.pos < len(p.src); p.pos++ {
		c := p.src[p.pos]
		switch {
		case c == '\\' && p.pos+1 < len(p.src):
			p.pos++
			w.WriteString(unescape(p.src[p.pos]))
			c = p.src[p.pos]
		case quote != 0 && c == quote:
			p.pos++
			return w.String(), nil
		case quote == 0 && c == '{' && strings.HasSuffix(w.String(), "$"):
			w.WriteByte(c) // ${name}
		case quote == 0 && strings.IndexByte(" \t\r\n;{", c) >= 0:
			return w.String(), nil
		default:
			w.WriteByte(c)
		}
		if c == '\n' {
			p.line++
		}
	}
	if quote != 0 {
		return "", fmt.Errorf("want %q to end the string begun on line %d, got the end of the file", quote, begun)
	}
	return w.String(), nil
}

// unescape is what nginx makes of a backslash and the character after it.
func unescape(c byte) string {
	switch c {
	case '"', '\'', '\\':
		return string(rune(c))
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case 'n':
		return "\n"
	}
	return string([]byte{'\\', c})
}

// lua skips the body of a …_by_lua_block (OpenResty): braces count outside
// Lua's strings and comments only.
func (p *confParser) lua() error {
	for depth := 1; p.pos < len(p.src); {
		rest := p.src[p.pos:]
		skip := 1
		switch {
		case strings.HasPrefix(rest, "--[["), strings.HasPrefix(rest, "[["):
			skip = endOf(rest, "]]")
		case strings.HasPrefix(rest, "--"):
			skip = endOf(rest, "\n")
		case rest[0] == '"' || rest[0] == '\'':
			skip = luaString(rest)
		case rest[0] == '{':
			depth++
		case rest[0] == '}':
			depth--
		}
		p.line += strings.Count(rest[:skip], "\n")
		p.pos += skip
		if depth == 0 {
			return nil
		}
	}
	return fmt.Errorf(`want "}" to end the Lua block, got the end of the file`)
}

// endOf is the length of s up to and with mark, or all of it.
func endOf(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i + len(mark)
	}
	return len(s)
}

func luaString(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0], '\n':
			return i + 1
		}
	}
	return len(s)
}

// confLoader reads a configuration with all it includes.
type confLoader struct {
	root   string // the service's root directory, as we see it
	dir    string // against which relative includes stand: that of the main file
	count  int
	bytes  int
	newest time.Time // of the files read
	files  []string  // those read, as the service calls them
	dirs   []string  // where includes were looked for, see rooted.Glob
}

// load parses file and puts the directives of included files in the place of
// their include. Errors name the file as nginx does.
func (l *confLoader) load(file string, depth int) ([]*directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("include %s: want at most %d files inside each other", file, maxDepth)
	}
	src, info, err := rooted.ReadFile(l.root, file, maxConfFile)
	if err != nil {
		return nil, err
	}
	l.files = append(l.files, file)
	if l.bytes += len(src); len(l.files) > maxConfFiles || l.bytes > maxConfBytes {
		return nil, fmt.Errorf("include %s: want at most %d files and %d bytes in all", file, maxConfFiles, maxConfBytes)
	}
	if info.ModTime().After(l.newest) {
		l.newest = info.ModTime()
	}
	list, err := parseConf(src, file)
	if err != nil {
		return nil, err
	}
	return l.expand(list, depth)
}

func (l *confLoader) expand(list []*directive, depth int) ([]*directive, error) {
	var all []*directive
	for _, d := range list {
		if l.count++; l.count > maxDirectives {
			return nil, fmt.Errorf("parse %s: line %d: want at most %d directives", d.file, d.line, maxDirectives)
		}
		if d.name == "include" && !d.isBlock && len(d.args) == 1 {
			inner, err := l.include(d, depth)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		block, err := l.expand(d.block, depth)
		if err != nil {
			return nil, err
		}
		d.block = block
		all = append(all, d)
	}
	return all, nil
}

func (l *confLoader) include(d *directive, depth int) ([]*directive, error) {
	pattern := d.args[0]
	if !path.IsAbs(pattern) {
		pattern = path.Join(l.dir, pattern)
	}
	files, dirs, err := rooted.Glob(l.root, pattern)
	l.dirs = append(l.dirs, dirs...)
	if err == nil && len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
		err = &fs.PathError{Op: "open", Path: pattern, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: line %d: include: %w", d.file, d.line, err)
	}
	var all []*directive
	for _, f := range files {
		inner, err := l.load(f, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: include: %w", d.file, d.line, err)
		}
		all = append(all, inner...)
	}
	return all, nil
}
