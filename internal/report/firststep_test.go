package report

import (
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// Where a setting stands is looked for among the files of its host: a container's nginx is not the machine's. What is named from outside
// stays one word.
func TestWhereASettingStands(t *testing.T) {
	hosts := []model.Host{{Name: "web", Spec: "pid:71"}, {Name: "far", Spec: "ssh:ops@web/pid:8"}, {Name: "here", Spec: "local"}, {Name: "odd", Spec: "pid:1; reboot"}, {Name: "net", Spec: "netns:n"}}
	for _, c := range []struct {
		change                  model.FixChange
		wantCommand, wantInText string
	}{
		{model.FixChange{Kind: model.ChangeNginx, Name: "worker_connections", Value: "2", Host: "web"}, "nsenter -t 71 -a nginx -T | grep -nE '^# conf|worker_connections'", "each after nsenter -t 71 -a: 1) cp -L FILE"},
		{model.FixChange{Kind: model.ChangeNginx, Name: "a'; reboot", Value: "2", Host: "here"}, `nginx -T | grep -nE '^# conf|a'\''; reboot'`, "3) nginx -t && nginx -s reload"},
		{model.FixChange{Kind: model.ChangeNginx, Name: "a", Value: "2", Host: "odd"}, "nginx -T | grep -nE '^# conf|a'", "3) nginx -t"},
		{model.FixChange{Kind: model.ChangePHPFPM, Name: "pm.max_children", Value: "2", Host: "far"}, `nsenter -t 8 -a grep -rnE '^[; ]*pm\.' /etc /usr/local/etc`, "each after nsenter -t 8 -a: 1) cp -L FILE"},
		{model.FixChange{Kind: model.ChangeBacklog, Name: "0.0.0.0:80", Value: "2", Host: "net"}, "ip netns exec n ss -ltnp sport = :80", "Send-Q"},
		{model.FixChange{Kind: model.ChangeBacklog, Name: "unix:/run/x; reboot", Value: "2", Host: "here"}, "ss -lxp", "Send-Q"},
		{model.FixChange{Kind: model.ChangeNginx, Name: "a", Old: "2", Value: "2", Host: "here"}, "", ""},
	} {
		command, then := findSetting(model.Finding{}, model.Fix{Changes: []model.FixChange{c.change}}, model.Report{Hosts: hosts})
		if command != c.wantCommand || !strings.Contains(then, c.wantInText) {
			t.Errorf("%+v:\n%s\n%s", c.change, command, then)
		}
	}
}
