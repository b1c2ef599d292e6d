package change

import (
	"fmt"
	"slices"

	"plimsoll/internal/host"
	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// service is an nginx or a PHP-FPM whose files are edited.
type service struct {
	Kind Kind `json:"sort"`
	process
	Conf string `json:"conf"` // the main file, as the service calls it
	Net  netns  `json:"net"`
	// Test are the arguments with which its binary tests the configuration.
	Test []string `json:"test"`
	// NoReload: what is edited is not taken over by a reload.
	NoReload bool `json:"no_reload,omitempty"`
	// Ondemand: it may have no workers at all.
	Ondemand bool `json:"ondemand,omitempty"`
	// First is the process that the entry is about, where the service goes on as another.
	First process `json:"first,omitzero"`
	identity
}

// identity is how a service is known again once its process has ended.
type identity struct {
	Exe     string   `json:"exe"`
	Sockets []string `json:"sockets,omitempty"` // the inodes of those it listens at
	Root    string   `json:"root,omitempty"`    // device and inode of its root directory
	Dir     string   `json:"dir,omitempty"`     // device and inode of the directory of its main file
	Seen    uint64   `json:"seen,omitempty"`    // when we looked, in clock ticks after boot
	// Elsewhere: under the name of that directory we saw another one, as its mounts are not ours.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

func (s *service) String() string {
	name := map[Kind]string{Nginx: "nginx", PHPFPM: "PHP-FPM"}[s.Kind]
	return fmt.Sprintf("%s (process %d)", name, s.PID)
}

// look lists the workers that take requests.
func (s *service) look() (workers []process) {
	for _, pid := range host.PIDs() {
		st, err := host.StatOf(pid)
		if err != nil || st.PPID != s.PID || st.State == 'Z' {
			continue
		}
		t := title(pid)
		if s.Kind == Nginx && nginx.IsWorker(t) || s.Kind == PHPFPM && phpfpm.IsWorker(t) {
			workers = append(workers, process{pid, st.Start})
		}
	}
	return workers
}

func nginxService(r *nginx.Running, net netns) service {
	return service{Kind: Nginx, process: process{r.Master.PID, r.Master.Start}, Conf: r.Conf, Net: net, Test: append([]string{"-t"}, r.Options...)}
}

func phpfpmService(r *phpfpm.Running, net netns) service {
	return service{Kind: PHPFPM, process: process{r.Master.PID, r.Master.Start}, Conf: r.Conf, Net: net, Test: []string{"-t", "-R", "--fpm-config", r.Conf}}
}

func allOndemand(entries []phpfpm.Entry) bool {
	return !slices.ContainsFunc(phpfpm.Pools(entries), func(p string) bool { return phpfpm.Value(entries, p, "pm") != "ondemand" })
}
