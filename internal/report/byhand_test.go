package report

import (
	"maps"
	"strings"
	"testing"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// atThreeHosts is of a run with a host in a namespace and one in a container.
func atThreeHosts() ByHand {
	return ByHand{
		Plan:   model.Plan{Generator: "client", Packets: "any", Load: &model.LoadPlan{URL: "http://10.0.0.2:8080/x"}},
		Hosts:  []model.Host{{Name: "server", Spec: "netns:srv"}, {Name: "app", Spec: "pid:42"}, {Name: "client", Spec: "local"}},
		Owners: map[string]string{"server": "nginx"},
	}
}

func TestByHand(t *testing.T) {
	r := atThreeHosts()
	for _, c := range []struct {
		command string
		labels  map[string]string
		want    string
	}{
		{"ss -ltn", map[string]string{"host": "server"}, "ip netns exec srv ss -ltn"},
		{"ss -ltn; sysctl net.core.somaxconn; sysctl fs.file-nr", map[string]string{"host": "app"},
			"nsenter -t 42 -n ss -ltn; nsenter -t 42 -n sysctl net.core.somaxconn; sysctl fs.file-nr"},
		{"ss -ltn", map[string]string{"host": "client"}, "ss -ltn"},
		{"sar -n DEV 1  # rxkB/s", map[string]string{"host": "server"}, "ip netns exec srv sar -n DEV 1  # rxkB/s"},
		{"sar -u 1", map[string]string{"host": "server"}, "sar -u 1"},
		{"curl -m 2 URL", map[string]string{"host": "server"}, "curl -m 2 http://10.0.0.2:8080/x"},
		{"ss sport = :PORT", map[string]string{"host": "server", "listen": "[::]:9000"}, "ip netns exec srv ss sport = :9000"},
		{"ss sport = :PORT", map[string]string{"host": "client", "listen": "/run/php.sock"}, "ss sport = :8080"},
		{"cat /proc/PID/wchan", map[string]string{"host": "app", "groupname": "php-fpm"}, "cat /proc/$(pgrep -o php-fpm)/wchan"},
		{"strace -f -e trace=read -p PID", map[string]string{"host": "app", "groupname": "php-fpm"}, "strace -f -e trace=read -p $(pgrep -d, php-fpm)"},
		{"cat /proc/PID/wchan", map[string]string{"host": "server"}, "cat /proc/$(pgrep -o nginx)/wchan"},
		{"prlimit -p PID", map[string]string{"host": "app", "groupname": "x", "pid": "7"}, "prlimit -p 7"},
		{"ethtool -S DEVICE", map[string]string{"host": "client", "device": "eth0"}, "ethtool -S eth0"},
		{"cat /proc/PID/wchan", map[string]string{"host": "app"}, "cat /proc/PID/wchan"},
		{"plimsoll capture FILE", map[string]string{"host": "my app"}, "plimsoll capture packets-my%20app.pcapng"},
	} {
		if got := r.Command([]layout.Piece{{Text: c.command}}, c.labels, nil); got != c.want {
			t.Errorf("%s with %v: %q, want %q", c.command, c.labels, got, c.want)
		}
	}
}

// TestWayIntoContainers: a container's network is entered by the number of its namespace, where it is known to be another than the machine's.
func TestWayIntoContainers(t *testing.T) {
	r := ByHand{Hosts: []model.Host{
		{Name: "web", Spec: "container:web", Machine: "a", NetNS: 11}, {Name: "shared", Spec: "container:y", Machine: "a", NetNS: 1},
		{Name: "unit", Spec: "unit:x", Machine: "a", NetNS: 1}, {Name: "private", Spec: "unit:z", Machine: "a", NetNS: 12},
		{Name: "local", Spec: "local", Machine: "a", NetNS: 1}, {Name: "far", Spec: "ssh:m/container:web", Machine: "b", NetNS: 22},
		{Name: "alone", Spec: "ssh:n/container:web", Machine: "c", NetNS: 23}, {Name: "m", Spec: "ssh:m", Machine: "b", NetNS: 1},
	}}
	for host, want := range map[string]string{
		"web": "nsenter -t $(lsns -rno PID 11 | head -n1) -n ss -ltn", "private": "nsenter -t $(lsns -rno PID 12 | head -n1) -n ss -ltn",
		"far": "nsenter -t $(lsns -rno PID 22 | head -n1) -n ss -ltn", "shared": "ss -ltn", "unit": "ss -ltn", "local": "ss -ltn", "alone": "ss -ltn",
	} {
		if got := r.Command([]layout.Piece{{Text: "ss -ltn"}}, map[string]string{"host": host}, nil); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	for host, want := range map[string]string{"web": "/proc/$(lsns -rno PID 11 | head -n1)/root", "shared": "", "private": "", "alone": ""} {
		if got := rootOf(host, r.Hosts); got != want {
			t.Errorf("%s: its root is %q, want %q", host, got, want)
		}
	}
}

// What is done to each process of a name is done to those of the host alone.
func TestEachProcessOfAHost(t *testing.T) {
	r := ByHand{Hosts: []model.Host{
		{Name: "web", Spec: "container:web", Machine: "a", NetNS: 11}, {Name: "db", Spec: "ssh:m/pid:7", Machine: "b", NetNS: 22},
		{Name: "m", Spec: "ssh:m", Machine: "b", NetNS: 1}, {Name: "local", Spec: "local", Machine: "a", NetNS: 1}, {Name: "unit", Spec: "unit:x", Machine: "a", NetNS: 1},
	}}
	for host, want := range map[string]string{
		"web":   "readlink /proc/$p/ns/net | grep -q 11 || continue; ",
		"db":    "readlink /proc/$p/ns/net | grep -q 22 || continue; ",
		"m":     "readlink /proc/$p/ns/net | grep -qE '22' && continue; ",
		"local": "readlink /proc/$p/ns/net | grep -qE '11' && continue; ",
		"other": "",
	} {
		for _, kind := range []string{model.ChangePolicy, model.ChangeLimit} {
			pieces := ruleset.CommandFor(kind, "nofile", "5", map[string]string{"groupname": "nofile"})
			plain := layout.CommandLine(pieces)
			begin, rest, _ := strings.Cut(plain, "do ")
			if got := r.Command(pieces, map[string]string{"host": host}, nil); got != begin+"do "+want+rest {
				t.Errorf("%s: %s", host, got)
			}
		}
	}
	const rps = "sh -c 'while true; do echo; done'"
	if got := r.Command([]layout.Piece{{Text: rps}}, map[string]string{"host": "web"}, nil); got != rps {
		t.Errorf("no loop over processes: %s", got)
	}
	if got := (ByHand{Hosts: r.Hosts[3:4]}).Command(ruleset.CommandFor(model.ChangeNice, "x", "5", nil), map[string]string{"host": "local"}, nil); strings.Contains(got, "readlink") {
		t.Errorf("a machine alone: %s", got)
	}
}

// No command of a rule keeps a word that a person would have to replace, once a
// load ran and it is known who answered.
func TestNoCommandIsLeftBlank(t *testing.T) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	r := atThreeHosts()
	for _, rule := range set.List {
		subject := map[string]string{}
		for _, name := range rule.Subject {
			subject[name] = "x"
		}
		labels := maps.Clone(subject)
		subject["host"] = "server"
		for i := range rule.Clues {
			c := &rule.Clues[i]
			for _, sel := range c.MeasureExpr.Selectors() {
				for _, name := range sel.Labels {
					labels[name] = "x"
				}
			}
			hand := r.Command(c.ByHandText.Pieces(ruleset.Facts{Subject: subject, Labels: labels, Value: ruleset.Number(1)}), subject, nil)
			if left := blankWord().FindAllString(hand, -1); len(left) > 0 {
				t.Errorf("%s: clue %s: by_hand: %v stays blank in %q", rule.ID, c.ID, left, hand)
			}
		}
	}
}
