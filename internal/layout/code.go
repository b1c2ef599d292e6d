package layout

import "strings"

// cLibrary is how the names of the C library's own files begin, whose functions everybody knows.
var cLibrary = []string{"libc.so", "libc-2.", "libc.musl-", "ld-linux", "ld-musl-", "libpthread.so", "libpthread-"}

// Loadable says whether a file of code, by its base name, is a library or a module that a program loads: neither the
// program itself nor the C library. Whose a function of such a file is, its own name seldom tells.
func Loadable(file string) bool {
	name, rest, shared := strings.Cut(file, ".so")
	if !shared || name == "" || rest != "" && rest[0] != '.' {
		return false
	}
	for _, begin := range cLibrary {
		if strings.HasPrefix(file, begin) {
			return false
		}
	}
	return true
}

// InModule is a function with the file of code that it is in, where that is a loadable one and the name does not tell.
func InModule(function, file string) string {
	if function == "" || !Loadable(file) || strings.Contains(function, file) {
		return function
	}
	return function + " (" + file + ")"
}
