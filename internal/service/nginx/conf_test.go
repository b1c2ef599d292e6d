package nginx

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dump writes directives as one line each: "line name|arg|arg".
func dump(list []*Directive, indent string) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(indent + strconv.Itoa(d.Line) + " " + strings.Join(append([]string{d.Name}, d.Args...), "|"))
		if d.IsBlock {
			b.WriteString(" {}")
		}
		b.WriteString("\n" + dump(d.Block, indent+"  "))
	}
	return b.String()
}

func TestParseConf(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"simple":          {"worker_processes 2;\nevents {\n worker_connections 10; }\n", "1 worker_processes|2\n2 events {}\n  3 worker_connections|10\n"},
		"no blanks":       {"a b;c{d e;}f;", "1 a|b\n1 c {}\n  1 d|e\n1 f\n"},
		"comments":        {"# x { ;\na b#c; # d\n#\ne;#", "2 a|b#c\n4 e\n"},
		"quotes":          {`a "b ; {" 'c "d"' "e\"f" 'g\'h';`, "1 a|b ; {|c \"d\"|e\"f|g'h\n"},
		"joined log":      {"log_format main '$remote_addr '\n  '\"$request\"' ;\nx;", "1 log_format|main|$remote_addr |\"$request\"\n3 x\n"},
		"braces in names": {"set $a ${b}c;\nmap ${x} $y { }", "1 set|$a|${b}c\n2 map|${x}|$y {}\n"},
		"regex":           {`location ~ \.php$ { return 200; }` + "\n" + `location ~ "^/\d{2}" { }`, "1 location|~|\\.php$ {}\n  1 return|200\n2 location|~|^/\\d{2} {}\n"},
		"if":              {`if ($a = "b;}") { return 200 "x{}"; }`, "1 if|($a|=|b;})  {}\n  1 return|200|x{}\n"},
		"map":             {"map $a $b {\n default 0;\n ~*^x 1;\n \"a b\" 2;\n}", "1 map|$a|$b {}\n  2 default|0\n  3 ~*^x|1\n  4 a b|2\n"},
		"types":           {"types { text/html html htm; }", "1 types {}\n  1 text/html|html|htm\n"},
		"lua":             {"content_by_lua_block {\n local s = \"}\" -- }\n local t = {'}'} --[[ } ]] x = [[ } ]]\n}\na;", "1 content_by_lua_block {}\n5 a\n"},
		"string of lines": {"a 'b\nc';\nd;", "1 a|b\nc\n3 d\n"},
		"empty":           {" \n# nothing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Parse([]byte(c.src), "x.conf")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.ReplaceAll(c.want, "})  {}", "}|) {}"), dump(list, "")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestParseConfErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]string{
		"a;\nhttp {\n":      `parse x.conf: line 3: want "}", got the end of the file`,
		"a;\n}":             `parse x.conf: line 2: want a directive, got "}"`,
		"server { listen }": `parse x.conf: line 1: want ";" or "{", got "}"`,
		"a \"b\n":           `parse x.conf: line 2: want '"' to end the string begun on line 1, got the end of the file`,
		"a b":               `parse x.conf: line 1: want ";" or "{", got the end of the file`,
		";":                 `parse x.conf: line 1: want a directive, got ";"`,
		"a_by_lua_block {":  `parse x.conf: line 1: want "}" to end the Lua block, got the end of the file`,
	} {
		_, err := Parse([]byte(src), "x.conf")
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
	if _, err := Parse([]byte(strings.Repeat("a{", 100)), "x"); err == nil {
		t.Error("100 blocks inside each other were taken")
	}
}

func TestIncludes(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/nginx/nginx.conf":        "user x;\nhttp {\n include mime.types;\n include conf.d/*.conf;\n include sites-enabled/*;\n}\n",
		"etc/nginx/mime.types":        "types { a b; }\n",
		"etc/nginx/conf.d/1.conf":     "one;\n",
		"etc/nginx/conf.d/2.conf":     "\ntwo;\n",
		"etc/nginx/conf.d/3.disabled": "three;\n",
		"etc/nginx/available/site":    "server { listen 80; }\n",
		"etc/nginx/loop.conf":         "include loop.conf;\n",
		"etc/nginx/missing.conf":      "a;\ninclude none.conf;\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "etc/nginx/sites-enabled"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/nginx/available/site", filepath.Join(root, "etc/nginx/sites-enabled/site")); err != nil {
		t.Fatal(err)
	}
	l := &loader{root: root, dir: "/etc/nginx"}
	list, err := l.load("/etc/nginx/nginx.conf", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "1 user|x\n2 http {}\n  1 types {}\n    1 a|b\n  1 one\n  2 two\n  1 server {}\n    1 listen|80\n"
	if d := cmp.Diff(want, dump(list, "")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := list[1].Block[2].File; got != "/etc/nginx/conf.d/2.conf" {
		t.Errorf("an included directive stands in %q", got)
	}
	if _, err := l.load("/etc/nginx/loop.conf", 0); err == nil {
		t.Error("a file that includes itself was taken")
	}
	_, err = l.load("/etc/nginx/missing.conf", 0)
	if err == nil || !os.IsNotExist(unwrapAll(err)) || !strings.HasPrefix(err.Error(), "/etc/nginx/missing.conf: line 2: include: ") {
		t.Errorf("a missing include: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || os.IsNotExist(err) {
			return err
		}
		err = u.Unwrap()
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add("worker_processes 2;\nevents { worker_connections 10; } # x\nlog_format a \"b\\\"\" 'c';")
	f.Add("content_by_lua_block { local s = \"}\" -- }\n }")
	f.Add("set $a ${b}c; if ($x ~ \"a{2}\") { return 200; }")
	f.Fuzz(func(t *testing.T, src string) {
		list, err := Parse([]byte(src), "x")
		if err != nil && list != nil {
			t.Error("both a value and an error")
		}
		lines := strings.Count(src, "\n") + 1
		for _, d := range list {
			if d.Name == "" && len(d.Args) == 0 && !strings.ContainsAny(src, `"'\`) || d.Line < 1 || d.Line > lines {
				t.Errorf("directive %+v of %q", d, src)
			}
		}
		newSettings(list, "/p", "", 0)
	})
}
