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
		{model.FixChange{Kind: model.ChangeNginx, Name: "worker_connections", Value: "2", Host: "web"}, "grep -rnE worker_connections /proc/71/root/etc/nginx", "in that container (docker exec, kubectl exec): 1) `cp -iL FILE"},
		{model.FixChange{Kind: model.ChangeNginx, Name: "a'; reboot", Value: "2", Host: "here"}, `nginx -T | grep -nE '^# conf|a'\''; reboot'`, "3) `nginx -t && nginx -s reload"},
		{model.FixChange{Kind: model.ChangeNginx, Name: "a", Value: "2", Host: "odd"}, "nginx -T | grep -nE '^# conf|a'", "3) `nginx -t"},
		{model.FixChange{Kind: model.ChangePHPFPM, Name: "pm.max_children", Value: "2", Host: "far"}, `grep -rnE '^[; ]*pm\.' /proc/8/root/etc /proc/8/root/usr/local/etc`, "in that container (docker exec, kubectl exec): 1) `cp -iL FILE"},
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

// What shows something only while requests come is typed while they do; what stands in a file or is a process or a listener is there at any time.
func TestWhatNeedsTheLoad(t *testing.T) {
	own := model.Report{Plan: model.Plan{Mode: "run", Load: &model.LoadPlan{DurationMS: 6000}, CommandLine: []string{"plimsoll", "run", "http://a/", "-d", "6s"}}}
	long := own
	long.Plan.Load = &model.LoadPlan{DurationMS: 60_000}
	kept, foreign := &sheet{kept: "last"}, &sheet{}
	for _, c := range []struct {
		s             *sheet
		r             model.Report
		command, want string
	}{
		{kept, own, "plimsoll trace offcpu -d 10s", "in terminal 2, where the load ran: `plimsoll again last -d 60s`"},
		{kept, long, "lslocks -u | grep -F /a", "in terminal 2, where the load ran: `plimsoll again last`"},
		{foreign, own, "ip netns exec a ss -tnp dst 10.0.0.1:1", "in terminal 2, where the load ran: the same command again with -d 60s"},
		{foreign, long, "pidstat -d 5 1", "in terminal 2, where the load ran: the same command again"},
		{kept, model.Report{}, "top -b -d 3 -n 2", "look while users are active: it shows nothing without them"},
		{kept, own, "cat /proc/7/stack", "in terminal 2, where the load ran: `plimsoll again last -d 60s`"},
		{kept, own, "ss -ltnp sport = :80", ""},
		{kept, own, "ps -o pid,unit,args -C java", ""},
		{kept, own, "nginx -T | grep limit_req", ""},
		{kept, own, "cat /proc/7/cmdline", ""},
	} {
		if got := c.s.loaded(c.command, c.r); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}
