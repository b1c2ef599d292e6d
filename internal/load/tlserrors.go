package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// alertOf is the code of the alert that a peer sent, which crypto/tls tells by its text alone.
func alertOf(err error) (code int, ok bool) {
	said, ok := errors.AsType[*net.OpError](err)
	if !ok || said.Op != "remote error" {
		return 0, false
	}
	text := said.Err.Error()
	for code := range 256 {
		if tls.AlertError(code).Error() == text {
			return code, true
		}
	}
	return 0, false
}

// tlsFailure is the outcome of an error of crypto/tls: in the handshake, or after it.
func tlsFailure(err error, inHandshake bool) outcome {
	kind, alert := readFailed, readAlert
	if inHandshake {
		kind, alert = tlsFailed, tlsAlert
	}
	if code, ok := alertOf(err); ok {
		return failure(alert, code)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return failure(kind, int(errno))
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure(kind, sawEOF)
	case isCertificate(err):
		return failure(kind, int(badCertificate(err)))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok && inHandshake {
		return failure(kind, int(notTLS))
	}
	return failure(kind, int(brokenTLS))
}

func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// badCertificate says what is wrong with a certificate.
func badCertificate(err error) badTLS {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason != x509.Expired {
			return certificateInvalid
		}
		if invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore) {
			return certificateNotYetValid
		}
		return certificateExpired
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return certificateWrongHost
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		if c := unknown.Cert; c != nil && bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil {
			return certificateSelfSigned
		}
		return certificateUnknownAuthority
	}
	return certificateInvalid
}
