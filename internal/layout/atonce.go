package layout

import "strings"

// atOnce says by which setting a program takes more requests at a time, by how its process' name begins; the longest beginnings first.
var atOnce = []struct{ name, set string }{
	{"varnishd", "-p thread_pool_max, which counts for each of its thread_pools"}, // https://varnish-cache.org/docs/trunk/reference/varnishd.html
	{"gunicorn", "--threads, or --workers"},
	{"uwsgi", "threads, or processes"},
	{"puma", "-t, or threads in puma.rb"},
	{"ruby", "puma -t; unicorn worker_processes"},
	{"java", "Tomcat, Jetty: maxThreads; Spring Boot: server.tomcat.threads.max"},
	{"python", "gunicorn --threads; uwsgi processes; uvicorn --workers"},
	{"node", "more processes: cluster, or pm2 -i"},
	{"apache2", "MaxRequestWorkers, and ServerLimit"},
	{"httpd", "MaxRequestWorkers, and ServerLimit"},
	{"php-fpm", "pm.max_children"},
}

// AtOnce names the setting by which a program takes more requests at a time; of one that is not known those of several.
func AtOnce(program string) string {
	for _, p := range atOnce {
		if strings.HasPrefix(program, p.name) {
			return p.set
		}
	}
	return "workers or threads: gunicorn --threads; uwsgi processes; puma -t; Tomcat maxThreads"
}
