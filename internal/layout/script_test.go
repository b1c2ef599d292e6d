package layout

import "testing"

func TestInScripts(t *testing.T) {
	const lib = "/usr/lib/python3.11/"
	for what, c := range map[string]struct {
		stack []Script
		want  string
	}{
		"the program's own":                 {[]Script{{"busy", "/srv/app/shop.py"}, {"<module>", "/srv/app/shop.py"}}, "app/shop.py:busy"},
		"a library that it calls":           {[]Script{{"_parse", lib + "re/_parser.py"}, {"compile", lib + "re/__init__.py"}, {"robot", "robots.py"}, {"serve", "web.py"}}, "re/__init__.py:compile in robots.py:robot"},
		"a built-in function":               {[]Script{{"sqrt", ""}, {"total", "/srv/www/index.php"}}, "sqrt in www/index.php:total"},
		"nothing but built-in functions":    {[]Script{{"sqrt", ""}}, "sqrt"},
		"a framework, called by its server": {[]Script{{"jsonable_encoder", "/usr/lib/python3/dist-packages/fastapi/encoders.py"}, {"run", lib + "asyncio/runners.py"}, {"<module>", "/usr/bin/uvicorn"}}, "fastapi/encoders.py:jsonable_encoder"},
		"a thread of a pool":                {[]Script{{"dumps", lib + "json/__init__.py"}, {"run", lib + "threading.py"}, {"main", "/srv/app/main.py"}}, "json/__init__.py:dumps"},
		"Node's own, called by a script":    {[]Script{{"pbkdf2Sync", "node:internal/crypto/pbkdf2"}, {"login", "file:///srv/app/login.mjs"}}, "crypto/pbkdf2:pbkdf2Sync in app/login.mjs:login"},
		"a package of PHP's":                {[]Script{{"render", "/srv/shop/vendor/twig/twig/src/Template.php"}, {"{main}", "/srv/shop/public/index.php"}}, "src/Template.php:render in public/index.php:{main}"},
		"Java's own, called by a program":   {[]Script{{"int java.util.HashMap.hash(java.lang.Object)", "HashMap.java"}, {"void shop.Cart.add(java.lang.String)", "Cart.java"}}, "java.util.HashMap.hash in shop.Cart.add"},
		"nothing but Java's own":            {[]Script{{"java.util.HashMap.hash", "HashMap.java"}}, "java.util.HashMap.hash"},
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
