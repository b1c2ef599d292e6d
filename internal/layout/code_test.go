package layout

import "testing"

func TestInModule(t *testing.T) {
	for _, c := range []struct{ function, file, want string }{
		{"acmp_process_quick", "mod_security2.so", "acmp_process_quick (mod_security2.so)"},
		{"apr_table_get", "libapr-1.so.0.7.2", "apr_table_get (libapr-1.so.0.7.2)"},
		{"encoder_encode", "_json.cpython-311-x86_64-linux-gnu.so", "encoder_encode (_json.cpython-311-x86_64-linux-gnu.so)"},
		{"mod_security2.so+0x79620", "mod_security2.so", "mod_security2.so+0x79620"},
		{"__strcmp_avx2", "libc.so.6", "__strcmp_avx2"},
		{"memcpy", "libc-2.31.so", "memcpy"},
		{"memcpy", "ld-musl-x86_64.so.1", "memcpy"},
		{"main.main", "server", "main.main"},
		{"execute_ex", "php-fpm8.2", "execute_ex"},
		{"f", "lib.sophia", "f"},
		{"f", ".so", "f"},
		{"f", "", "f"},
		{"", "libz.so.1", ""},
	} {
		if got := InModule(c.function, c.file); got != c.want {
			t.Errorf("%s in %s is %q, want %q", c.function, c.file, got, c.want)
		}
	}
}
