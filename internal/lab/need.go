package lab

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// Need is a program, or a file, that a case needs and that a machine may be without.
type Need struct {
	// Find is the program's name, or an absolute path, which may have * in it.
	Find string `yaml:"find" json:"find"`
	// Package is the Debian package that brings it.
	Package string `yaml:"package" json:"package"`
}

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

func (n Need) check() error {
	if n.Find == "" || n.Package == "" {
		return errors.New("needs: expected find (a program, or a path) and package (of Debian)")
	}
	return nil
}

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

// needs are all that the case needs in a mode: what it says, and what its steps start.
func (c *Case) needs(m Mode) []Need {
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
	if c.Load.URL != "" && (m == ModeWatch || m == ModeWatchCommand) {
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
