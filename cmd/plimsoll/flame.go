package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll/internal/flame"
	"plimsoll/internal/input"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

const flameLong = `Shows sampled stacks: where the processors' time went ("cpu"), or what was waited
for ("offcpu"). WHAT is a run directory, or a file in pprof's format: one that
"plimsoll trace cpu -o" wrote, or any other tool.

Without -o it prints the tree of functions that took at least 1 % of all. With -o
it writes a flame graph, one file that needs nothing else: the wider a frame, the
more was sampled in it and in what it called; a click widens a frame, "search"
marks functions and adds them up. The name decides the form: .svg, .html, or
.txt for the tree.

--compare shows what became more and less since another run or file; where both
say how long they sampled, the earlier is stretched to the same time. The files
themselves open in go tool pprof and in speedscope.`

const flameExample = `  plimsoll flame last
  plimsoll flame RUN --name offcpu -o offcpu.html
  plimsoll flame AFTER --compare BEFORE -o difference.svg
  plimsoll trace cpu -d 10s -o cpu.pb.gz && plimsoll flame cpu.pb.gz`

func flameCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "flame WHAT", Short: "show sampled stacks: as a tree, a flame graph, a difference", Long: flameLong,
		Example: flameExample, Args: oneArgument("a run directory, or a file in pprof's format")}
	var name, before, file string
	c.Flags().StringVar(&name, "name", "", "which stacks of a run directory: `NAME` is deepcpu (whole ones, with the functions of scripts), cpu or offcpu; without it deepcpu where the run has it, else cpu")
	c.Flags().StringVar(&before, "compare", "", "show what changed since this run directory or `FILE`")
	c.Flags().StringVarP(&file, "output", "o", "", "write a flame graph to this `FILE` (.svg or .html), or the tree (.txt)")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		switch filepath.Ext(file) {
		case "", ".svg", ".html", ".txt":
		default:
			return usage(c.CommandPath(), "-o %s: want a name that ends in .svg, .html or .txt", file)
		}
		what, err := w.runNamed(args[0])
		if err != nil {
			return err
		}
		name = cmp.Or(name, wholeOrNot(what))
		tree, err := stacksOf(what, name)
		if err != nil {
			return err
		}
		title := name + " of " + args[0]
		if before != "" {
			earlier, err := w.stacksOf(before, name)
			if err != nil {
				return err
			}
			if err := tree.Compare(earlier); err != nil {
				return fail(exitRunDir, err)
			}
			title += ", compared with " + before
		}
		if *asJSON {
			return printJSON(w.stdout, tree)
		}
		if file == "" {
			_, err = fmt.Fprint(w.stdout, tree.Text(w.columns()))
			return err
		}
		return writeGraph(tree, file, title)
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// wholeOrNot names the stacks of a run that tell most of what its CPUs did.
func wholeOrNot(run string) string {
	const whole = "deepcpu"
	if _, err := os.Stat(filepath.Join(run, whole+record.ProfileEnd)); err == nil {
		return whole
	}
	return "cpu"
}

func writeGraph(tree *flame.Tree, file, title string) (err error) {
	var b bytes.Buffer
	switch filepath.Ext(file) {
	case ".svg":
		err = tree.SVG(&b, title)
	case ".html":
		err = tree.HTML(&b, title)
	default:
		b.WriteString(tree.Text(80))
	}
	if err != nil {
		return err
	}
	return fail(exitRunDir, writer.File(file, b.Bytes()))
}

// maxProfile is the most of a profile that is read; one of a minute has some hundred kB.
const maxProfile = 64 << 20

// stacksOf reads what is named on the command line.
func (w *world) stacksOf(what, name string) (*flame.Tree, error) {
	what, err := w.runNamed(what)
	if err != nil {
		return nil, err
	}
	return stacksOf(what, name)
}

// stacksOf reads a pprof file, or the one of that name in a run directory.
func stacksOf(what, name string) (*flame.Tree, error) {
	readsAnybodys()
	info, err := os.Stat(what)
	if err != nil {
		return nil, fail(exitRunDir, fmt.Errorf("read stacks: %w", err))
	}
	path := what
	var data []byte
	if info.IsDir() {
		path = filepath.Join(what, name+record.ProfileEnd)
		data, err = record.Stacks(what, name)
	} else {
		data, err = input.Read(what, maxProfile)
	}
	if err != nil {
		return nil, fail(exitRunDir, err)
	}
	tree, err := flame.Read(data)
	if err != nil {
		return nil, fail(exitRunDir, fmt.Errorf("%s: %w", path, err))
	}
	return tree, nil
}
