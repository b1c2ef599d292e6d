package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const ini = `; a shop
bastion.example

[web] # two of them
web[01:02].example ansible_user=deploy ansible_ssh_port=2222 ansible_password="open # sesame"
old ansible_host=10.0.0.7   # behind the bastion

[db]
db-[a:c:2]:2200 ansible_become_pass='it''s secret'
"quoted" ansible_host=10.0.0.8

[shop:children]
web
db

[shop:vars]
ansible_user = shopper
http_port=80
[db:vars]
ansible_user="dba" # the nearer one counts
[all:vars]
ansible_port=22
`

const inYAML = `---
all:
  vars: {ansible_port: 22, secret: !vault "x"}
  hosts: {bastion.example: }
  children:
    shop:
      vars: {ansible_user: shopper}
      children:
        web:
          hosts:
            web[01:02].example: {ansible_user: deploy, ansible_port: 2222, ansible_password: "open sesame"}
            old: {ansible_host: 10.0.0.7, tags: [a, b]}
        db:
          vars: {ansible_user: dba}
          hosts:
            db-[a:c:2]:2200:
            quoted: &q {ansible_host: 10.0.0.8}
`

// The same inventory in both forms.
func TestHosts(t *testing.T) {
	bastion := Host{Name: "bastion.example", Address: "bastion.example", Port: "22"}
	web := []Host{{Name: "web01.example", Address: "web01.example", User: "deploy", Port: "2222"}, {Name: "web02.example", Address: "web02.example", User: "deploy", Port: "2222"},
		{Name: "old", Address: "10.0.0.7", User: "shopper", Port: "22"}}
	db := []Host{{Name: "db-a", Address: "db-a", User: "dba", Port: "2200"}, {Name: "db-c", Address: "db-c", User: "dba", Port: "2200"}, {Name: "quoted", Address: "10.0.0.8", User: "dba", Port: "22"}}
	for form, text := range map[string]string{"INI": ini, "YAML": inYAML} {
		for group, want := range map[string][]Host{"web": web, "db": db, "shop": append(append([]Host{}, web...), db...), "old": web[2:], "all": append([]Host{bastion}, append(append([]Host{}, web...), db...)...)} {
			got, err := Hosts([]byte(text), group)
			for i := range got {
				if got[i].Line == 0 {
					t.Errorf("%s, %s: %s stands nowhere", form, group, got[i].Name)
				}
				got[i].Line = 0
			}
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%s, %s: %v %s", form, group, err, d)
			}
		}
	}
	if got, err := Hosts([]byte(ini[:strings.Index(ini, "[db]")]), "ungrouped"); len(got) != 1 || got[0].Name != "bastion.example" || err != nil {
		t.Errorf("ungrouped: %+v, %v", got, err)
	}
}

// What is wrong is told with its line.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"[web]\na\n[web:child]\n":     `line 3: "[web:child]": want [GROUP]`,
		"[web\n":                      `line 1: "[web": want [GROUP]`,
		"[web] x\n":                   "line 1: ",
		"[web]\na ansible_host = b\n": "line 2: want NAME=VALUE behind a host: word 2 has no =",
		"[web]\n\na x='1\n":           "line 3: a quote is not closed",
		"[web]\nw[3:1]\n":             "line 2: \"w[3:1]\": [3:1] is no range",
		"[web]\nw[01:100]\n":          "both ends as wide",
		"[web]\nw[1:4:0]\n":           "a step of",
		"[web]\nw[1\n":                "a bracket is not closed",
		"[web]\nw[1:99999]\n":         "of more than 10000 hosts",
		"[web]\nw[1:9999][1:9999]\n":  "more than 10000 hosts",
		"[web]\n2001:db8::[1]\n":      "give the host a name",
		"[web:vars]\nansible_user\n":  "line 2: want NAME=VALUE below [web:vars]",
		"[web:children]\nb c\n":       "line 2: want one group a line",
		"x\n[web:children]\nb\n[b:children]\nweb\n[b]\nx\n":  "is in itself",
		"[web:children]\nall\n":                              "line 2: the group all",
		"[db]\na\n":                                          "no group web; there are all, db, ungrouped",
		"[web]\n":                                            "no host is in the group web",
		"[web]\na ansible_host='{{ip}}'\n":                   "line 2: ansible_host of a is a template",
		"web:\n  hosts: [a, b]\n":                            "line 2: the hosts of web: want names",
		"web:\n  hosts:\n    a: 3\n":                         "line 3: the host a: want names",
		"web:\n  host: {a: }\n":                              `line 2: "host" in the group web: want hosts, vars or children`,
		"plugin: aws_ec2\nregions: [x]\n":                    "which is not run",
		"web:\n  hosts: {a: {ansible_user: !vault \"x\"}}\n": "line 2: ansible_user is encrypted",
		"web: &w\n  children:\n    web: *w\n":                "more than 100 groups in one another",
		"web:\n\t- x\n":                                      "want YAML",
		"web:\n  hosts: {? [a]\n  : 1}\n":                    "want a name",
		"---\n- hosts: web\n":                                "line 2: the inventory: want names",
	} {
		if got, err := Hosts([]byte(text), "web"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %s", text, got, err, want)
		}
	}
}

// However it is written, it is bounded.
func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString("[g300]\nx\n")
	for i := range 300 {
		fmt.Fprintf(&b, "[g%d:children]\ng%d\n", i, i+1)
	}
	if _, err := Hosts([]byte(b.String()), "g0"); err == nil || !strings.Contains(err.Error(), "more than 100") {
		t.Error(err)
	}
	if _, err := Hosts([]byte("[web]\nw[1:6000]\nv[1:6000]\n"), "web"); err == nil || !strings.Contains(err.Error(), "line 3: more than 10000 hosts") {
		t.Error(err)
	}
	bomb := "a: &a {vars: {x: 1}}\n"
	for i := range 8 {
		now, next := string(rune('a'+i)), string(rune('b'+i))
		bomb += fmt.Sprintf("%s: &%s {children: {1: *%s, 2: *%s, 3: *%s, 4: *%s, 5: *%s, 6: *%s}}\n", next, next, now, now, now, now, now, now)
	}
	if _, err := Hosts([]byte(bomb), "web"); err == nil || !strings.Contains(err.Error(), "more than 100000") {
		t.Error(err)
	}
	if _, err := Hosts([]byte("[web]\n"+strings.Repeat("w", maxPattern)+"[0:9]\n"), "web"); err == nil || !strings.Contains(err.Error(), "letters") {
		t.Error(err)
	}
}

// What is wrong in an inventory may be a password; it is not repeated.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, text := range []string{
		"[web]\nw1\n[web:vars]\nansible_become_password: hunter2\n",
		"[web]\nw1 ansible_password=correct hunter2\n",
		"web:\n  vars:\n    ansible_password: *hunter2\n",
		"web:\n  vars:\n    ansible_password: 'hunter2\n",
	} {
		if _, err := Hosts([]byte(text), "web"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Ansible takes a variable's line as it stands, whatever quotes are in it.
func TestQuotesBelowVars(t *testing.T) {
	if list, err := Hosts([]byte("[web]\nw1\n[web:vars]\nmotd=it's\n"), "web"); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
}

func TestConfigured(t *testing.T) {
	for text, want := range map[string]string{"": "", "[defaults]\n inventory = hosts ; ours\n": "hosts", "inventory=x\n": "", "[defaults]\n#inventory=x\n[inventory]\ninventory=y\n": ""} {
		if got := Configured([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Nothing that is kept is a password.
func TestPasswordsAreNotKept(t *testing.T) {
	for _, text := range []string{ini, inYAML} {
		b, err := read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range []map[string]*group{b.groups, b.hosts} {
			for name, g := range of {
				for key, v := range g.vars {
					if strings.Contains(v.text, "se") || keeps(key) == "" {
						t.Errorf("%s: %s=%s", name, key, v.text)
					}
				}
			}
		}
	}
}

func FuzzHosts(f *testing.F) {
	f.Add([]byte(ini), "web")
	f.Add([]byte(inYAML), "shop")
	f.Add([]byte("[a:c].example:22\nx[0:9:3] ansible_host=::1\n"), "all")
	f.Add([]byte("a: &a\n  children: {b: *a}\n"), "a")
	f.Fuzz(func(t *testing.T, text []byte, group string) {
		list, err := Hosts(text, group)
		if err == nil && len(list) == 0 || len(list) > maxHosts {
			t.Errorf("%d hosts", len(list))
		}
		for _, h := range list {
			if h.Name == "" || h.Address == "" || h.Line == 0 {
				t.Errorf("%+v", h)
			}
		}
		Configured(text)
	})
}
