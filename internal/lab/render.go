package lab

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"text/template"
)

// values are what templates are filled with: a case's vars, "dir", the work
// directory, and "disk", the directory of its disk files.
type values map[string]string

// values returns the case's vars with the given mends applied.
func (c *Case) values(dir string, mends []string) (values, error) {
	v := values{}
	maps.Copy(v, c.Vars)
	for _, id := range mends {
		found := false
		for _, m := range c.Mends {
			if m.ID == id {
				maps.Copy(v, m.Set)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("case %s has no mend %q; it has: %s", c.ID, id, strings.Join(c.mendIDs(), ", "))
		}
	}
	v["dir"] = dir
	return v, nil
}

func (c *Case) mendIDs() []string {
	var ids []string
	for _, m := range c.Mends {
		ids = append(ids, m.ID)
	}
	return ids
}

// render fills in one template. A var the case does not have is empty, so that
// templates shared by cases can say {{or .name "default"}}.
func (v values) render(name, text string) (string, error) {
	t, err := template.New(name).Option("missingkey=zero").Parse(text)
	if err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, map[string]string(v)); err != nil {
		return "", fmt.Errorf("template %s: %w", name, err)
	}
	return b.String(), nil
}

func (v values) renderAll(name string, texts []string) ([]string, error) {
	out := make([]string, len(texts))
	for i, text := range texts {
		s, err := v.render(name, text)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// text returns a file step's template.
func (f *File) text(files fs.FS) (string, error) {
	if f.Content != "" {
		return f.Content, nil
	}
	data, err := fs.ReadFile(files, f.From)
	if err != nil {
		return "", fmt.Errorf("file %s: read template %s: %w", f.Path, f.From, err)
	}
	return string(data), nil
}
