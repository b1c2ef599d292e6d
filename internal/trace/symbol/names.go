package symbol

import (
	"strings"
	"unicode/utf8"
)

// maxName is where a function's name is cut.
const maxName = 240

// The modules that are no files.
const (
	KernelModule = "[kernel]"
	vdsoModule   = "[vdso]"
	jitModule    = "[jit]"
)

// cut bounds a name from outside and makes it text.
func cut(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= maxName {
		return name
	}
	end := maxName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
