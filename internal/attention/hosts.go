package attention

import (
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	records "github.com/musterhq/muster/internal/domain/hosts"
)

// hosts are those whose agents are silent.
func hosts(v *cell.View) (all []Item) {
	for _, h := range v.Hosts() {
		if silent(&h) {
			why, next := SilentHost(&h)
			all = append(all, Item{"Host " + h.Name + " " + why, next, "host", h.ID})
		}
	}
	return all
}

func silent(h *records.Host) bool { return h.Revoked == 0 && h.Seen != 0 && h.Silent() }

// SilentHost says in words since when a silent host is silent, and what to do.
func SilentHost(h *records.Host) (why, next string) {
	return "has been silent since " + h.Seen.Std().UTC().Format(time.DateTime) + " UTC: its agent is not connected.",
		"Check the machine, its network and the log of muster agent there. muster hosts revoke " + h.ID + " removes it permanently."
}

// SilentCompute says why a compute of a silent host takes no game sessions; empty if its host is not silent or it has none.
func SilentCompute(v *cell.View, fleetID, compute string) (why, next string) {
	for _, h := range v.Hosts() {
		if !silent(&h) {
			continue
		}
		if at, name, ok := v.Serves(h.ID); ok && at == fleetID && name == compute {
			why, next = SilentHost(&h)
			return "Its host " + why, next
		}
	}
	return "", ""
}
