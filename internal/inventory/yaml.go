package inventory

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/lazy"
)

// readYAML reads an inventory in YAML: groups, each with hosts, vars and children.
func readYAML(text []byte) (*book, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fault(lineOf(err), "want YAML") // its own words may quote a password
	}
	r := &yamlReader{book: newBook()}
	if len(doc.Content) == 0 {
		return r.book, nil
	}
	return r.book, r.each(doc.Content[0], "the inventory", func(name string, _, of *yaml.Node) error {
		if name == "plugin" {
			return fault(doc.Content[0].Line, "it configures a plugin of Ansible's, which is not run; ansible-inventory --list --yaml --output FILE writes what that finds, and FILE can be named here")
		}
		return r.group(name, of, 1)
	})
}

var yamlLine = lazy.Regexp(`line (\d+)`)

// lineOf is the line that an error of the parser names, else the first.
func lineOf(err error) int {
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1
}

type yamlReader struct {
	*book
	looked int
}

// each calls do for the entries of a mapping; of nothing there are none.
func (r *yamlReader) each(n *yaml.Node, what string, do func(name string, key, value *yaml.Node) error) error {
	n = whole(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fault(n.Line, "%s: want names, and what belongs to each beneath it", clip(what))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if r.looked++; r.looked > maxEntries { // anchors can make much of little
			return fault(n.Line, "more than %d entries", maxEntries)
		}
		key := whole(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return fault(key.Line, "%s: want a name (a mapping that is merged, <<, is not read)", clip(what))
		}
		if err := do(key.Value, key, whole(n.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// whole is what an alias stands for.
func whole(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// group reads what is beneath a group's name.
func (r *yamlReader) group(name string, of *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fault(of.Line, "more than %d groups in one another", maxDepth)
	}
	g := r.book.group(name, of.Line)
	return r.each(of, "the group "+name, func(key string, at, value *yaml.Node) error {
		switch key {
		case "hosts":
			return r.each(value, "the hosts of "+name, func(pattern string, at, said *yaml.Node) error { return r.host(name, pattern, at, said) })
		case "vars":
			return r.vars(g, "the vars of "+name, value)
		case "children":
			return r.each(value, "the children of "+name, func(child string, at, value *yaml.Node) error {
				if err := r.nest(name, child, at.Line); err != nil {
					return err
				}
				return r.group(child, value, depth+1)
			})
		}
		return fault(at.Line, "%q in the group %s: want hosts, vars or children", clip(key), clip(name))
	})
}

// host reads a host, or a range of them, and what is said of it.
func (r *yamlReader) host(in, pattern string, at, said *yaml.Node) error {
	pattern, portHere := hostAndPort(pattern)
	names, err := r.add(in, pattern, at.Line)
	if err != nil {
		return err
	}
	for _, name := range names {
		if portHere != "" {
			r.hosts[name].set(port, portHere, at.Line)
		}
		if err := r.vars(r.hosts[name], "the host "+name, said); err != nil {
			return err
		}
	}
	return nil
}

// vars reads the variables of a group or a host; those that are no plain values are none of ours.
func (r *yamlReader) vars(g *group, what string, said *yaml.Node) error {
	return r.each(said, what, func(name string, at, value *yaml.Node) error {
		switch {
		case keeps(name) != "" && strings.HasPrefix(value.Tag, "!") && !strings.HasPrefix(value.Tag, "!!"):
			return fault(at.Line, "%s is encrypted (%s), which is not read; say it in your ssh's configuration", name, clip(value.Tag))
		case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
			g.set(name, value.Value, at.Line)
		}
		return nil
	})
}
