package layout

// WithoutIdentifiers replaces what is long and has a digit in a file's name: a session's file is named by what lets its
// owner in, and there are as many as sessions.
func WithoutIdentifiers(path string) string {
	var out []byte
	for at := 0; at < len(path); {
		end, digit := at, false
		for end < len(path) && alphanumeric(path[end]) {
			digit = digit || path[end] <= '9'
			end++
		}
		if digit && end-at >= 8 {
			out = append(out, "…"...)
		} else {
			out = append(out, path[at:end]...)
		}
		if end < len(path) {
			out = append(out, path[end])
			end++
		}
		at = end
	}
	return string(out)
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
