// Command gotest is go test for a whole tree, with a net beneath it: a test that fails
// is run once more, alone, and what passes then is named at the end, so that it is
// looked into. What says more than that one test did not get what it waited for is red
// at once: a package that does not build, panics, is killed or runs out of time, a data
// race, and more than three tests.
//
//	go run ./scripts/gotest [-FLAG=VALUE...] PACKAGE...
//
// Flags and packages are those of go test. One line a package is printed, and what
// failed tests said.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// mostAgain is how many failed tests may be run once more: more at a time are no chance.
const mostAgain = 3

func main() {
	if err := testAll(os.Args[1:], os.Stdout, goTest); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// testAll runs go test with the arguments, and what failed once more.
func testAll(args []string, out io.Writer, run func(args []string, out io.Writer) (*outcome, error)) error {
	first, err := run(args, out)
	if err == nil {
		return nil
	}
	again, why := first.again()
	if why != "" {
		return fmt.Errorf("%w; nothing is run again: %s", err, why)
	}
	for _, t := range again {
		fmt.Fprintf(out, "again, alone: %s\n", t)
	}
	for _, t := range again {
		second, err := run(append([]string{"-count=1", "-run", t.pattern()}, withPackage(args, t.pkg)...), out)
		if err != nil {
			return fmt.Errorf("failed twice: %s: %w", t, err)
		}
		if state := second.state(t); state != "pass" {
			return fmt.Errorf("failed once, and was not run again (%q): %s", state, t)
		}
	}
	for _, t := range again {
		fmt.Fprintf(out, "passed at the second try: %s (it depends on chance: find out on what)\n", t)
	}
	return nil
}

// withPackage returns go test's arguments for one package in place of all.
func withPackage(args []string, pkg string) []string {
	flags := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !strings.HasPrefix(a, "-") })
	return append(flags, pkg)
}

// goTest runs go test, prints as it goes, and returns what it said.
func goTest(args []string, out io.Writer) (*outcome, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	o, readErr := read(said, out)
	err = cmd.Wait()
	switch {
	case readErr != nil:
		return nil, readErr
	case err != nil:
		return o, fmt.Errorf("go test: %w", err)
	}
	return o, nil
}
