package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
)

// programFlag adds the flag that asks about one program.
func programFlag(c *cobra.Command) *string {
	return c.Flags().String("of", "", "say where the time of this `PROGRAM` goes, with all that it starts: a PID, a NAME (of the program, or of the script that it runs), unit:NAME, container:NAME, or command for CMD; on the first --host")
}

// programOf checks the word for a program.
func programOf(command, word string, commanded bool) (string, error) {
	kind, name, is := strings.Cut(word, ":")
	switch {
	case word == model.ProgramCommand && !commanded:
		return "", usage(command, "--of command: there is none; write it behind --, as in --of command -- make")
	case is && (kind != "unit" && kind != "container" || name == ""):
		return "", usage(command, "--of %s: want a PID, a NAME, unit:NAME, container:NAME or command", word)
	case strings.Contains(word, "/"):
		return "", usage(command, "--of %s: want the program's name alone, without the directory it is in", word)
	}
	if pid, err := strconv.Atoi(word); err == nil && pid <= 0 {
		return "", usage(command, "--of %s: want the number of a process, which is more than 0", word)
	}
	return word, nil
}
