package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
)

// Case is a real fault, caused on purpose, with its known truth: the content
// of one lab/<id>/case.yaml.
type Case struct {
	ID    string `yaml:"id" json:"id"`
	Title string `yaml:"title" json:"title"`
	// Symptom is what the person on call is told: what users see, never why.
	Symptom string `yaml:"symptom" json:"symptom"`
	// What is one paragraph for the reader: what the case causes, and how.
	What string `yaml:"what" json:"what"`
	// Needs are what the case needs beside the lab's own tools, and not every machine has.
	Needs []Need `yaml:"needs" json:"needs,omitempty"`
	// Vars fill the templates of steps and load; they stand at their faulty values.
	Vars  map[string]string `yaml:"vars" json:"vars,omitempty"`
	Steps []Step            `yaml:"steps" json:"steps"`
	Load  Load              `yaml:"load" json:"load"`
	Truth Truth             `yaml:"truth" json:"truth"`
	// Mends are what a person would change, one for each limit of the case.
	Mends []Mend `yaml:"mends" json:"mends,omitempty"`
	// Twin is nil where the load itself tells the case from its healthy twin.
	Twin *Twin `yaml:"twin" json:"twin,omitempty"`
	// Blind is the day, as 2006-01-02, on which somebody wrote the case who had not read the
	// rules; "" for a case that was written with them.
	Blind string `yaml:"blind" json:"blind,omitempty"`
	Seen  Seen   `yaml:"seen" json:"seen"`
}

// Need is a program, or a file, that a case needs and that a machine may be without.
type Need struct {
	// Find is the program's name, or an absolute path, which may have * in it.
	Find string `yaml:"find" json:"find"`
	// Package is the Debian package that brings it.
	Package string `yaml:"package" json:"package"`
}

// Step is one typed thing to do when a case is brought up; exactly one field
// is set. Steps are done in order, the machine-wide ones just before the load.
type Step struct {
	Sysctl        *Sysctl        `yaml:"sysctl" json:"sysctl,omitempty"`
	MachineSysctl *MachineSysctl `yaml:"machine_sysctl" json:"machine_sysctl,omitempty"`
	NFT           *NFT           `yaml:"nft" json:"nft,omitempty"`
	Qdisc         *Qdisc         `yaml:"qdisc" json:"qdisc,omitempty"`
	Offload       *Offload       `yaml:"offload" json:"offload,omitempty"`
	File          *File          `yaml:"file" json:"file,omitempty"`
	DiskFile      *DiskFile      `yaml:"disk_file" json:"disk_file,omitempty"`
	Cgroup        *Cgroup        `yaml:"cgroup" json:"cgroup,omitempty"`
	Nginx         *Service       `yaml:"nginx" json:"nginx,omitempty"`
	PHPFPM        *Service       `yaml:"php_fpm" json:"php_fpm,omitempty"`
	Process       *Process       `yaml:"process" json:"process,omitempty"`
}

// Sysctl sets a kernel setting inside one host's network namespace. An empty
// value, after its template is filled in, leaves the setting alone.
type Sysctl struct {
	Host  string `yaml:"host" json:"host"`
	Name  string `yaml:"name" json:"name"`
	Value string `yaml:"value" json:"value"`
}

// MachineSysctl sets a kernel setting that the whole machine shares. It stands
// only while the load runs (or until Down), and its old value comes back.
type MachineSysctl struct {
	Name  string `yaml:"name" json:"name"`
	Value string `yaml:"value" json:"value"`
}

// NFT loads a ruleset inside one host's network namespace.
type NFT struct {
	Host  string `yaml:"host" json:"host"`
	Rules string `yaml:"rules" json:"rules"`
}

// Qdisc gives a host's network device a root queueing discipline, in the
// words of tc. An empty spec, after its template is filled in, adds none.
type Qdisc struct {
	Host   string `yaml:"host" json:"host"`
	Device string `yaml:"device" json:"device,omitempty"` // "" means eth0
	Spec   string `yaml:"spec" json:"spec"`
}

// Offload says how many segments the device may be handed in one packet: with
// 1, as on a wire, each packet that is limited or lost is one of TCP's own.
type Offload struct {
	Host     string `yaml:"host" json:"host"`
	Segments int    `yaml:"segments" json:"segments"`
}

// File writes a file into the case's work directory.
type File struct {
	Path string `yaml:"path" json:"path"` // relative to the work directory
	// From names a template among the embedded files; Content is the template itself.
	From       string `yaml:"from" json:"from,omitempty"`
	Content    string `yaml:"content" json:"content,omitempty"`
	Executable bool   `yaml:"executable" json:"executable,omitempty"`
}

// DiskFile writes a file of random bytes that no memory backs: the work
// directory may be a tmpfs, this one's, {{.disk}} in templates, is not.
type DiskFile struct {
	Path      string `yaml:"path" json:"path"` // relative to {{.disk}}
	Kilobytes int    `yaml:"kilobytes" json:"kilobytes"`
}

// Service starts nginx or PHP-FPM with a configuration written by an earlier
// File step, and waits until it listens.
type Service struct {
	Host   string `yaml:"host" json:"host"`
	Config string `yaml:"config" json:"config"`           // relative to the work directory
	Listen int    `yaml:"listen" json:"listen,omitempty"` // TCP port to wait for
	// Socket is the Unix socket to wait for instead, relative to the work directory.
	Socket string `yaml:"socket" json:"socket,omitempty"`
	// Processes is how many processes the service's user may have, as far as
	// the service itself is concerned (RLIMIT_NPROC); empty after its template
	// is filled in leaves the limit alone.
	Processes string `yaml:"processes" json:"processes,omitempty"`
	// Cgroup names the group of an earlier step that it begins in.
	Cgroup string `yaml:"cgroup" json:"cgroup,omitempty"`
	// CPUs is the list of CPUs that it may run on, as "0,2-3"; empty after its
	// template is filled in leaves it all.
	CPUs string `yaml:"cpus" json:"cpus,omitempty"`
}

func (s *Service) texts() []string { return []string{s.Processes, s.CPUs} }

// Process starts Count copies of a command in the work directory and, where
// Listen is a port, waits until the first one listens on it. With Ends it waits
// until they have ended well instead: what they prepare is there when the load begins.
type Process struct {
	Host    string   `yaml:"host" json:"host"`
	Name    string   `yaml:"name" json:"name"`
	Command []string `yaml:"command" json:"command"`
	Count   int      `yaml:"count" json:"count,omitempty"` // 0 means 1
	// Nice is added to the priority value: negative takes CPU from others.
	Nice int `yaml:"nice" json:"nice,omitempty"`
	// Cgroup names the group of an earlier step that it begins in.
	Cgroup string `yaml:"cgroup" json:"cgroup,omitempty"`
	Listen int    `yaml:"listen" json:"listen,omitempty"`
	Ends   bool   `yaml:"ends" json:"ends,omitempty"`
	// Unless names a var: when it is not empty, the step is left out.
	Unless string `yaml:"unless" json:"unless,omitempty"`
}

// Load is what drives the case: a URL for plimsoll run, a command (the user's own
// load tool) for plimsoll watch, or neither where a step drives it: then the
// server alone is watched for so long.
type Load struct {
	URL         string   `yaml:"url" json:"url,omitempty"`
	Connections int      `yaml:"connections" json:"connections,omitempty"`
	Duration    Duration `yaml:"duration" json:"duration,omitempty"`
	// Rate is the open loop's requests per second; 0 is a closed loop.
	Rate        float64  `yaml:"rate" json:"rate,omitempty"`
	NoKeepAlive bool     `yaml:"no_keepalive" json:"no_keepalive,omitempty"`
	Command     []string `yaml:"command" json:"command,omitempty"`
}

// Duration is a time.Duration that is written "8s" in a case file.
type Duration time.Duration

// UnmarshalYAML reads the form of time.ParseDuration.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the form that UnmarshalYAML reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Mend is one thing a person would change when one of Rules is named. Subject,
// when given, narrows it to findings with these labels.
type Mend struct {
	ID      string            `yaml:"id" json:"id"`
	Title   string            `yaml:"title" json:"title"`
	Rules   []string          `yaml:"rules" json:"rules"`
	Subject map[string]string `yaml:"subject" json:"subject,omitempty"`
	Set     map[string]string `yaml:"set" json:"set"`
}

// Seen is what was measured when the case was made, faulty and mended.
type Seen struct {
	With   string `yaml:"with" json:"with"`
	Faulty string `yaml:"faulty" json:"faulty"`
	Mended string `yaml:"mended" json:"mended"`
}

// hostNames are the hosts of every case; addresses are theirs. pathHost is the
// network between them, a switch of its own, in the cases that name it: nobody
// watches it, as nobody watches a provider's.
const pathHost = "path"

var (
	hostNames = []string{"client", "server"}
	addresses = map[string]string{"client": "10.77.0.1/24", "server": "10.77.0.2/24"}
)

// machineSysctls are the machine-wide settings that a case may change.
var machineSysctls = []string{
	"fs.file-max",
	"net.core.netdev_max_backlog",
	"net.netfilter.nf_conntrack_max",
}

func plainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// orPath is the host of a step that may also work on the path, which is none of the case's hosts.
func orPath(host string) []string {
	if host == pathHost {
		return nil
	}
	return []string{host}
}

// network counts the fields that change a host's way to the other.
func (s Step) network() int {
	set := 0
	for _, is := range []bool{s.NFT != nil, s.Qdisc != nil, s.Offload != nil} {
		if is {
			set++
		}
	}
	return set
}

// onPath says whether a step needs the network between the hosts.
func (s Step) onPath() bool {
	return s.NFT != nil && s.NFT.Host == pathHost || s.Qdisc != nil && s.Qdisc.Host == pathHost ||
		s.Process != nil && s.Process.Host == pathHost
}

// mendFor finds the mend for a finding: one with a matching subject before one without.
func (c *Case) mendFor(f model.Finding, done map[string]bool) *Mend {
	var found *Mend
	for i := range c.Mends {
		m := &c.Mends[i]
		if done[m.ID] || !slices.Contains(m.Rules, f.Rule) || !hasLabels(f.Subject, m.Subject) {
			continue
		}
		if found == nil || len(m.Subject) > len(found.Subject) {
			found = m
		}
	}
	return found
}

func hasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// Cgroup makes a control group for services of the case, which enter it before
// they begin (their field cgroup). A limit that is empty after its template is
// filled in is not set.
type Cgroup struct {
	Name string `yaml:"name" json:"name"`
	// CPUs is how many CPUs it may use on average, as "0.5".
	CPUs string `yaml:"cpus" json:"cpus,omitempty"`
	// Memory is in bytes, Processes a number of tasks.
	Memory    string `yaml:"memory" json:"memory,omitempty"`
	Processes string `yaml:"processes" json:"processes,omitempty"`
	// Writes is in bytes a second, to the disk on which {{.disk}} is.
	Writes string `yaml:"writes" json:"writes,omitempty"`
}

func (g *Cgroup) texts() []string { return []string{g.CPUs, g.Memory, g.Processes, g.Writes} }
