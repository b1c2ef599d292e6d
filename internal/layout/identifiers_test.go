package layout

import "testing"

func TestWithoutIdentifiers(t *testing.T) {
	for path, want := range map[string]string{
		"/var/lib/php/sessions/sess_0123456789abcdef": "/var/lib/php/sessions/sess_…",
		"/run/apache2/accept.lock":                    "/run/apache2/accept.lock",
		"/srv/f2a7c1d4-0000-4321/x":                   "/srv/…-0000-4321/x",
		"":                                            "",
	} {
		if got := WithoutIdentifiers(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
