package load

import (
	"cmp"
	"strconv"
)

// badTLS is what is wrong with a server's TLS, as a detail of an outcome: neither an errno
// nor one of the details that stand for none.
type badTLS uint8

// They begin where Linux's errnos have ended.
const (
	certificateExpired badTLS = 160 + iota
	certificateNotYetValid
	certificateWrongHost
	certificateSelfSigned
	certificateUnknownAuthority
	certificateInvalid
	notTLS
	brokenTLS
	noCloseNotify
	noHTTP2 // the server did not choose it
)

// badTLSNames are in the order of the constants.
var badTLSNames = [...]string{
	"certificate_expired", "certificate_not_yet_valid", "certificate_wrong_host", "certificate_self_signed",
	"certificate_unknown_authority", "certificate_invalid", "not_tls", "protocol_error", "no_close_notify", "no_http2",
}

// badTLSName is the name of a detail, "" if it is none of ours.
func badTLSName(detail int) string {
	if i := detail - int(certificateExpired); i >= 0 && i < len(badTLSNames) {
		return badTLSNames[i]
	}
	return ""
}

// alertNames are those of IANA's registry of TLS alerts.
var alertNames = map[int]string{
	0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed", 22: "record_overflow",
	30: "decompression_failure", 40: "handshake_failure", 42: "bad_certificate", 43: "unsupported_certificate",
	44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
	49: "access_denied", 50: "decode_error", 51: "decrypt_error", 60: "export_restriction", 70: "protocol_version",
	71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
	109: "missing_extension", 110: "unsupported_extension", 111: "certificate_unobtainable", 112: "unrecognized_name",
	113: "bad_certificate_status_response", 114: "bad_certificate_hash_value", 115: "unknown_psk_identity",
	116: "certificate_required", 120: "no_application_protocol", 121: "ech_required",
}

func alertName(code int) string { return cmp.Or(alertNames[code], strconv.Itoa(code)) }
