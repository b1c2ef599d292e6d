package lab

import (
	"fmt"
	"io/fs"
	"maps"
	"sort"
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

// checkVars refuses a var that no template reads: a misspelt one would leave
// the fault out without a word.
func (c *Case) checkVars(files fs.FS) error {
	var all strings.Builder
	for _, s := range c.Steps {
		switch {
		case s.Sysctl != nil:
			all.WriteString(s.Sysctl.Value)
		case s.MachineSysctl != nil:
			all.WriteString(s.MachineSysctl.Value)
		case s.NFT != nil:
			all.WriteString(s.NFT.Rules)
		case s.Qdisc != nil:
			all.WriteString(s.Qdisc.Spec)
		case s.File != nil:
			if text, err := s.File.text(files); err == nil {
				all.WriteString(text)
			}
		case s.Cgroup != nil:
			all.WriteString(strings.Join(s.Cgroup.texts(), " "))
		case s.Nginx != nil:
			all.WriteString(strings.Join(s.Nginx.texts(), " "))
		case s.PHPFPM != nil:
			all.WriteString(strings.Join(s.PHPFPM.texts(), " "))
		case s.Process != nil:
			all.WriteString(strings.Join(s.Process.Command, " "))
			all.WriteString(" ." + s.Process.Unless + " ")
		}
	}
	all.WriteString(strings.Join(c.Load.Command, " "))
	var unread []string
	for name := range c.Vars {
		if !strings.Contains(all.String(), "."+name) {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 {
		sort.Strings(unread)
		return fmt.Errorf("no step reads the vars %s", strings.Join(unread, ", "))
	}
	return nil
}
