package layout

import "testing"

func TestInScripts(t *testing.T) {
	const lib = "/usr/lib/python3.11/"
	for what, c := range map[string]struct {
		stack []Script
		want  string
	}{
		"the program's own":                 {[]Script{{Name: "busy", File: "/srv/app/shop.py"}, {Name: "<module>", File: "/srv/app/shop.py"}}, "busy (app/shop.py)"},
		"a library that it calls":           {[]Script{{Name: "_parse", File: lib + "re/_parser.py"}, {Name: "compile", File: lib + "re/__init__.py"}, {Name: "robot", File: "robots.py"}, {Name: "serve", File: "web.py"}}, "compile (re/__init__.py) in robot (robots.py)"},
		"a built-in function":               {[]Script{{Name: "sqrt", File: ""}, {Name: "total", File: "/srv/www/index.php"}}, "sqrt in total (www/index.php)"},
		"nothing but built-in functions":    {[]Script{{Name: "sqrt", File: ""}}, "sqrt"},
		"a framework, called by its server": {[]Script{{Name: "jsonable_encoder", File: "/usr/lib/python3/dist-packages/fastapi/encoders.py"}, {Name: "run", File: lib + "asyncio/runners.py"}, {Name: "<module>", File: "/usr/bin/uvicorn"}}, "jsonable_encoder (fastapi/encoders.py)"},
		"a thread of a pool":                {[]Script{{Name: "dumps", File: lib + "json/__init__.py"}, {Name: "run", File: lib + "threading.py"}, {Name: "main", File: "/srv/app/main.py"}}, "dumps (json/__init__.py)"},
		"Node's own, called by a script":    {[]Script{{Name: "pbkdf2Sync", File: "node:internal/crypto/pbkdf2"}, {Name: "login", File: "file:///srv/app/login.mjs"}}, "pbkdf2Sync (crypto/pbkdf2) in login (app/login.mjs)"},
		"a package of PHP's":                {[]Script{{Name: "render", File: "/srv/shop/vendor/twig/twig/src/Template.php"}, {Name: "{main}", File: "/srv/shop/public/index.php"}}, "render (src/Template.php) in {main} (public/index.php)"},
		"Java's own, called by a program":   {[]Script{{Name: "int java.util.HashMap.hash(java.lang.Object)", File: "HashMap.java"}, {Name: "void shop.Cart.add(java.lang.String)", File: "Cart.java"}}, "java.util.HashMap.hash in shop.Cart.add"},
		"with lines":                        {[]Script{{"dumps", lib + "json/__init__.py", 183}, {"list", "/srv/app/shop.py", 12}}, "dumps (json/__init__.py:183) in list (app/shop.py:12)"},
		"Java, with a line":                 {[]Script{{"void shop.Cart.add(java.lang.String)", "Cart.java", 41}}, "shop.Cart.add (Cart.java:41)"},
		"nothing but Java's own":            {[]Script{{Name: "java.util.HashMap.hash", File: "HashMap.java"}}, "java.util.HashMap.hash"},
	} {
		if got := InScripts(c.stack); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestRunsScripts(t *testing.T) {
	for name, want := range map[string]bool{
		"_PyEval_EvalFrameDefault": true, "_PyEval_EvalFrameDefault (libpython3.13.so.1.0)": true, "vm_exec_core": true, "Builtins_LdaKeyedPropertyHandler": true,
		"unicode_hash": false, "Builtins_ArrayMap": false, "ngx_http_handler": false,
	} {
		if got := RunsScripts(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
