// Package style is what all of our pages look alike by: colours, light and dark, type, tables and the line.
package style

import _ "embed"

//go:embed base.css
var Base string
