package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// always is what the hosts of every case are made with.
var always = []Need{{"ip", "iproute2"}, {"tc", "iproute2"}, {"nft", "nftables"}}

// ordinary are the programs that steps of many cases start by their name.
var ordinary = []Need{
	{"fio", "fio"}, {"openssl", "openssl"}, {"prlimit", "util-linux"}, {"python3", "python3"}, {"redis-server", "redis-server"},
	{"stress", "stress"}, {"sysbench", "sysbench"}, {"taskset", "util-linux"}, {"wrk", "wrk"},
}

var (
	needNginx  = Need{"nginx", "nginx-light"}
	needPHPFPM = Need{"php-fpm*", "php-fpm"}
)

// there says whether this machine has it.
func (n Need) there() bool {
	if filepath.IsAbs(n.Find) {
		found, err := filepath.Glob(n.Find)
		return err == nil && len(found) > 0
	}
	if n == needPHPFPM {
		_, err := findPHPFPM()
		return err == nil
	}
	_, err := findProgram(n.Find)
	return err == nil
}

// needs are all that the case needs: what it says, what its steps start, and where its
// load is a tool's (byTool), that tool.
func (c *Case) needs(byTool bool) []Need {
	list := slices.Clone(c.Needs)
	var words []string
	for _, s := range c.Steps {
		switch {
		case s.Nginx != nil:
			list = append(list, needNginx)
			words = append(words, s.Nginx.tools()...)
		case s.PHPFPM != nil:
			list = append(list, needPHPFPM)
			words = append(words, s.PHPFPM.tools()...)
		case s.Process != nil:
			words = append(words, s.Process.Command...)
		}
	}
	words = append(words, c.Load.Command...)
	if c.Load.URL != "" && byTool {
		words = append(words, "wrk")
	}
	for _, n := range ordinary {
		if slices.ContainsFunc(words, func(w string) bool { return filepath.Base(w) == n.Find }) {
			list = append(list, n)
		}
	}
	return list
}

// tools are the programs that start a service within limits.
func (s *Service) tools() []string {
	var list []string
	if s.Processes != "" {
		list = append(list, "prlimit")
	}
	if s.CPUs != "" {
		list = append(list, "taskset")
	}
	return list
}

// lacks says which packages this machine would need; "" when all is there.
func lacks(list []Need) string {
	var packages []string
	for _, n := range list {
		if !n.there() {
			packages = append(packages, n.Package)
		}
	}
	if len(packages) == 0 {
		return ""
	}
	slices.Sort(packages)
	return "programs are missing that it needs; try apt-get install --no-install-recommends " + strings.Join(slices.Compact(packages), " ")
}

// findProgram looks in the PATH and where Debian keeps servers, which an
// ordinary user's PATH leaves out.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path := filepath.Join("/usr/sbin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed; try `make install-deps`: %w", name, err)
	}
	return path, nil
}

// findPHPFPM returns the newest installed PHP-FPM: Debian's binary has its version in its name.
func findPHPFPM() (string, error) {
	found, err := filepath.Glob("/usr/sbin/php-fpm[0-9]*")
	if err != nil || len(found) == 0 {
		return findProgram("php-fpm")
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}
