package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manyFiles is how many files a package may have before their order matters: so few
// are read at once.
const manyFiles = 10

// In a package of many files, arrows run one way: a file that uses what another one
// declares is not used by it, nor by what it uses. So the package can be read from
// one end. A use is any name of a type, function, method, field, variable or constant.
func TestFilesUseOneAnotherOneWay(t *testing.T) {
	folders := map[string][]source{}
	for _, s := range product(t) {
		folders[s.folder] = append(folders[s.folder], s)
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if len(folders[folder]) <= manyFiles {
			continue
		}
		arrows := fileArrows(t, folders[folder])
		circles := inCircles(arrows)
		if len(circles) == 0 {
			continue
		}
		t.Errorf("%s: %d files use one another in a circle: %s; move what both ends use into a file beneath them",
			folder, len(circles), strings.Join(circles, " "))
		for _, f := range circles {
			t.Logf("%s uses %v", f, slices.Sorted(maps.Keys(arrows[f])))
		}
	}
}

// fileArrows says which files of a package use what which others declare. What other
// packages declare is not looked into, so an arrow that only leads through them is missed.
func fileArrows(t *testing.T, files []source) map[string]map[string]bool {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, s := range files {
		f, err := parser.ParseFile(fset, filepath.Join(root(t), s.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: hollow{}, Error: func(error) {}} // of what is hollow, all is undefined
	pkg, _ := check.Check(files[0].folder, fset, parsed, info)
	arrows := map[string]map[string]bool{}
	for name, what := range info.Uses {
		if what.Pkg() != pkg || !what.Pos().IsValid() {
			continue
		}
		from, to := path.Base(fset.Position(name.Pos()).Filename), path.Base(fset.Position(what.Pos()).Filename)
		if from == to {
			continue
		}
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		arrows[from][to] = true
	}
	return arrows
}

// hollow imports packages without anything in them.
type hollow struct{}

func (hollow) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// inCircles returns the files from which a way leads back to themselves.
func inCircles(arrows map[string]map[string]bool) []string {
	var list []string
	for _, f := range slices.Sorted(maps.Keys(arrows)) {
		seen := map[string]bool{}
		var walk func(string)
		walk = func(from string) {
			for to := range arrows[from] {
				if !seen[to] {
					seen[to] = true
					walk(to)
				}
			}
		}
		if walk(f); seen[f] {
			list = append(list, f)
		}
	}
	return list
}

func TestCirclesAreFound(t *testing.T) {
	arrows := map[string]map[string]bool{
		"top.go": {"a.go": true, "leaf.go": true},
		"a.go":   {"b.go": true},
		"b.go":   {"c.go": true, "leaf.go": true},
		"c.go":   {"a.go": true},
	}
	if got := strings.Join(inCircles(arrows), " "); got != "a.go b.go c.go" {
		t.Errorf("in circles: %s; want a.go b.go c.go", got)
	}
}
