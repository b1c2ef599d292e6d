package tune

import (
	"testing"

	"plimsoll/internal/model"
)

// Only a quota's first number says how much is asked for.
func TestGreater(t *testing.T) {
	for _, c := range []struct {
		kind, a, b string
		want       bool
	}{
		{model.ChangeQuota, "160000 100000", "80000 100000", true},
		{model.ChangeQuota, "80000 100000", "80000 100000", false},
		{model.ChangeSysctl, "8192", "4096", true},
		{model.ChangeSysctl, "4096", "8192", false},
		{model.ChangeSysctl, "8192 87380 4194304", "4096 87380 6291456", false},
		{model.ChangeSysctl, "15000 65535", "1024 65535", false},
	} {
		if got := greater(c.kind, c.a, c.b); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
