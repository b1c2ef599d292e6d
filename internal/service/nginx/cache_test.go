package nginx

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// passesOf are the places of a configuration's http block.
func passesOf(t *testing.T, http string) map[Pass]int {
	t.Helper()
	return settingsOf(t, "events {} http {"+http+"}", "", 1022001).Passes
}

func TestPasses(t *testing.T) {
	const app = "10.0.0.2:80"
	for name, c := range map[string]struct {
		location string
		want     Pass
	}{
		"no cache":             {`proxy_pass http://10.0.0.2;`, Pass{app, false, ""}},
		"switched off":         {`proxy_pass http://10.0.0.2; proxy_cache off; proxy_cache_key $request_id;`, Pass{app, false, ""}},
		"the default key":      {`proxy_pass http://10.0.0.2; proxy_cache pages;`, Pass{app, true, ""}},
		"a key of the page":    {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$scheme$host$request_uri";`, Pass{app, true, ""}},
		"a key of a visitor":   {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$uri$cookie_session";`, Pass{app, true, ""}},
		"a longer name":        {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key $request_idle$pid;`, Pass{app, true, ""}},
		"of one request":       {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$host$request_uri$request_id";`, Pass{app, true, "$request_id in proxy_cache_key"}},
		"in braces":            {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$host${msec}x";`, Pass{app, true, "$msec in proxy_cache_key"}},
		"of one connection":    {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$uri $connection $connection_requests $remote_port";`, Pass{app, true, ""}},
		"of one second":        {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key "$uri $time_local $time_iso8601";`, Pass{app, true, ""}},
		"off, and such a key":  {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_key $request_id; proxy_no_cache 1; proxy_cache_bypass 1;`, Pass{app, true, "proxy_no_cache 1"}},
		"variables say where":  {`proxy_pass http://$backend; proxy_cache pages; proxy_cache_key $request_id;`, Pass{UnknownUpstream, true, "$request_id in proxy_cache_key"}},
		"nothing is kept":      {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_no_cache $http_pragma 1;`, Pass{app, true, "proxy_no_cache 1"}},
		"of two directives":    {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_no_cache yes; proxy_no_cache $cookie_a;`, Pass{app, true, "proxy_no_cache yes"}},
		"by a header":          {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_no_cache $http_pragma$arg_x; proxy_cache_bypass $cookie_a;`, Pass{app, true, ""}},
		"nobody":               {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_no_cache 0 ""; proxy_cache_bypass 0;`, Pass{app, true, ""}},
		"passed by":            {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_cache_bypass $request_id;`, Pass{app, true, "proxy_cache_bypass $request_id"}},
		"unbuffered":           {`proxy_pass http://10.0.0.2; proxy_cache pages; proxy_buffering off;`, Pass{app, true, "proxy_buffering off"}},
		"another family":       {`proxy_pass http://10.0.0.2; proxy_cache pages; fastcgi_cache_key $request_id; fastcgi_buffering off;`, Pass{app, true, ""}},
		"FastCGI":              {`fastcgi_pass 127.0.0.1:9000; fastcgi_cache pages; fastcgi_cache_key $uri$msec;`, Pass{"127.0.0.1:9000", true, "$msec in fastcgi_cache_key"}},
		"gRPC, which has none": {`grpc_pass grpc://10.0.0.2:50; proxy_cache pages;`, Pass{"10.0.0.2:50", false, ""}},
	} {
		got := passesOf(t, "server { location / {"+c.location+"} }")
		if d := cmp.Diff(map[Pass]int{c.want: 1}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestPassesInherit: what a block says is in place of what those around it say, for each directive by itself.
func TestPassesInherit(t *testing.T) {
	got := passesOf(t, `
proxy_cache_key $uri$msec; proxy_no_cache 1;
upstream app { server 10.0.0.1; server 10.0.0.2:81; }
server {
  proxy_cache pages;
  location /a { proxy_pass http://app; proxy_no_cache $arg_x; }
  location /b { proxy_pass http://app/x; proxy_cache_key $uri; }
  location /c { proxy_pass http://app; proxy_cache_key $uri; proxy_no_cache $arg_x; if ($x) { proxy_pass http://app; } }
  location /d { proxy_cache off; location /d/e { proxy_pass http://unix:/run/a.sock:/; } }
  location /v { proxy_pass http://$host; }
}
server { location / { proxy_pass http://10.0.0.1:80; } }`)
	want := map[Pass]int{
		{"10.0.0.1:80", true, "$msec in proxy_cache_key"}: 1, {"10.0.0.2:81", true, "$msec in proxy_cache_key"}: 1, {UnknownUpstream, true, "proxy_no_cache 1"}: 1,
		{"10.0.0.1:80", true, "proxy_no_cache 1"}: 1, {"10.0.0.2:81", true, "proxy_no_cache 1"}: 1,
		{"10.0.0.1:80", true, ""}: 2, {"10.0.0.2:81", true, ""}: 2,
		{"unix:/run/a.sock", false, ""}: 1, {"10.0.0.1:80", false, ""}: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPassesOfAStream: what passes bytes on has no cache, and gets to the same servers.
func TestPassesOfAStream(t *testing.T) {
	got := settingsOf(t, "events {} stream { upstream app { server 10.0.0.1:81; } server { listen 81; proxy_pass app; } server { listen 82; proxy_pass $there; } }", "", 1022001).Passes
	if d := cmp.Diff(map[Pass]int{{"10.0.0.1:81", false, ""}: 1, {UnknownUpstream, false, ""}: 1}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
