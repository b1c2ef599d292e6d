package ssh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// typed is a password that a person types.
const typed = "correct horse * $HOME 'staple'"

// hashed is what openssl passwd -6 makes of it.
func hashed(t *testing.T) string {
	t.Helper()
	out, err := outputOf("openssl", "passwd", "-6", typed)
	check(t, err)
	return strings.TrimSpace(out)
}

// sudoer is a machine on which joe logs in, who is not root, with the real sudo.
func sudoer(t *testing.T) (m *machine, rules func(string)) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/sudo"); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("there is no sudo; scripts/install-deps tests brings it")
		}
		t.Fatal(err)
	}
	m = newMachine(t)
	m.users = "joe:x:61234:61234::/srv/joe:/bin/sh\n"
	m.mount = "mkdir -p /srv/joe\nchown 61234 /srv/joe\nmount --bind " + m.dir + "/sudoers /etc/sudoers\n"
	m.sshd = "SetEnv XDG_RUNTIME_DIR=/srv/joe\n"
	m.start(t)
	shadow, err := os.ReadFile(m.dir + "/shadow")
	check(t, err)
	check(t, os.WriteFile(m.dir+"/shadow", []byte(strings.Replace(string(shadow), "joe:*:", "joe:"+hashed(t)+":", 1)), 0o600))
	return m, func(text string) {
		t.Helper()
		_ = os.Remove(m.dir + "/sudoers")
		text = "Defaults !fqdn, lecture=never, timestampdir=/srv/ts, iolog_dir=/srv/io\n" + text + "\n"
		check(t, os.WriteFile(m.dir+"/sudoers", []byte(text), 0o440))
	}
}

// nowhere checks that no process has a text in its arguments or its environment.
func nowhere(t *testing.T, text string) {
	t.Helper()
	for _, name := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + name)
		check(t, err)
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), text) {
				t.Errorf("the password stands in %s", file)
			}
		}
	}
}

// What sudo may be told to do with what it runs; each is root, and hears and says any bytes.
var kindsOfSudo = map[string]string{
	"plain": "",
	"a terminal of its own, and it is logged": "Defaults use_pty, log_input, log_output\n",
	"nothing is kept":                         "Defaults timestamp_timeout=0, umask=0777, umask_override\n",
}

func TestSudoWithoutPassword(t *testing.T) {
	_, rules := sudoer(t)
	kinds := map[string]string{"nothing else is run": "NOEXEC: "}
	for name := range kindsOfSudo {
		kinds[name] = ""
	}
	for name, tag := range kinds {
		t.Run(name, func(t *testing.T) {
			rules(kindsOfSudo[name] + "joe ALL=(ALL) NOPASSWD: " + tag + "ALL")
			if dir, uid, note := greeted(t, "joe"); uid != "0" || note != "" || !strings.HasPrefix(dir, "/srv/joe/.plimsoll.") {
				t.Errorf("user %s in %s, note %q", uid, dir, note)
			}
		})
	}
}

func TestSudoWithPassword(t *testing.T) {
	_, rules := sudoer(t)
	for name, options := range kindsOfSudo {
		t.Run(name, func(t *testing.T) {
			rules(options + "joe ALL=(ALL) ALL")
			asked := 0
			ask := func(context.Context) string { asked++; return typed }
			if _, uid, note := greetedBy(t, "joe", ask); uid != "0" || note != "" || asked != 1 {
				t.Errorf("user %s, note %q, asked %d times", uid, note, asked)
			}
		})
	}
}

// Whom sudo does not let be root is observed as who it is, and it is said why.
func TestSudoRefuses(t *testing.T) {
	_, rules := sudoer(t)
	for _, c := range []struct {
		name, rules string
		ask         Ask
		want        string
	}{
		{"nobody can be asked", "joe ALL=(ALL) ALL", nil, "a password is required"},
		{"none is given", "joe ALL=(ALL) ALL", func(context.Context) string { return "" }, "a password is required"},
		{"a wrong one", "joe ALL=(ALL) ALL", func(context.Context) string { return "wrong" }, "1 incorrect password attempt"},
		{"one that is of no use", "ann ALL=(ALL) ALL", func(context.Context) string { return typed }, "joe is not in the sudoers file"},
		{"a terminal is wanted", "Defaults requiretty\njoe ALL=(ALL) NOPASSWD: ALL", nil, "you must have a tty to run sudo"},
		{"other programs only", "joe ALL=(ALL) NOPASSWD: /usr/bin/id", nil, "a password is required"},
		{"a broken file", "joe ALL=(ALL", func(context.Context) string { return typed }, "syntax error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules(c.rules)
			asked := 0
			ask := c.ask
			if ask != nil {
				ask = func(ctx context.Context) string { asked++; return c.ask(ctx) }
			}
			_, uid, note := greetedBy(t, "joe", ask)
			if uid != "61234" || !strings.HasPrefix(note, "user 61234, and not root: sudo says ") || !strings.Contains(note, c.want) || asked > 1 {
				t.Errorf("user %s, note %q, asked %d times; want %q", uid, note, asked, c.want)
			}
		})
	}
}
