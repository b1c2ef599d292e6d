package change

import (
	"path"
	"slices"
	"strings"

	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// configuration is what a service's configuration is made of.
type configuration struct {
	files []string // all, and the modules that it loads
	dirs  []string // where a further file would belong to it
	// listens are the addresses that it names, as the socket signals write them.
	listens []string
	// doubt says why there may be more files than these.
	doubt error
}

func nginxConfiguration(r *nginx.Running) configuration {
	c := configuration{files: slices.Clone(r.Files), dirs: r.Dirs, listens: nginxListens(r.Tree)}
	for _, d := range find(r.Tree, "load_module") {
		for _, file := range d.Args {
			if !path.IsAbs(file) {
				file = path.Join(r.Prefix, file)
			}
			c.files = append(c.files, file)
		}
	}
	return c
}

// nginxListens are the addresses of an nginx's servers, of whatever kind.
func nginxListens(tree []*nginx.Directive) (list []string) {
	for _, kind := range []string{"http", "stream", "mail"} {
		for _, server := range inBlock(tree, kind) {
			if server.Name != "server" || !server.IsBlock {
				continue
			}
			named := false
			for _, d := range server.Block {
				if d.Name == "listen" && len(d.Args) > 0 {
					list = append(list, nginx.ListenAddresses(d.Args[0])...)
					named = true
				}
			}
			if !named {
				list = append(list, "0.0.0.0:80", "0.0.0.0:8000") // root's default, and other users'
			}
		}
	}
	return list
}

func phpfpmConfiguration(r *phpfpm.Running) configuration {
	c := configuration{files: r.Files, dirs: r.Dirs, doubt: r.Doubt}
	for _, pool := range phpfpm.Pools(r.Entries) {
		c.listens = append(c.listens, poolListens(r, pool)...)
	}
	return c
}

func poolListens(r *phpfpm.Running, pool string) []string {
	return phpfpm.ListenAddresses(strings.ReplaceAll(phpfpm.Value(r.Entries, pool, "listen"), "$pool", pool))
}

// find lists the directives of a name, in whatever blocks of nginx's own.
func find(list []*nginx.Directive, name string) (all []*nginx.Directive) {
	for _, d := range list {
		if d.Name == name && !d.IsBlock {
			all = append(all, d)
		}
		switch d.Name {
		case "map", "types", "geo", "split_clients", "charset_map", "stream", "mail": // their lines are no directives, or others
		default:
			all = append(all, find(d.Block, name)...)
		}
	}
	return all
}

// inBlock lists what stands in the top blocks of a name.
func inBlock(tree []*nginx.Directive, name string) (all []*nginx.Directive) {
	for _, d := range tree {
		if d.Name == name && d.IsBlock {
			all = append(all, d.Block...)
		}
	}
	return all
}
