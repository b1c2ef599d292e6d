// Package tidy holds the house rules as tests: which room may import which,
// what a room may not do, and what every file owes its reader. It has no code
// of its own. The files are parsed here and not asked of the go command: the
// test cache sees the files that a test opens, not those its children open.
package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "plimsoll/"

// source is one parsed Go file.
type source struct {
	path    string // from the root of the tree, with slashes
	folder  string
	test    bool
	file    *ast.File
	fset    *token.FileSet
	imports []string
}

// at words the place of a node.
func (s source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

// inRoom says whether the file lies in the room or in a folder beneath it.
func (s source) inRoom(room string) bool {
	return s.folder == room || strings.HasPrefix(s.folder, room+"/")
}

// root returns the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above this folder")
	return ""
}

// walk calls fn for each file of the tree, but not for what git or a build put there.
func walk(t *testing.T, fn func(path string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if name == ".git" && !d.IsDir() { // as a second working tree has it
			return nil
		}
		if d.IsDir() && path != top && (name == ".git" || name == "bin" || name == "plimsoll-runs" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			fn(filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isGenerator says whether a file is a program for go generate, and no part of its folder.
func isGenerator(f *ast.File) bool {
	return len(f.Comments) > 0 && f.Comments[0].Pos() < f.Package && f.Comments[0].List[0].Text == "//go:build ignore"
}

// sources parses every Go file of the tree, testdata and generators excepted.
func sources(t *testing.T) []source {
	t.Helper()
	top := root(t)
	var list []source
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(top, path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if isGenerator(file) {
			return
		}
		s := source{
			path: path, folder: filepath.ToSlash(filepath.Dir(path)),
			test: strings.HasSuffix(path, "_test.go") || isTestHelp(filepath.ToSlash(filepath.Dir(path))), file: file, fset: fset,
		}
		for _, imp := range file.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			s.imports = append(s.imports, p)
		}
		list = append(list, s)
	})
	return list
}

// isTestHelp says whether a package is there for tests alone: its name ends in
// "test", like the standard library's httptest.
func isTestHelp(folder string) bool { return strings.HasSuffix(folder, "test") }

// product returns the sources that end up in the binary.
func product(t *testing.T) []source {
	t.Helper()
	var list []source
	for _, s := range sources(t) {
		if !s.test {
			list = append(list, s)
		}
	}
	return list
}
