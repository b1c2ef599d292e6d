package change

import (
	"fmt"

	"plimsoll/internal/layout"
)

// Lasting says how a change survives a reboot: the file to put it into, and the
// line. ok is false when it lasts as it is (it stands in the service's own
// files), or when it has no usual place. A line stays one, whatever the value is.
func Lasting(c Change) (file, line string, ok bool) {
	c.Name, c.To = layout.Line(c.Name), layout.Line(c.To)
	switch c.Kind {
	case Sysctl:
		return "/etc/sysctl.d/90-plimsoll.conf", c.Name + " = " + c.To, true
	case Limit:
		name := map[string]string{"nofile": "LimitNOFILE", "nproc": "LimitNPROC", "memlock": "LimitMEMLOCK", "core": "LimitCORE", "as": "LimitAS"}[c.Name]
		if name == "" {
			return "", "", false
		}
		to := c.To
		if to == "unlimited" {
			to = "infinity"
		}
		return "the service's unit (systemctl edit)", fmt.Sprintf("[Service] %s=%s", name, to), true
	case Affinity:
		return "the service's unit (systemctl edit)", "[Service] CPUAffinity=" + c.To, true
	case Nice:
		return "the service's unit (systemctl edit)", "[Service] Nice=" + c.To, true
	case Policy:
		return "the service's unit (systemctl edit)", "[Service] CPUSchedulingPolicy=" + policies[atoi(c.To)], true
	case Quota:
		var quota, per float64
		if n, _ := fmt.Sscan(c.To, &quota, &per); n != 2 || per == 0 {
			return "the service's unit (systemctl edit)", "[Service] CPUQuota=", true
		}
		return "the service's unit (systemctl edit)", fmt.Sprintf("[Service] CPUQuota=%.0f%%", 100*quota/per), true
	case Backlog: // it was set on the open socket
		return "the service's own configuration (nginx: listen … backlog=N, PHP-FPM: listen.backlog = N, else its listen(2))",
			fmt.Sprintf("backlog of %s: %s", layout.Line(c.Listen), c.To), true
	case RPS, IRQ, TxQueue, Ring:
		return "what sets up the device at each start (a udev rule, a unit, the network's configuration)", c.String(), true
	}
	return "", "", false
}
