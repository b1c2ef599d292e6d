package cgroup

import (
	"testing"

	"plimsoll/internal/orphans/testhold"
)

func TestMain(m *testing.M) { testhold.Main(m) }
