// Package all lists every probe there is. A probe that is not listed here does
// not exist; nothing registers itself.
package all

import (
	"slices"

	"plimsoll/internal/probe"
	"plimsoll/internal/probe/cgroup"
	"plimsoll/internal/probe/filelocks"
	"plimsoll/internal/probe/filesystem"
	"plimsoll/internal/probe/haproxy"
	"plimsoll/internal/probe/kernel"
	"plimsoll/internal/probe/memcached"
	"plimsoll/internal/probe/mysql"
	"plimsoll/internal/probe/nginx"
	"plimsoll/internal/probe/phpfpm"
	"plimsoll/internal/probe/postgres"
	"plimsoll/internal/probe/procs"
	"plimsoll/internal/probe/program"
	"plimsoll/internal/probe/redis"
	"plimsoll/internal/probe/servicelog"
	"plimsoll/internal/probe/sockets"
	"plimsoll/internal/probe/varnish"
)

// All returns all probes, in the order of the handbook.
func All() []probe.Probe {
	return slices.Concat(kernel.All(), sockets.All(), procs.All(), program.All(), cgroup.All(), filesystem.All(), filelocks.All(), nginx.All(), phpfpm.All(), postgres.All(), mysql.All(), haproxy.All(), redis.All(), memcached.All(), varnish.All(), servicelog.All())
}
