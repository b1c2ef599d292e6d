package ruleset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/lazy"
)

// lineMessage is how the YAML decoder, and atLine, name a line.
var lineMessage = lazy.Regexp(`^\s*(?:yaml: )?line ([0-9]+): (.*)$`)

// unmarshalType is what the decoder says of our types, which no reader knows.
var unmarshalType = lazy.Regexp(` in type \S+$`)

// InFile puts the file's name before each line of an error, and the number of
// the line where the error knows it: "rules/x/rule.yaml:12: …".
func InFile(file string, err error) error {
	var out []error
	for _, msg := range strings.Split(err.Error(), "\n") {
		if strings.HasPrefix(msg, "yaml: unmarshal errors") || strings.TrimSpace(msg) == "" {
			continue
		}
		if m := lineMessage().FindStringSubmatch(msg); m != nil {
			out = append(out, fmt.Errorf("%s:%s: %s", file, m[1], unmarshalType().ReplaceAllString(m[2], "")))
			continue
		}
		out = append(out, fmt.Errorf("%s: %s", file, strings.TrimPrefix(msg, "yaml: ")))
	}
	return errors.Join(out...)
}

// lineOf returns the line of a rule file that a message is about, 0 when it
// cannot be told. A message begins with what it is about: "applies: …", "clue full:
// measure: …", `fix "Raise the limit": …`.
func lineOf(raw []byte, message string) int {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil || len(root.Content) == 0 {
		return 0
	}
	top := root.Content[0]
	word, rest, _ := strings.Cut(message, " ")
	switch word {
	case "clue":
		id, _, _ := strings.Cut(rest, ":")
		return lineOfItem(top, "clues", "id", id, rest)
	case "fix":
		title, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return 0
		}
		name, err := strconv.Unquote(title)
		if err != nil {
			return 0
		}
		return lineOfItem(top, "fix", "title", name, rest)
	}
	if key := child(top, strings.TrimSuffix(word, ":")); key != nil {
		return key.Line
	}
	return 0
}

// lineOfItem looks for the item of a list whose field by is name, and in it for
// the first field that the message names.
func lineOfItem(top *yaml.Node, list, by, name, message string) int {
	items := child(top, list)
	if items == nil {
		return 0
	}
	for _, item := range items.Content {
		if id := child(item, by); id == nil || id.Value != name {
			continue
		}
		_, field, _ := strings.Cut(message, name)
		field, _, _ = strings.Cut(strings.TrimLeft(field, `":. `), ":")
		field, _, _ = strings.Cut(field, " ")
		if n := child(item, field); n != nil {
			return n.Line
		}
		return item.Line
	}
	return 0
}

// child is the value of a key of a mapping, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
