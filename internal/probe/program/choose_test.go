package program

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"plimsoll/internal/host"
)

func TestNamed(t *testing.T) {
	for _, tc := range []struct {
		comm string
		args []string
		name string
		want bool
	}{
		{"nginx", []string{"nginx: worker process"}, "nginx", true},
		{"python3", []string{"/usr/bin/python3", "/srv/push.py", "-v"}, "push.py", true},
		{"python3", []string{"/usr/bin/python3", "/srv/push.py"}, "python3", true},
		{"python3", []string{"/usr/bin/python3", "-c", "push.py"}, "push.py", false},
		{"python3", []string{"python3", "-u", "/srv/push.py"}, "push.py", true},
		{"bash", []string{"bash", "-x", "job.sh", "other.sh"}, "other.sh", false},
		{"sh", []string{"sh", "-c", "exec backup"}, "backup", false},
		{"a-program-with-a", []string{"/opt/a-program-with-a-long-name"}, "a-program-with-a-long-name", true},
		{"kworker/0:1", nil, "kworker", false},
		{"php-fpm8.2", []string{"php-fpm: pool www"}, "php-fpm", true},
	} {
		if got := named(tc.comm, tc.args, tc.name); got != tc.want {
			t.Errorf("%s %q by %s: %v", tc.comm, tc.args, tc.name, got)
		}
	}
}

// A name that nobody has is refused, with those that are like it.
func TestFind(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	ours := strings.TrimSpace(string(comm))
	err = Find(h, ours+"x")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is") || !strings.Contains(err.Error(), ours) {
		t.Errorf("%v; want it to name %s", err, ours)
	}
	if err := Find(h, "pod:x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pod:x: %v", err)
	}
	if err := Find(h, "unit:there-is-no-such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unit:there-is-no-such: %v", err)
	}
}
