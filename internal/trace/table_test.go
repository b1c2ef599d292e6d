package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpacesAndShortening(t *testing.T) {
	one, two := Spaces{7}, Spaces{7, 4026532452}
	got := []string{one.Mark(7), one.Legend(80), two.Mark(4026532452), two.Legend(80), shorten("10.0.0.2:9000", 13), shorten("[2001:db8::1]:65535", 13)}
	want := []string{"", "", "B", "\nnetwork namespaces: A 7, B 4026532452\n", "10.0.0.2:9000", "[2001:…:65535"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestRowsAreCutAndShortened(t *testing.T) {
	rows := [][]string{{"process", "towards"}, {"nginx", "[2001:db8:0:1:1:1:1:1]:65535"}, {"a", "10.0.0.2:9000"}, {"b", "not shown, and as wide as it likes to be"}}
	var b strings.Builder
	Rows(&b, rows, 2, 1, 24)
	want := "process  towards\nnginx    [2001:d…]:65535\na        10.0.0.2:9000\nand 1 more; --json has them all\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
