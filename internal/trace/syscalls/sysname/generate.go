//go:build ignore

// This program writes the tables of names from golang.org/x/sys/unix.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		log.Fatalf("ask where golang.org/x/sys is: %v", err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		names, err := numbers(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
		if err != nil {
			log.Fatal(err)
		}
		if err := write("names_"+arch+".go", names); err != nil {
			log.Fatal(err)
		}
	}
}

// numbers reads the constants SYS_… of a file.
func numbers(path string) (map[int]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, isSys := strings.CutPrefix(spec.Names[0].Name, "SYS_")
		value, isNumber := spec.Values[0].(*ast.BasicLit)
		if !isSys || !isNumber || name == "ARCH_SPECIFIC_SYSCALL" {
			return true
		}
		if nr, err := strconv.Atoi(value.Value); err == nil {
			names[nr] = strings.ToLower(name)
		}
		return true
	})
	return names, nil
}

func write(path string, names map[int]string) error {
	var order []int
	for nr := range names {
		order = append(order, nr)
	}
	slices.Sort(order)
	var b bytes.Buffer
	fmt.Fprintln(&b, "// Code generated from golang.org/x/sys/unix by generate.go; DO NOT EDIT.\n\npackage sysname\n\nvar names = [...]string{")
	for _, nr := range order {
		fmt.Fprintf(&b, "%d: %q,\n", nr, names[nr])
	}
	fmt.Fprintln(&b, "}")
	text, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
