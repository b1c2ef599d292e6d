package layout

import (
	"strconv"
	"strings"
)

// atOnce says how a program is set to take ALL requests at a time, by how its process' name begins; the longest beginnings first. Where the
// setting counts for each of several parts EACH is for as many of these as it has by default.
var atOnce = []struct {
	name  string
	parts int
	set   string
}{
	{"varnishd", 2, "-p thread_pool_max=EACH (2 thread_pools, the default; with -p thread_pools=P: ALL / P)"}, // https://varnish-cache.org/docs/trunk/reference/varnishd.html
	{"gunicorn", 1, "--threads EACH (1 worker, the default; with -w P: ALL / P)"},
	{"uwsgi", 1, "threads = EACH (1 process, the default; with processes = P: ALL / P)"},
	{"puma", 1, "-t EACH:EACH (with -w P: ALL / P)"},
	{"ruby", 1, "puma -t EACH:EACH (with -w P: ALL / P); unicorn worker_processes ALL"},
	{"java", 1, "Tomcat, Jetty: maxThreads ALL; Spring Boot: server.tomcat.threads.max=ALL"},
	{"python", 1, "gunicorn --threads EACH (with -w P: ALL / P); uwsgi processes = ALL; uvicorn: more --workers"},
	{"node", 1, "more processes: cluster, or pm2 -i"},
	{"apache2", 1, "MaxRequestWorkers ALL (over 256 ServerLimit, too)"},
	{"httpd", 1, "MaxRequestWorkers ALL (over 256 ServerLimit, too)"},
	{"tinyproxy", 1, "MaxClients ALL (tinyproxy.conf)"}, // https://tinyproxy.github.io/
	{"php-fpm", 1, "pm.max_children = ALL"},
}

// AtOnce is what to set so that a program takes so many requests at a time; of one that is not known the settings of several.
func AtOnce(program, all string) string {
	for _, p := range atOnce {
		if !strings.HasPrefix(program, p.name) {
			continue
		}
		each := all
		if n, err := strconv.Atoi(all); err == nil {
			each = strconv.Itoa((n + p.parts - 1) / p.parts)
		}
		return strings.NewReplacer("ALL", all, "EACH", each).Replace(p.set)
	}
	return "workers or threads: gunicorn --threads; uwsgi processes; puma -t; Tomcat maxThreads"
}
