package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/session"
)

func TestParseHosts(t *testing.T) {
	got, err := parseHosts([]string{"a=local", "srv=netns:x", "app=pid:12"})
	if err != nil {
		t.Fatal(err)
	}
	want := []session.HostSpec{{Name: "a", Spec: "local"}, {Name: "srv", Spec: "netns:x"}, {Name: "app", Spec: "pid:12"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "a", "a=process/local", "a=other/local", "=local", "a=", "a b=local", "a=netns:", "a=pid:", "a=netns:x y", "a=ssh:web1"} {
		if _, err := parseHosts([]string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseHostsAnywhere(t *testing.T) {
	got, err := parseWatched([]string{"a=process/local", "app=process/pid:12", "web=ssh:deploy@web1", "db=ssh:db1:2222/netns:x"})
	if err != nil {
		t.Fatal(err)
	}
	want := []session.HostSpec{{Name: "a", Spec: "local", Via: "process"}, {Name: "app", Spec: "pid:12", Via: "process"},
		{Name: "web", Spec: "local", Via: "ssh:deploy@web1"}, {Name: "db", Spec: "netns:x", Via: "ssh:db1:2222"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range [][]string{{"a=process/local", "srv=netns:x"}, {"w=ssh:x", "a=process/local", "srv=netns:x"},
		{"w=ssh:-oProxyCommand=x"}, {"w=ssh:"}, {"w=ssh:a b"}, {"w=ssh://web1"}, {"w=ssh:x/"}, {"w=ssh:x/ssh:y"}, {"w=ssh:x/process/local"}, {"w=ssh:x", "w=ssh:y"}} {
		if list, err := parseWatched(bad); err == nil {
			t.Errorf("%q was taken: %+v", bad, list)
		}
	}
}

func TestOneMachineAtATime(t *testing.T) {
	via, there, err := oneFar([]string{"a=ssh:w/netns:x", "b=ssh:w"})
	if d := cmp.Diff([]string{"a=netns:x", "b=local"}, there); d != "" || via != "ssh:w" || err != nil {
		t.Error(via, d, err)
	}
	if via, there, err = oneFar(nil); via != "" || there != nil || err != nil {
		t.Error(via, there, err)
	}
	for _, bad := range [][]string{{"a=ssh:w", "b=local"}, {"a=process/local"}, {"a=ssh:w", "b=ssh:x"}} {
		if _, _, err := oneFar(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestReadHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	for text, want := range map[string][]string{
		"hosts:\n  web: ssh:deploy@web1/unit:nginx\n  db: ssh:db1\n": {"web=ssh:deploy@web1/unit:nginx", "db=ssh:db1"},
		"hosts: {}": nil, "": nil, "- a": nil, "hosts:\n  web: [a]": nil, "hosts:\n\tweb: a": nil,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readHosts(file)
		if d := cmp.Diff(want, got); d != "" || (err != nil) != (want == nil) {
			t.Errorf("%q: %v %s", text, err, d)
		}
	}
}

// --hosts takes a group of an inventory, from where Ansible would.
func TestHostsOfAGroup(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ini":            "[web]\nw[1:2] ansible_user=deploy\nv6 ansible_host=2001:db8::1 ansible_port=22\nhere ansible_connection=local\n[odd]\na/b\nbad ansible_user=-x\nwin ansible_connection=winrm\n",
		"ansible.cfg":    "[defaults]\ninventory = ini\n",
		"other":          "web:\n  hosts: {x: }\n",
		"file@of.hosts":  "hosts:\n  web: local\n",
		"script":         "#!/bin/sh\ntouch ran\n",
		"a@b/ini@nested": "[web]\ny\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod("script", 0o700); err != nil {
		t.Fatal(err)
	}
	web := []string{"w1=ssh:deploy@w1", "w2=ssh:deploy@w2", "v6=ssh:[2001:db8::1]:22", "here=local"}
	w, _, _ := testWorld()
	set := ""
	w.env = func(name string) string { return map[string]string{"ANSIBLE_INVENTORY": set}[name] }
	for _, one := range []struct {
		set, named string
		want       []string
		wrong      string
	}{
		{"", "@web", web, ""},
		{"", "ini@web", web, ""},
		{"", "ini@w1", web[:1], ""},
		{"other", "@web", []string{"x=ssh:x"}, ""},
		{"", "a@b/ini@nested@web", []string{"y=ssh:y"}, ""},
		{"", "file@of.hosts", []string{"web=local"}, ""},
		{"", "@db", nil, "--hosts @db: ini: no group db; there are all, odd, ungrouped, web"},
		{"", "ini@odd", nil, `ini: line 6: "a/b" can be no host's name here`},
		{"", "ini@bad", nil, "line 7: bad: ssh:-x@bad"},
		{"", "ini@win", nil, `line 8: win is reached by "winrm"`},
		{"a,b", "@web", nil, "name one file of it"},
		{"none", "@web", nil, "is looked for in $ANSIBLE_INVENTORY"},
		{"", "a@b@web", nil, "is a directory"},
		{"", "script@web", nil, "ansible-inventory --list --yaml"},
	} {
		set = one.set
		got, err := w.hostsNamed(one.named)
		if d := cmp.Diff(one.want, got); d != "" || (err == nil) != (one.wrong == "") || err != nil && !strings.Contains(err.Error(), one.wrong) {
			t.Errorf("%s: %v, want %q %s", one.named, err, one.wrong, d)
		}
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("the script was run")
	}
	if _, err := parseWatched(web[:3]); err != nil {
		t.Error(err)
	}
	set = ""
	if err := os.Chmod(".", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := w.hostsNamed("@web"); err == nil || !strings.Contains(err.Error(), "everybody may write") {
		t.Error(err)
	}
}
