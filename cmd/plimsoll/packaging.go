package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand writes the man pages of all commands; for packages alone.
func manCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "man DIR", Short: "write the man pages (for packages)", Hidden: true, Args: oneArgument("a folder")}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return fail(exitRunDir, err)
		}
		var write func(c *cobra.Command) error
		write = func(c *cobra.Command) error {
			name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
			if err := os.WriteFile(filepath.Join(args[0], name), []byte(manPage(c)), 0o644); err != nil {
				return fail(exitRunDir, err)
			}
			for _, sub := range c.Commands() {
				if sub.Hidden {
					continue
				}
				if err := write(sub); err != nil {
					return err
				}
			}
			return nil
		}
		return write(c.Root())
	}
	return c
}

// manPage is a command's help as a man page: its sections are headings, and what is in
// them is laid out already.
func manPage(c *cobra.Command) string {
	var help strings.Builder
	c.SetOut(&help)
	_ = c.Help() // a strings.Builder takes all
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(strings.ReplaceAll(c.CommandPath(), " ", "-")), "plimsoll "+version,
		roff(strings.ReplaceAll(c.CommandPath(), " ", "-")), roff(c.Short))
	filling := true // no line of the help but its first is before a heading
	for i, line := range strings.Split(strings.TrimRight(help.String(), "\n"), "\n") {
		switch {
		case i == 0:
		case line != "" && line == strings.ToUpper(line) && line[0] >= 'A' && line[0] <= 'Z':
			if !filling {
				b.WriteString(".fi\n")
			}
			fmt.Fprintf(&b, ".SH %s\n.nf\n", roff(line))
			filling = false
		case !filling:
			b.WriteString(roff(line) + "\n")
		}
	}
	if !filling {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff is a line of text as roff takes it.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// sbomCommand writes what a binary of ours was built from; for releases alone.
func sbomCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "sbom FILE", Short: "write a binary's bill of materials (for releases)", Hidden: true, Args: oneArgument("a binary")}
	c.RunE = func(_ *cobra.Command, args []string) error {
		info, err := buildinfo.ReadFile(args[0])
		if err != nil {
			return fail(exitUsage, err)
		}
		if info.Main.Path != "plimsoll" {
			return fail(exitUsage, errors.New(args[0]+": it is no binary of Plimsoll"))
		}
		enc := json.NewEncoder(w.stdout) // its schema is CycloneDX's
		enc.SetIndent("", "  ")
		return enc.Encode(billOfMaterials(info))
	}
	return c
}

// component is one in CycloneDX's form.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	// Properties have a module's checksum, which is none of the kinds that CycloneDX knows.
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bom is a CycloneDX document. It has no serial number and no time: the same binary
// gives the same bytes.
type bom struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

func billOfMaterials(info *buildinfo.BuildInfo) bom {
	doc := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Components: []component{}}
	doc.Metadata.Component = component{Type: "application", Name: "plimsoll", Version: version}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" || s.Key == "GOOS" || s.Key == "CGO_ENABLED" {
			doc.Metadata.Component.Properties = append(doc.Metadata.Component.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	doc.Components = append(doc.Components, component{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		doc.Components = append(doc.Components, component{Type: "library", Name: m.Path, Version: m.Version,
			PURL: "pkg:golang/" + m.Path + "@" + m.Version, Properties: []property{{"go:sum", m.Sum}}})
	}
	slices.SortStableFunc(doc.Components, func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	return doc
}
