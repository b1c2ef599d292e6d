package tidy

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const longestFunction = 70

// longer lists functions that were longer before the rule came, with their
// length; they may only shrink. It is empty, and stays so.
var longer = map[string]int{}

func TestFunctionsStayShort(t *testing.T) {
	found := map[string]bool{}
	for _, s := range product(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			name := s.folder + "." + f.Name.Name
			found[name] = true
			if most := max(longestFunction, longer[name]); lines > most {
				t.Errorf("%s: %s has %d lines, at most %d are allowed; split it", s.at(f), f.Name.Name, lines, most)
			}
		}
	}
	for name := range longer {
		if !found[name] {
			t.Errorf("the list of longer functions names %s, which is gone; take it out", name)
		}
	}
}

func TestEachPackageHasOneComment(t *testing.T) {
	comments, folders := map[string]int{}, map[string]bool{}
	for _, s := range product(t) {
		folders[s.folder] = true
		if s.file.Doc != nil {
			comments[s.folder]++
		}
	}
	for folder := range folders {
		if n := comments[folder]; n != 1 {
			t.Errorf("%s has %d package comments, want 1", folder, n)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range product(t) {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && onExported(d) {
					t.Errorf("%s: %s has no comment", s.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range bare(d) {
					t.Errorf("%s: %s has no comment", s.at(name), name.Name)
				}
			}
		}
	}
}

// wellKnown are the methods whose meaning the language or its library gives.
var wellKnown = []string{"Error", "Unwrap", "String", "Len", "Less", "Swap"}

// onExported says whether the function is no method, or one of an exported type
// that needs a word.
func onExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if slices.Contains(wellKnown, d.Name.Name) {
		return false
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

// bare returns the exported names of a declaration that no comment covers: a
// comment on the group, before the name, or behind it on its line.
func bare(d *ast.GenDecl) []*ast.Ident {
	if d.Doc != nil || d.Tok == token.IMPORT {
		return nil
	}
	var list []*ast.Ident
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Doc == nil && spec.Name.IsExported() {
				list = append(list, spec.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if spec.Doc == nil && spec.Comment == nil && name.IsExported() {
					list = append(list, name)
				}
			}
		}
	}
	return list
}

var (
	// A note for later names who will do it.
	nobodysTask = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b[^(]`)
	// The folders in which people keep their working copies.
	somebodysFolder = regexp.MustCompile(`(^|[\s"'=(:])/(work|home|Users|workspace)/[A-Za-z0-9_]`)
)

// No file says what is true on one machine alone, and no task is nobody's.
func TestNoPrivatePathsAndNobodysTasks(t *testing.T) {
	top := root(t)
	walk(t, func(path string) {
		if strings.HasPrefix(path, "internal/tidy/") || strings.HasSuffix(path, "go.sum") {
			return
		}
		text, err := os.ReadFile(filepath.Join(top, path))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return
		}
		recorded := strings.Contains(path, "testdata/") || strings.Contains(path, "captured/")
		for i, line := range strings.Split(string(text), "\n") {
			if somebodysFolder.MatchString(line) {
				t.Errorf("%s:%d names a folder of one machine: %s", path, i+1, strings.TrimSpace(line))
			}
			if !recorded && nobodysTask.MatchString(line+" ") {
				t.Errorf("%s:%d: a task without a name; write TODO(name): %s", path, i+1, strings.TrimSpace(line))
			}
		}
	})
}

// A rule without vectors is an opinion.
func TestRulesHaveVectors(t *testing.T) {
	has := map[string]bool{}
	var rules []string
	walk(t, func(path string) {
		if strings.HasPrefix(path, "rules/") {
			has[path] = true
			if filepath.Base(path) == "rule.yaml" {
				rules = append(rules, filepath.ToSlash(filepath.Dir(path)))
			}
		}
	})
	for _, r := range rules {
		if !has[r+"/tests.yaml"] {
			t.Errorf("%s has no tests.yaml: write fires, near, quiet, missing and boundary", r)
		}
	}
}
