package main

import (
	"os"
	"path/filepath"
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
