package varnish

import (
	"testing"

	"plimsoll/internal/orphans/heldtest"
)

func TestMain(m *testing.M) { heldtest.Main(m) }
