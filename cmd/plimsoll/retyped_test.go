package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What is typed again makes the same run: parsed once more, it is the same words. Where it goes and how it is printed is left out,
// and so is what gives access.
func TestRetypedIsWhatWasTyped(t *testing.T) {
	for typed, want := range map[string]string{
		"run http://a/ -d 60 --connections 10k --json -vv --dir x":               "run http://a/ -c 10000 -d 1m",
		"run http://a/ --host b=local --host c=netns:c --no-keepalive":           "run http://a/ --host b=local --host c=netns:c --no-keepalive",
		"run http://u:pw@a/ -H Authorization:secret -H Accept:text --body hello": "run http://(masked)@a/ --body (masked) -H Authorization: (masked) -H Accept:text",
		"run http://a/ --capture=eth0 --body @f.json --live --report x.html":     "run http://a/ --body @f.json --capture=eth0",
		"watch -d 30s --of nginx -- wrk -c 2 http://a/":                          "watch -d 30s --of nginx -- wrk -c 2 http://a/",
	} {
		got := retypedOf(t, strings.Fields(typed))
		if strings.Join(got, " ") != "plimsoll "+want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
		if !strings.Contains(want, "masked") {
			if again := retypedOf(t, got[1:]); !slices.Equal(again, got) {
				t.Errorf("typed again, %q becomes %q", got, again)
			}
		}
	}
}

func retypedOf(t *testing.T, args []string) (words []string) {
	t.Helper()
	w := &world{}
	root := &cobra.Command{Use: "plimsoll"}
	for _, c := range []*cobra.Command{runCommand(w), watchCommand(w)} {
		c.RunE = func(c *cobra.Command, args []string) error {
			words = retyped(c, args)
			return nil
		}
		root.AddCommand(c)
	}
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return words
}
