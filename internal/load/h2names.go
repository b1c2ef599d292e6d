package load

// error codes (RFC 9113, 7)
const (
	noError          = 0x0
	protocolError    = 0x1
	flowControlError = 0x3
	frameSizeError   = 0x6
	cancelStream     = 0x8
	compressionError = 0x9
	enhanceYourCalm  = 0xb
	http2Codes       = 0xe // those that there are
	unknownCode      = 0xff
)

// codeNames are RFC 9113's error codes.
var codeNames = [http2Codes]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// codeName is the name of an error code, as a detail of an outcome.
func codeName(detail int) string {
	if detail < len(codeNames) {
		return codeNames[detail]
	}
	return "unknown_code"
}
