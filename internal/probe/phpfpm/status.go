package phpfpm

import (
	"encoding/json"
	"fmt"
)

// status is what a pool's status page says (sapi/fpm/fpm/fpm_status.c). A field
// that the page does not have is nil.
type status struct {
	Pool               string   `json:"pool"`
	AcceptedConn       *float64 `json:"accepted conn"`
	ListenQueue        *float64 `json:"listen queue"`
	MaxListenQueue     *float64 `json:"max listen queue"`
	ListenQueueLen     *float64 `json:"listen queue len"`
	IdleProcesses      *float64 `json:"idle processes"`
	ActiveProcesses    *float64 `json:"active processes"`
	TotalProcesses     *float64 `json:"total processes"`
	MaxActiveProcesses *float64 `json:"max active processes"`
	MaxChildrenReached *float64 `json:"max children reached"`
	SlowRequests       *float64 `json:"slow requests"`
}

// parseStatus reads the page in JSON.
func parseStatus(b []byte) (status, error) {
	var s status
	if err := json.Unmarshal(b, &s); err != nil {
		return status{}, fmt.Errorf("parse the status page: %w", err)
	}
	if s.Pool == "" || s.TotalProcesses == nil {
		return status{}, fmt.Errorf("parse the status page: want a pool with its processes, got %.60q", b)
	}
	return s, nil
}
