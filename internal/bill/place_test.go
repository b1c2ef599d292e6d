package bill

import (
	"testing"

	"github.com/google/pprof/profile"
)

// userStack makes a sample of a process's functions, each with its file of code, from the innermost out; a file in brackets is the kernel.
func userStack(functions ...[2]string) *profile.Sample {
	s := &profile.Sample{}
	for _, f := range functions {
		s.Location = append(s.Location, &profile.Location{
			Mapping: &profile.Mapping{File: f[1]}, Line: []profile.Line{{Function: &profile.Function{Name: f[0]}}},
		})
	}
	return s
}

// What stands between a program and its work counts for what it does itself, and what it asked for, not for what it only passes on.
func TestStandsBetween(t *testing.T) {
	table, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want  string
		stack *profile.Sample
	}{
		"xdebug's own":                     {"instrumentation", userStack([2]string{"xdebug_execute_ex", "/ext/xdebug.so"}, [2]string{"php:row", "[php]"})},
		"what it calls":                    {"instrumentation", userStack([2]string{"__libc_free", "/lib/libc.so.6"}, [2]string{"xdebug.so+0x15d6f", "/ext/xdebug.so"}, [2]string{"execute_ex", "/sbin/php-fpm8.2"})},
		"the script it runs":               {"own", userStack([2]string{"zend_hash_find", "/sbin/php-fpm8.2"}, [2]string{"execute_ex", "/sbin/php-fpm8.2"}, [2]string{"xdebug_execute_ex", "/ext/xdebug.so"})},
		"PHP without it":                   {"own", userStack([2]string{"zend_hash_find", "/sbin/php-fpm8.2"}, [2]string{"php:row", "[php]"})},
		"its file is written":              {"instrumentation", userStack([2]string{"vfs_write", "[kernel]"}, [2]string{"xdebug_nested_write", "/ext/xdebug.so"})},
		"coverage's tracer":                {"instrumentation", userStack([2]string{"CTracer_trace", "/venv/coverage/tracer.cpython-311-x86_64-linux-gnu.so"}, [2]string{"_PyEval_EvalFrameDefault", "/usr/bin/python3.11"})},
		"the script under coverage":        {"own", userStack([2]string{"long_add", "/usr/bin/python3.11"}, [2]string{"_PyEval_EvalFrameDefault", "/usr/bin/python3.11"}, [2]string{"call", "/venv/coverage/tracer.cpython-311-x86_64-linux-gnu.so"})},
		"a sanitizer":                      {"instrumentation", userStack([2]string{"__asan_memcpy", "/srv/app"}, [2]string{"serve", "/srv/app"})},
		"a thread that a sanitizer began":  {"own", userStack([2]string{"serve", "/srv/app"}, [2]string{"asan_thread_start", "/lib/libasan.so.8"})},
		"under valgrind":                   {"instrumentation", userStack([2]string{"memcheck-amd64-linux+0x1000", "/usr/libexec/valgrind/memcheck-amd64-linux"})},
		"the firewall":                     {"application_firewall", userStack([2]string{"acmp_process_quick", "/mods/mod_security2.so"})},
		"an expression of the firewall's":  {"application_firewall", userStack([2]string{"pcre2_match_8", "/lib/libpcre2-8.so.0.11.2"}, [2]string{"msc_regexec", "/mods/mod_security2.so"})},
		"another's expression":             {"regular_expressions", userStack([2]string{"pcre2_match_8", "/lib/libpcre2-8.so.0.11.2"}, [2]string{"ap_pregexec", "/sbin/apache2"})},
		"memory of the firewall's":         {"application_firewall", userStack([2]string{"vm_mmap_pgoff", "[kernel]"}, [2]string{"mmap", "/lib/libc.so.6"}, [2]string{"msre_parse", "/mods/mod_security2.so"})},
		"the reply that it passes on":      {"compression", userStack([2]string{"deflate", "/lib/libz.so.1"}, [2]string{"ap_pass_brigade", "/sbin/apache2"}, [2]string{"output_filter", "/mods/mod_security2.so"})},
		"nginx with libmodsecurity":        {"application_firewall", userStack([2]string{"modsecurity::Rule::evaluate", "/lib/libmodsecurity.so.3.0.9"}, [2]string{"ngx_http_modsecurity_pre_access_handler", "/mods/ngx_http_modsecurity_module.so"}, [2]string{"ngx_http_core_run_phases", "/sbin/nginx"})},
		"nginx's reply through its filter": {"own", userStack([2]string{"ngx_http_write_filter", "/sbin/nginx"}, [2]string{"ngx_http_modsecurity_body_filter", "/mods/ngx_http_modsecurity_module.so"})},
		"a firewall in Go":                 {"application_firewall", userStack([2]string{"regexp.(*Regexp).doExecute", "/srv/app"}, [2]string{"github.com/corazawaf/coraza/v3/internal/corazawaf.(*Rule).doEvaluate", "/srv/app"}, [2]string{"net/http.HandlerFunc.ServeHTTP", "/srv/app"})},
		"what it looks for in Go":          {"application_firewall", userStack([2]string{"github.com/petar-dambovaliev/aho-corasick.(*findIter).Next", "/srv/app"}, [2]string{"github.com/corazawaf/coraza/v3/internal/operators.(*pm).Evaluate", "/srv/app"}, [2]string{"net/http.HandlerFunc.ServeHTTP", "/srv/app"})},
		"the program behind it":            {"own", userStack([2]string{"main.page", "/srv/app"}, [2]string{"github.com/go-chi/chi/v5.(*Mux).ServeHTTP", "/srv/app"}, [2]string{"github.com/corazawaf/coraza/v3/http.WrapHandler.func1", "/srv/app"})},
		"a proxy behind it":                {"own", userStack([2]string{"main.copy", "/srv/app"}, [2]string{"github.com/caddyserver/caddy/v2/modules/caddyhttp.HandlerFunc.ServeHTTP", "/srv/app"}, [2]string{"github.com/corazawaf/coraza-caddy/v2.corazaModule.ServeHTTP", "/srv/app"})},
		"the next of a chain behind it":    {"own", userStack([2]string{"main.page", "/srv/app"}, [2]string{"github.com/gin-gonic/gin.(*Context).Next", "/srv/app"}, [2]string{"github.com/corazawaf/coraza-gin.Handler.func1", "/srv/app"})},
		"a method of PHP's":                {"own", userStack([2]string{"mysql_read", "/sbin/php-fpm8.2"}, [2]string{"zim_PDOStatement_execute", "/sbin/php-fpm8.2"}, [2]string{"xdebug_execute_internal", "/ext/xdebug.so"})},
	} {
		st, err := table.reader().stack(c.stack)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.place(&st); got.ID != c.want {
			t.Errorf("%s: %s, want %s", name, got.ID, c.want)
		}
	}
}

// A function of a module that a program loads is told with the module's file, and of a debugger's the debugger's, not the script's.
func TestFunctionsOfModules(t *testing.T) {
	table, err := theTable()
	if err != nil {
		t.Fatal(err)
	}
	for want, sample := range map[[2]string]*profile.Sample{
		{"acmp_process_quick", "mod_security2.so"}: userStack([2]string{"acmp_process_quick", "/mods/mod_security2.so"}),
		{"mod_security2.so+0x79620", ""}:           userStack([2]string{"mod_security2.so+0x79620", "/mods/mod_security2.so"}),
		{"xdebug_execute_ex", "xdebug.so"}:         userStack([2]string{"xdebug_execute_ex", "/ext/xdebug.so"}, [2]string{"php:row", "[php]"}),
		{"php:row", ""}:                            userStack([2]string{"execute_ex", "/sbin/php-fpm8.2"}, [2]string{"php:row", "[php]"}),
		{"__strlen_avx2", ""}:                      userStack([2]string{"__strlen_avx2", "/lib/libc.so.6"}),
		{"main.page", ""}:                          userStack([2]string{"main.page", "/srv/pages"}),
	} {
		st, err := table.reader().stack(sample)
		if err != nil {
			t.Fatal(err)
		}
		if f := table.place(&st).where(&st); f.Function != want[0] || f.Module != want[1] {
			t.Errorf("%+v, want %v", f, want)
		}
	}
}
