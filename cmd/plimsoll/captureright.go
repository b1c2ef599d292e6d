package main

import "plimsoll/internal/privilege"

// captureLivePart is its name in the table of privileges.
const captureLivePart = "capture -i"

// mayCapture says why no packets can be captured, nil where they can.
func mayCapture() error { return privilege.Check("command", captureLivePart) }
