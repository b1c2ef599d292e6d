package layout

import (
	"fmt"
	"strings"
)

// Edit is how a service's file is changed so that a slip costs nothing: a copy first, then the change, then the service's own test, and only
// where that passes the reload.
type Edit struct {
	file  string // with "FILE" where it differs from host to host
	named string // what names the file, "" where it is known
	test  string // "" where the service has none
	then  string // what has the service read it
}

// services are those whose files a step may say that it edits.
var services = map[string]Edit{
	"nginx":       {"FILE", "the # line above the place", "nginx -t", "nginx -s reload"},
	"nginx-files": {"FILE", "before the first :", "nginx -t", "nginx -s reload"},                 // where nginx -T cannot be asked
	"nginx-stop":  {"FILE", "the # line above the place", "nginx -t", "systemctl restart nginx"}, // what a reload does not set anew
	"haproxy":     {"/etc/haproxy/haproxy.cfg", "", "haproxy -cf /etc/haproxy/haproxy.cfg", "systemctl reload haproxy"},
	"apache":      {"FILE", "apache2.conf, or grep -rl ServerLimit /etc/apache2", "apachectl configtest", "systemctl restart apache2"},
	"varnish":     {"FILE", "ps -o args -C varnishd, after -f", "varnishd -Cf FILE 2>/root/vcl", "systemctl reload varnish"},
	"memcached":   {"/etc/memcached.conf", "", "", "systemctl restart memcached"},
	"pgbouncer":   {"/etc/pgbouncer/pgbouncer.ini", "", "", "systemctl reload pgbouncer"},
	"clamd":       {"/etc/clamav/clamd.conf", "", "", "systemctl restart clamav-clamonacc"},
	"resolver":    {"/etc/resolv.conf", "", "", "restart the service"},
}

// EditOf is how a service's file is changed, false of one that is not known.
func EditOf(service string) (Edit, bool) {
	e, known := services[service]
	return e, known
}

// EditPHP is how a pool's file of PHP-FPM is changed: program is its process' name, "php-fpm8.2" where several versions may be there (its unit is
// then php8.2-fpm), "php-fpm" elsewhere, "" where nobody knows.
func EditPHP(program string) Edit {
	e := Edit{"FILE", "before the first :", program + " -t", "systemctl reload " + program}
	version, named := strings.CutPrefix(program, "php-fpm")
	switch {
	case !named:
		e.test, e.then = "", "systemctl reload 'php*-fpm'"
	case version != "":
		e.then = "systemctl reload php" + version + "-fpm"
	}
	return e
}

// copied is where the copy of the file is kept: in no folder whose files a service reads.
func (e Edit) copied() string {
	if e.file == "FILE" {
		return "/root/NAME.before"
	}
	return "/root" + e.file[strings.LastIndex(e.file, "/"):] + ".before"
}

// apply tests the file and has it read.
func (e Edit) apply() string {
	switch {
	case e.test == "" && strings.HasPrefix(e.then, "systemctl "):
		return commandMark + e.then + commandMark
	case e.test == "":
		return e.then
	}
	return commandMark + e.test + " && " + e.then + commandMark
}

// Steps are the change's words as numbered steps. The copy asks before it is written over another (-i): that may be the only
// one of the file as it was before the first of several changes.
func (e Edit) Steps(change string) string {
	named := ""
	if e.named != "" {
		named = " (FILE: " + e.named + ")"
	}
	return fmt.Sprintf("1) `cp -iL %s %s`%s 2) in it: %s 3) %s", e.file, e.copied(), named, strings.TrimSpace(change), e.apply())
}

// Back takes the steps back.
func (e Edit) Back() string {
	return fmt.Sprintf("`cp %s %s` – then %s", e.copied(), e.file, e.apply())
}
