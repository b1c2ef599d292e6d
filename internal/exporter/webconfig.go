package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"plimsoll/internal/input"
)

const maxWebConfig = 1 << 20 // bytes

// webConfig is a web config with what is in the files that it names. The library reads a config anew for each connection and
// each request, to its end, and whatever lies there by then. So what it reads is one of ours, in memory, and that is made anew instead,
// within bounds; while what lies there is no good, nobody is answered.
type webConfig struct {
	path string
	mu   sync.Mutex
	held *os.File // what the library reads, by the number of its descriptor
	now  configText
}

// configText is a web config without names of files, and by what it keeps others out.
type configText struct {
	text                                 []byte
	tls, users, clients, ca, allowedSANs bool
}

// lacks says whether c has not all of what another keeps others out by.
func (c configText) lacks(other configText) bool {
	return other.tls && !c.tls || other.users && !c.users || other.clients && !c.clients || other.ca && !c.ca || other.allowedSANs && !c.allowedSANs
}

// openConfig reads a web config, and refuses one that would be refused at the first scrape.
func openConfig(path string) (*webConfig, error) {
	c := &webConfig{path: path}
	if err := c.renew(); err != nil {
		return nil, err
	}
	return c, nil
}

// name is where the library finds it.
func (c *webConfig) name() string { return fmt.Sprintf("/proc/self/fd/%d", c.held.Fd()) }

func (c *webConfig) close() { _ = c.held.Close() } // nothing of it is to be kept

// renew takes over what was written since. An error says that what lies there now cannot be used.
func (c *webConfig) renew() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := wholeConfig(c.path)
	if err != nil {
		return err
	}
	if c.held != nil && bytes.Equal(got.text, c.now.text) {
		return nil
	}
	if got.lacks(c.now) { // mostly since it is being written
		return fmt.Errorf("--web-config %s: it had TLS, users or certificates of clients, and has them no more; if that is meant, start anew", c.path)
	}
	next, err := inMemory(got.text)
	if err != nil {
		return fmt.Errorf("--web-config %s: %w", c.path, err)
	}
	if err := web.Validate(fmt.Sprintf("/proc/self/fd/%d", next.Fd())); err != nil {
		return errors.Join(fmt.Errorf("--web-config %s: want a file as Prometheus' exporters take it (docs/exporter.md): %w", c.path, err), next.Close())
	}
	c.now = got
	if c.held == nil {
		c.held = next
		return nil
	}
	// In one step: who reads the one before goes on to its end.
	return errors.Join(unix.Dup3(int(next.Fd()), int(c.held.Fd()), unix.O_CLOEXEC), next.Close())
}

// watch has each connection, and each request on it, find what is there by now; it is for http.Server.ConnState.
func (c *webConfig) watch(conn net.Conn, state http.ConnState) {
	if (state == http.StateNew || state == http.StateActive) && c.renew() != nil {
		_ = conn.Close() // by whom it may be used is not known
	}
}

// inMemory is a file without a name that holds text.
func inMemory(text []byte) (*os.File, error) {
	const name = "web-config"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("keep it in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// withText are the keys that name a file, and those under which its text can stand instead.
var withText = map[string]string{"cert_file": "cert", "key_file": "key", "client_ca_file": "client_ca"}

// wholeConfig reads a web config and puts the text of each file that it names in the place of the name.
func wholeConfig(path string) (got configText, err error) {
	raw, err := input.ReadPlain(path, maxWebConfig)
	if err != nil {
		return got, fmt.Errorf("--web-config: %w", err)
	}
	if got.text, err = withTexts(raw, filepath.Dir(path)); err != nil {
		return got, fmt.Errorf("--web-config %s: want a file as Prometheus' exporters take it (docs/exporter.md): %w", path, err)
	}
	var c web.Config
	if err := yaml.Unmarshal(got.text, &c); err != nil {
		return got, fmt.Errorf("--web-config %s: want a file as Prometheus' exporters take it (docs/exporter.md): %w", path, err)
	}
	t := c.TLSConfig
	if t.TLSCertPath+t.TLSKeyPath+t.ClientCAs != "" {
		return got, fmt.Errorf("--web-config %s: want cert_file, key_file and client_ca_file in tls_server_config itself, and not merged into it", path)
	}
	got.tls, got.users, got.clients = t.TLSCert != "", len(c.Users) > 0, t.ClientAuth != "" && t.ClientAuth != "NoClientCert"
	got.ca, got.allowedSANs = t.ClientCAsText != "", len(t.ClientAllowedSans) > 0
	return got, nil
}

// withTexts is a web config without names of files. One that was to keep somebody out, as one that is being written, and has
// nothing that does, is refused.
func withTexts(raw []byte, dir string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	users, tls := member(&doc, "basic_auth_users"), member(&doc, "tls_server_config")
	switch {
	case users == nil && tls == nil:
		return nil, errors.New("it has neither users (basic_auth_users) nor TLS (tls_server_config), so it keeps nobody out; leave --web-config away if that is meant")
	case users != nil && len(users.Content) == 0:
		return nil, errors.New("basic_auth_users names nobody, so it keeps nobody out; leave it away if that is meant")
	}
	if err := takeTexts(tls, dir); err != nil {
		return nil, err
	}
	return yaml.Marshal(&doc)
}

// takeTexts replaces names of files by what is in them.
func takeTexts(tls *yaml.Node, dir string) error {
	for i := 0; tls != nil && i+1 < len(tls.Content); i += 2 {
		key, value := tls.Content[i], resolved(tls.Content[i+1])
		as := withText[key.Value]
		if as == "" || value.Value == "" {
			continue
		}
		file := value.Value
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		text, err := input.ReadPlain(file, input.MaxPEM)
		if err != nil {
			return err
		}
		key.Value = as
		tls.Content[i+1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(text)}
	}
	return nil
}

// member is the value of a key of a document, or of a mapping; nil for none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
