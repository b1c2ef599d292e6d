package change

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/host/rooted"
	"plimsoll/internal/service/nginx"
)

// editor plans the edits of one nginx's configuration.
type editor struct {
	c     Change
	root  string // of the files, as we reach them
	tree  []*nginx.Directive
	log   string // the access log where none is given
	edits map[string][]edit
	old   []string // what stood there, in the order of the files
	notes []string
	src   map[string][]byte
}

// replace gives a directive other arguments.
func (e *editor) replace(d *nginx.Directive, args []string) error {
	e.old = append(e.old, strings.Join(d.Args, " "))
	if slices.Equal(d.Args, args) {
		return nil
	}
	if len(d.Args) == 0 {
		return fmt.Errorf("%s, line %d: it has no value", d.File, d.Line)
	}
	return e.put(d, edit{d.Words[1].Begin, d.Words[len(d.Words)-1].End, strings.Join(args, " ")})
}

// put notes an edit of the file in which d stands.
func (e *editor) put(d *nginx.Directive, x edit) error {
	if d.File == "" {
		return fmt.Errorf("%s stands on nginx's command line (-g), which only a restart changes: %w", d.Name, ErrNotPossible)
	}
	if !slices.Contains(e.edits[d.File], x) { // a file that is included twice is parsed twice
		e.edits[d.File] = append(e.edits[d.File], x)
	}
	return nil
}

// text is the file in which d stands.
func (e *editor) text(d *nginx.Directive) ([]byte, error) {
	if b, ok := e.src[d.File]; ok {
		return b, nil
	}
	b, _, err := rooted.ReadFile(e.root, d.File, maxFile)
	e.src[d.File] = b
	if err == nil && d.End > len(b) {
		err = fmt.Errorf("%s is being edited by somebody", d.File)
	}
	return b, err
}

// block finds a top block.
func (e *editor) block(name string) (*nginx.Directive, []byte, error) {
	for _, d := range e.tree {
		if d.Name == name && d.IsBlock {
			src, err := e.text(d)
			return d, src, err
		}
	}
	return nil, nil, fmt.Errorf("no %s block: %w", name, ErrNotPossible)
}

func (e *editor) before(name, line string) error {
	d, src, err := e.block(name)
	if err != nil {
		return err
	}
	at := d.Words[0].Begin
	return e.put(d, edit{at, at, line + lineEnd(src) + indent(src, at)})
}

func (e *editor) into(name, line string) error {
	d, src, err := e.block(name)
	if err != nil {
		return err
	}
	return e.put(d, first(src, d.Open, d.End, line))
}
