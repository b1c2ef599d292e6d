package secret

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"http://joe:hunter2@h:80/x?a=1":                                              "http://(masked)@h:80/x?a=1",
		"http://h/x?a=1&token=abc&b=2#f":                                             "http://h/x?a=1&token=(masked)&b=2#f",
		"http://h/x?Access_Key=abc":                                                  "http://h/x?Access_Key=(masked)",
		"http://h/x?X-Amz-Signature=abc&sig=d":                                       "http://h/x?X-Amz-Signature=(masked)&sig=(masked)",
		"http://h/x?key=AIzaSyA1234567890abcdefghijklmnopqrs":                        "http://h/x?key=(masked)",
		"redis://:p%40ss@h:6379/0":                                                   "redis://(masked)@h:6379/0",
		"root:pw@tcp(127.0.0.1:3306)/db":                                             "(masked)@tcp(127.0.0.1:3306)/db",
		"PGPASSWORD=x psql -h db":                                                    "PGPASSWORD=(masked) psql -h db",
		"PWD=/root MYSQL_PWD=x":                                                      "PWD=/root MYSQL_PWD=(masked)",
		"php --password hunter2 -v":                                                  "php --password (masked) -v",
		"php --password=hunter2 --api-key k":                                         "php --password=(masked) --api-key (masked)",
		"mysql -u root -phunter2 db; mysql -p db":                                    "mysql -u root -p(masked) db; mysql -p db",
		"sudo mariadb-admin -phunter2 ping":                                          "sudo mariadb-admin -p(masked) ping",
		"php --password -hunter2 -v --token - -x":                                    "php --password (masked) -v --token - -x",
		"sh -c 'curl -u joe:pw http://h/'":                                           "sh -c 'curl -u (masked) http://h/'",
		`{"user":"joe","password":"a b c"}`:                                          `{"user":"joe","password":"(masked)"}`,
		"Authorization: Bearer abc def":                                              "Authorization: (masked)",
		`"GET /?sid=1 HTTP/1.1" Cookie: a=b; c=d`:                                    `"GET /?sid=(masked) HTTP/1.1" Cookie: (masked)`,
		"sent bearer abc123def456":                                                   "sent bearer (masked)",
		"got " + jwt + ", refused":                                                   "got (masked), refused",
		"AKIAIOSFODNN7EXAMPLE":                                                       "(masked)",
		"wJalrXUtnFEMIK7MDENGbPxRfiCYEX4MPL3KEY":                                     "(masked)",
		"digest 0123456789abcdef0123456789abcdef":                                    "digest (masked)",
		"a -----BEGIN RSA PRIVATE KEY-----\nMII\nx\n-----END RSA PRIVATE KEY----- b": "a (masked private key) b",
		// What is none stays.
		"open /etc/passwd: not a directory":                                                                             "open /etc/passwd: not a directory",
		"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/x":                                    "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/x",
		"sha256:0123456789abcdef0123456789abcdef":                                                                       "sha256:0123456789abcdef0123456789abcdef",
		"_ZN4core3ptr85drop_in_place17h0a1B2c3D4e5F6a7BE":                                                               "_ZN4core3ptr85drop_in_place17h0a1B2c3D4e5F6a7BE",
		"2026/01/02 03:04:05 [error] 12#12: *7 connect() failed (111: Connection refused) while connecting to upstream": "2026/01/02 03:04:05 [error] 12#12: *7 connect() failed (111: Connection refused) while connecting to upstream",
		"give --token-file FILE, session.save_path=/tmp token_type=x":                                                   "give --token-file FILE, session.save_path=/tmp token_type=x",
		"signal=9 author=joe keepalive=32 http://h:80/a?page=2":                                                         "signal=9 author=joe keepalive=32 http://h:80/a?page=2",
		"wrk -t2 -c200 -d10 http://10.0.0.2/":                                                                           "wrk -t2 -c200 -d10 http://10.0.0.2/",
		"plimsoll-runs/20260102T030405Z-9f3c/1":                                                                         "plimsoll-runs/20260102T030405Z-9f3c/1",
		"basic settings of the authentication":                                                                          "basic settings of the authentication",
	} {
		if got := Text(in); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", in, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"wrk", "-c", "2", "-H", "X-Own: abc", "-H", "Accept: x", "http://u:p@h/?token=t"}, []string{"wrk", "-c", "2", "-H", "X-Own: (masked)", "-H", "Accept: x", "http://(masked)@h/?token=(masked)"}},
		{[]string{"/usr/bin/mysql", "-psecret", "--password", "a b", "--token=x", "db"}, []string{"/usr/bin/mysql", "-p(masked)", "--password", "(masked)", "--token=(masked)", "db"}},
		{[]string{"ab", "-A", "joe:pw", "-n", "10"}, []string{"ab", "-A", "(masked)", "-n", "10"}},
		{[]string{"redis-benchmark", "-a", "pw"}, []string{"redis-benchmark", "-a", "(masked)"}},
		{[]string{"mysql", "-p", "shop"}, []string{"mysql", "-p", "shop"}},
		{[]string{"env", "PGPASSWORD=x y", "sh", "-c", "curl -u a:b h"}, []string{"env", "PGPASSWORD=(masked) y", "sh", "-c", "curl -u (masked) h"}},
		{[]string{"x", "--password", "-hunter2", "-v", "--password=-hunter2", "--password", "--hunter-2"}, []string{"x", "--password", "(masked)", "-v", "--password=(masked)", "--password", "(masked)"}},
		{[]string{"x", "--password=a&b c;d", "-secret=a,b", "--level=a&b"}, []string{"x", "--password=(masked)", "-secret=(masked)", "--level=a&b"}},
		{[]string{"x", "--token", "-", "--token", "--", "y"}, []string{"x", "--token", "-", "--token", "--", "y"}},
		{[]string{"mariadb-dump", "-p-hunter2", "-uroot", "shop"}, []string{"mariadb-dump", "-p(masked)", "-uroot", "shop"}},
		{[]string{"sudo", "-u", "joe", "mysqlcheck", "-phunter2", "-h", "mysql", "-p", "shop"}, []string{"sudo", "-u", "joe", "mysqlcheck", "-p(masked)", "-h", "mysql", "-p", "shop"}},
		{[]string{"sshpass", "-p", "hunter2", "mysql", "-h", "http", "-phunter2"}, []string{"sshpass", "-p", "(masked)", "mysql", "-h", "http", "-p(masked)"}},
		{[]string{"nginx", "-p", "/srv", "-psrv"}, []string{"nginx", "-p", "/srv", "-psrv"}},
		{[]string{"x", "--secret", "--verbose"}, []string{"x", "--secret", "--verbose"}},
		{nil, []string{}},
	} {
		if d := cmp.Diff(c.want, Args(c.in)); d != "" {
			t.Errorf("%q: -want +got\n%s", c.in, d)
		}
	}
}

func TestHeader(t *testing.T) {
	for in, want := range map[string]string{"Accept: x": "Accept: x", "X-Own: a": "X-Own: (masked)", "odd": "odd: (masked)"} {
		if got := Header(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"http://joe:hunter2@h/x?token=abc", "mysql -phunter2 --password x", `{"password":"a b"}`, "Authorization: Bearer abc", "root:pw@tcp(h)/db",
		jwt, "AKIAIOSFODNN7EXAMPLE", "-----BEGIN PRIVATE KEY-----\nx", "curl -H 'X: y' -u a:b", "sudo mysql -p-a --password -b --token=-c&d", "token='", "a=b:c@d", "\xff\xfe=\x00", "wJalrXUtnFEMIK7MDENGbPxRfiCYEX4MPL3KEY"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if again := Text(got); again != got {
			t.Fatalf("%q became %q, and that %q", s, got, again)
		}
		if len(got) > 9*len(s)+2*len(mask) {
			t.Fatalf("%d bytes became %d", len(s), len(got))
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q, which is no UTF-8", s, got)
		}
		argv := strings.Fields(s)
		once := Args(argv)
		if len(once) != len(argv) || !cmp.Equal(Args(once), once) {
			t.Fatalf("%q became %q, and that %q", argv, once, Args(once))
		}
	})
}

func BenchmarkText(b *testing.B) {
	for _, s := range []string{"nginx", "10.0.0.2:9000", "/system.slice/docker-0123456789abcdef0123456789abcdef.scope"} {
		b.Run(s, func(b *testing.B) {
			for b.Loop() {
				Text(s)
			}
		})
	}
}
