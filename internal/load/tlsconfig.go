package load

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/input"
	"plimsoll/internal/model"
)

// tlsVersions are those that can be asked for, by the names that they have in a plan.
var tlsVersions = map[string]uint16{"": 0, "1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// tlsVersionName is the inverse of tlsVersions.
func tlsVersionName(v uint16) string { return strings.TrimPrefix(tls.VersionName(v), "TLS ") }

// tlsConfig makes what crypto/tls needs of a plan; host is the URL's. It reads the plan's files.
func tlsConfig(plan *model.TLSPlan, host string) (*tls.Config, error) {
	if plan == nil {
		plan = &model.TLSPlan{}
	}
	c := &tls.Config{
		ServerName: cmp.Or(plan.ServerName, host),
		NextProtos: []string{"http/1.1"},
		// Certificates are checked by trust, which remembers those that it has checked.
		InsecureSkipVerify: true,
	}
	if err := setVersions(c, plan); err != nil {
		return nil, err
	}
	if err := setCiphers(c, plan.Ciphers); err != nil {
		return nil, err
	}
	if (plan.Cert == "") != (plan.Key == "") {
		return nil, errors.New("client certificate: give both its file and the file of its private key")
	}
	if plan.Cert != "" {
		pair, err := input.KeyPair(plan.Cert, plan.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s with key %s: want both as PEM: %w", plan.Cert, plan.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	roots, err := readRoots(plan.CACert)
	if err != nil {
		return nil, err
	}
	if !plan.Insecure {
		t := &trust{roots: roots, name: c.ServerName}
		c.VerifyConnection = t.verify
	}
	return c, nil
}

func setVersions(c *tls.Config, plan *model.TLSPlan) error {
	var low, high bool
	c.MinVersion, low = tlsVersions[plan.MinVersion]
	c.MaxVersion, high = tlsVersions[plan.MaxVersion]
	switch {
	case !low || !high:
		return fmt.Errorf("TLS versions %q to %q: want 1.0, 1.1, 1.2 or 1.3", plan.MinVersion, plan.MaxVersion)
	case c.MinVersion == 0 && c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12:
		c.MinVersion = c.MaxVersion
	case c.MaxVersion != 0 && c.MinVersion > c.MaxVersion:
		return fmt.Errorf("TLS versions %s to %s: want the lower one first", plan.MinVersion, plan.MaxVersion)
	}
	return nil
}

func setCiphers(c *tls.Config, names []string) error {
	known := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, name := range names {
		i := slices.IndexFunc(known, func(s *tls.CipherSuite) bool { return s.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("cipher %q: want IANA's name of one that Go knows, like TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", name)
		case slices.Min(known[i].SupportedVersions) == tls.VersionTLS13:
			return fmt.Errorf("cipher %s: those of TLS 1.3 are not for choosing; limit the version to 1.2 to choose", name)
		}
		c.CipherSuites = append(c.CipherSuites, known[i].ID)
	}
	return nil
}

// readRoots returns the certificates of a file, nil (the system's) for none.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := input.Read(file, input.MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("certificates to trust: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates to trust, %s: want at least one as PEM (-----BEGIN CERTIFICATE-----)", file)
	}
	return roots, nil
}

// trust checks servers' certificates. A server shows the same ones each time, so what was
// found right is remembered until the certificate ends, and costs no signatures again.
type trust struct {
	roots   *x509.CertPool
	name    string
	checked sync.Map // the raw certificates that were shown → time.Time until when they are right
}

func (t *trust) verify(s tls.ConnectionState) error {
	leaf, now := s.PeerCertificates[0], time.Now()
	var shown strings.Builder
	for _, c := range s.PeerCertificates {
		shown.Write(c.Raw)
	}
	if until, ok := t.checked.Load(shown.String()); ok && now.Before(until.(time.Time)) {
		return nil
	}
	opts := x509.VerifyOptions{Roots: t.roots, CurrentTime: now, DNSName: t.name, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(opts)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	until := leaf.NotAfter
	for _, c := range chains[0] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	t.checked.Store(shown.String(), until)
	return nil
}
