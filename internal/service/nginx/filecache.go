package nginx

import (
	"path"
	"slices"
	"strings"
)

// defaultCacheValid is open_file_cache_valid's, in seconds.
const defaultCacheValid = 60

// fileCache is what a block inherits of the directives open_file_cache….
type fileCache struct {
	on, errors bool
	valid      float64
}

// remembersMissing is for how long nginx remembers that a file could not be
// opened, in seconds; the longest of all its blocks, 0 where none does.
func remembersMissing(list []*Directive) float64 {
	longest := 0.0
	for _, d := range list {
		if d.Name == "http" {
			longest = max(longest, (fileCache{valid: defaultCacheValid}).longest(d.Block))
		}
	}
	return longest
}

func (c fileCache) longest(block []*Directive) float64 {
	for _, d := range block {
		if len(d.Args) == 0 {
			continue
		}
		switch d.Name {
		case "open_file_cache":
			c.on = d.Args[0] != "off"
		case "open_file_cache_errors":
			c.errors = d.Args[0] == "on"
		case "open_file_cache_valid":
			c.valid = seconds(d.Args[0], c.valid)
		}
	}
	longest := 0.0
	if c.on && c.errors {
		longest = c.valid
	}
	for _, d := range block {
		if d.Name == "server" || d.Name == "location" || d.Name == "if" {
			longest = max(longest, c.longest(d.Block))
		}
	}
	return longest
}

// plainRoot is the only root of a configuration in which nothing answers but
// files: there a request's path names the file, and a 404 says that it is not there.
// Where a request finds no root, nginx takes one that it was built with; that is another.
func plainRoot(list []*Directive, prefix string) string {
	var roots []string
	plain := true
	var walk func(block []*Directive, rooted bool)
	walk = func(block []*Directive, rooted bool) {
		rooted = rooted || slices.ContainsFunc(block, isRoot)
		for _, d := range block {
			switch {
			case isRoot(d):
				roots = append(roots, absolute(prefix, d.Args[0]))
			case answersOtherwise(d), !rooted && rootless(d):
				plain = false
			}
			walk(d.Block, rooted)
		}
	}
	for _, d := range list {
		if d.Name == "http" {
			walk(d.Block, false)
		}
	}
	slices.Sort(roots)
	if roots = slices.Compact(roots); !plain || len(roots) != 1 || strings.Contains(roots[0], "$") {
		return ""
	}
	return path.Clean(roots[0])
}

func isRoot(d *Directive) bool { return d.Name == "root" && len(d.Args) == 1 }

// rootless says that requests end in a block that has no root of its own, where none is inherited.
func rootless(d *Directive) bool {
	if slices.ContainsFunc(d.Block, isRoot) {
		return false
	}
	return d.Name == "location" || d.Name == "server" && !slices.ContainsFunc(d.Block, takesAll)
}

// takesAll tells of a location in which whatever no other one takes ends.
func takesAll(d *Directive) bool {
	return d.Name == "location" && len(d.Args) > 0 && d.Args[len(d.Args)-1] == "/" && (len(d.Args) == 1 || d.Args[0] == "^~")
}

// answersOtherwise tells of a directive with which a request's path names no
// file, or another one, or one that is not to be had.
func answersOtherwise(d *Directive) bool {
	switch d.Name {
	case "return", "internal", "rewrite", "alias", "if", "dav_methods", "js_content", "perl", "disable_symlinks":
		return true
	case "error_page":
		return slices.Contains(d.Args, "=404")
	case "try_files":
		return len(d.Args) == 0 || d.Args[0] != "$uri"
	}
	return strings.HasSuffix(d.Name, "_pass") || strings.Contains(d.Name, "_by_")
}
