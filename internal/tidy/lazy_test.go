package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// A pattern or a template that a package makes when it is initialised is paid by
// every start of the program, and most starts do not want it.
func TestNothingDearIsMadeAtTheStart(t *testing.T) {
	read := 0
	for _, s := range sources(t) {
		if s.test || s.inRoom("bench") {
			continue
		}
		for _, d := range s.file.Decls {
			if g, is := d.(*ast.GenDecl); is {
				ast.Inspect(g, func(n ast.Node) bool { return !dear(t, s, n) })
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if pattern, is := lazyPattern(n); is {
				read++
				if _, err := regexp.Compile(pattern); err != nil {
					t.Errorf("%s: %v", s.at(n), err)
				}
			}
			return true
		})
	}
	if read < 100 {
		t.Errorf("%d patterns were compiled here; there are more than a hundred", read)
	}
}

// dear says whether the walk ends at a node: it is a function, which runs later,
// or it is what does not belong there.
func dear(t *testing.T, s source, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return true
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		if x != nil && (x.Name == "regexp" || x.Name == "template") && (n.Sel.Name == "MustCompile" || n.Sel.Name == "Must") {
			t.Errorf("%s: %s.%s at the start; use lazy.Regexp, or sync.OnceValue", s.at(n), x.Name, n.Sel.Name)
			return true
		}
	}
	return false
}

// lazyPattern returns the pattern that stands in a call of lazy.Regexp, or of
// loadtool's says.
func lazyPattern(n ast.Node) (string, bool) {
	call, is := n.(*ast.CallExpr)
	if !is || len(call.Args) == 0 {
		return "", false
	}
	lit, is := call.Args[0].(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return "", false
	}
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		x, _ := fn.X.(*ast.Ident)
		is = x != nil && x.Name == "lazy" && fn.Sel.Name == "Regexp"
	case *ast.Ident:
		is = fn.Name == "says"
	default:
		is = false
	}
	pattern, err := strconv.Unquote(lit.Value)
	return pattern, is && err == nil
}
