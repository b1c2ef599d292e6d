package cpu

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
)

func TestCPUText(t *testing.T) {
	read := symbol.Frame{Function: "vfs_read", Module: symbol.KernelModule, Kernel: true}
	busy := symbol.Frame{Function: "php:busy /srv/x.php:12", File: "/srv/x.php", Line: 12, Module: phpFrames}
	s := Seen{Elapsed: 10 * time.Second, CPUs: 2, Hertz: Hertz, Unnamed: "the kernel hides the addresses of its functions"}
	s.Groups = []Group{
		{Name: "php-fpm", User: 990, Kernel: 10, Processes: 5, Functions: []Function{{"php:sqrt in busy /srv/x.php:12", 700}, {"php:busy /srv/x.php:12", 290}, {"vfs_read", 10}}},
		{Name: "dd\x1b", Kernel: 50, Processes: 1, Functions: []Function{{"vfs_read", 50}}},
	}
	all := []stacks.Sample{
		{Frames: []symbol.Frame{{Function: "zif_sqrt"}, {Function: "php:sqrt"}, busy}, Labels: map[string]string{"groupname": "php-fpm"}, Values: []int64{700}},
		{Frames: []symbol.Frame{{Function: "execute_ex"}, busy}, Labels: map[string]string{"groupname": "php-fpm"}, Values: []int64{300}},
		{Frames: []symbol.Frame{read}, Labels: map[string]string{"groupname": "dd"}, Values: []int64{50}},
	}
	s.all = func() []stacks.Sample { return all }
	s.Lost = map[string]uint64{"stacks": 3}
	want := `10 s on 2 CPUs: 1,050 samples: the CPUs were busy for 53 % of the time, 50 % in
user mode and 3.03 % in the kernel.

process   of all CPUs  user  kernel  processes
php-fpm   50.5 %       50 %  0.51 %  5
dd\u001b  2.53 %       0 %   2.53 %  1

Functions of php-fpm
  70.0 %  php:sqrt in busy /srv/x.php:12
  29.0 %  php:busy /srv/x.php:12
   1.0 %  vfs_read

Functions of dd\u001b
 100.0 %  vfs_read

How it came there, as shares of all samples
  95.2 %  php-fpm
  95.2 %    php:busy /srv/x.php:12
  66.7 %      php:sqrt > zif_sqrt
  28.6 %      execute_ex
   4.8 %  dd
   4.8 %    vfs_read [k]

note: the kernel hides the addresses of its functions

note: 3 events were lost (stacks)
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Names of any length still fit a terminal.
func TestCPUTextFits(t *testing.T) {
	name := strings.Repeat("Long::Namespace ", 14)
	s := Seen{Elapsed: 3600 * time.Second, CPUs: 64, Hertz: Hertz}
	s.Groups = []Group{{Name: "exactly15letter", User: 12_345_678, Kernel: 1, Processes: 4096, Functions: []Function{{name, 1}}}}
	s.all = func() []stacks.Sample {
		return []stacks.Sample{{Frames: []symbol.Frame{{Function: name}}, Labels: map[string]string{"groupname": "exactly15letter"}, Values: []int64{1}}}
	}
	for _, line := range strings.Split(s.Text(80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// Nothing seen is a sentence, not a fault.
func TestTextOfNothing(t *testing.T) {
	if text := (Seen{Elapsed: time.Second, CPUs: 4, Hertz: Hertz}).Text(80); !strings.HasPrefix(text, "1 s on 4 CPUs: 0 samples") {
		t.Errorf("%q", text)
	}
}
