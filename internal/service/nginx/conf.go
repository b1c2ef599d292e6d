package nginx

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"plimsoll/internal/host/rooted"
)

// Span is a piece of a file: the bytes from Begin up to End.
type Span struct{ Begin, End int }

// Directive is one directive of a configuration and where it stands.
type Directive struct {
	Name string
	Args []string
	// File is as nginx names it; "" for a directive of the option -g.
	File string
	Line int // of the name, from 1
	// Words are the name and the arguments, with their quotes.
	Words []Span
	// End is behind the ";" or "}"; Open is behind the "{" of a block.
	Open, End int
	// IsBlock tells an empty block from a directive without one.
	IsBlock bool
	// Block are the directives in a block, those of included files among them.
	Block []*Directive
}

const (
	maxDepth      = 64      // of blocks and includes
	maxDirectives = 500_000 // of one configuration
	maxConfFile   = 16 << 20
	maxConfFiles  = 10_000
	maxConfBytes  = 64 << 20 // of one configuration
)

// Parse parses the text of one file; includes stay what they are. The
// rules are those of ngx_conf_read_token in nginx's ngx_conf_file.c.
func Parse(src []byte, file string) ([]*Directive, error) {
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
func (p *confParser) block(depth int) ([]*Directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("want at most %d blocks inside each other", maxDepth)
	}
	var list []*Directive
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

func (p *confParser) directive(depth int) (*Directive, error) {
	if p.count++; p.count > maxDirectives {
		return nil, fmt.Errorf("want at most %d directives", maxDirectives)
	}
	d := &Directive{File: p.file, Line: p.line}
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
			d.Name, d.Args, d.IsBlock = words[0], words[1:], c == '{'
			d.Open, d.End = p.pos, p.pos
			if c == ';' {
				return d, nil
			}
			var err error
			if strings.HasSuffix(d.Name, "_by_lua_block") {
				err = p.lua()
			} else {
				d.Block, err = p.block(depth + 1)
			}
			d.End = p.pos
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
		d.Words = append(d.Words, Span{begin, p.pos})
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

// loader reads a configuration with all it includes.
type loader struct {
	root   string // the service's root directory, as we see it
	dir    string // against which relative includes stand: that of the main file
	count  int
	bytes  int
	newest time.Time // of the files read
	files  []string  // those read, as the service calls them
	dirs   []string  // where includes were looked for, see rooted.Glob
	// instead is what a file would hold, for who wants to know what that would mean; nil for what it holds.
	instead func(fs.FileInfo) ([]byte, bool)
}

// loadAll parses the directives of the option -g and the main file with all that they
// include.
func (l *loader) loadAll(option, main string) ([]*Directive, error) {
	global, err := Parse([]byte(option), optionG)
	if err == nil {
		global, err = l.expand(global, 0)
	}
	if err != nil {
		return nil, err
	}
	list, err := l.load(main, 0)
	if err != nil {
		return nil, err
	}
	notInAFile(global)
	return append(global, list...), nil
}

// notInAFile takes the name of a file off directives that stand in none.
func notInAFile(list []*Directive) {
	for _, d := range list {
		if d.File == optionG {
			d.File = ""
		}
		notInAFile(d.Block)
	}
}

// load parses file and puts the directives of included files in the place of
// their include. Errors name the file as nginx does.
func (l *loader) load(file string, depth int) ([]*Directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("include %s: want at most %d files inside each other", file, maxDepth)
	}
	src, info, err := rooted.ReadFile(l.root, file, maxConfFile)
	if err != nil {
		return nil, err
	}
	if l.instead != nil {
		if other, ok := l.instead(info); ok {
			src = other
		}
	}
	l.files = append(l.files, file)
	if l.bytes += len(src); len(l.files) > maxConfFiles || l.bytes > maxConfBytes {
		return nil, fmt.Errorf("include %s: want at most %d files and %d bytes in all", file, maxConfFiles, maxConfBytes)
	}
	if info.ModTime().After(l.newest) {
		l.newest = info.ModTime()
	}
	list, err := Parse(src, file)
	if err != nil {
		return nil, err
	}
	return l.expand(list, depth)
}

func (l *loader) expand(list []*Directive, depth int) ([]*Directive, error) {
	var all []*Directive
	for _, d := range list {
		if l.count++; l.count > maxDirectives {
			return nil, fmt.Errorf("parse %s: line %d: want at most %d directives", d.File, d.Line, maxDirectives)
		}
		if d.Name == "include" && !d.IsBlock && len(d.Args) == 1 {
			inner, err := l.include(d, depth)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		block, err := l.expand(d.Block, depth)
		if err != nil {
			return nil, err
		}
		d.Block = block
		all = append(all, d)
	}
	return all, nil
}

func (l *loader) include(d *Directive, depth int) ([]*Directive, error) {
	pattern := d.Args[0]
	if !path.IsAbs(pattern) {
		pattern = path.Join(l.dir, pattern)
	}
	files, dirs, err := rooted.Glob(l.root, pattern)
	l.dirs = append(l.dirs, dirs...)
	if err == nil && len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
		err = &fs.PathError{Op: "open", Path: pattern, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: line %d: include: %w", d.File, d.Line, err)
	}
	var all []*Directive
	for _, f := range files {
		inner, err := l.load(f, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: include: %w", d.File, d.Line, err)
		}
		all = append(all, inner...)
	}
	return all, nil
}
