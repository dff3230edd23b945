package console

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
)

// hostsPage is how many hosts a page shows.
const hostsPage = 200

type hostRow struct {
	hosts.Host
	State  string
	Serves string // current fleet
}

var hostList = list[hostRow]{
	name: "hosts", label: "Hosts", most: hostsPage,
	empty: "No host has joined. <code>muster hosts join-token --location LOCATION</code> makes a token for <code>muster agent --join-token-file</code>.",
	columns: []column[hostRow]{
		{name: "name", head: "Host", value: func(h *hostRow) value { return words(h.Name) }},
		{name: "id", head: "Id", hidden: true, value: func(h *hostRow) value { return code(h.ID) }},
		{name: "state", head: "State", value: func(h *hostRow) value { return state(h.State) }},
		{name: "location", head: "Location", value: func(h *hostRow) value { return words(h.Location) }},
		{name: "serves", head: "Serves", value: func(h *hostRow) value { return linked(h.Serves, "fleets/"+escaped(h.Serves)) }},
		{name: "address", head: "Address", value: func(h *hostRow) value { return words(cmp.Or(h.DNS, h.IP)) }},
		{name: "ports", head: "Ports", value: func(h *hostRow) value { return number(h.Ports) }},
		{name: "memory", head: "Memory in MB", hidden: true, value: func(h *hostRow) value { return number(h.MemoryMB) }},
		{name: "agent", head: "Agent", value: func(h *hostRow) value { return words(h.Version) }},
		{name: "seen", head: "Seen", value: func(h *hostRow) value { return instant(h.Seen) }},
		{name: "joined", head: "Joined", value: func(h *hostRow) value { return instant(h.Joined) }},
		{name: "revoked", head: "Revoked", hidden: true, value: func(h *hostRow) value { return instant(h.Revoked) }},
	},
	id: func(h *hostRow) string { return h.ID },
	offers: func(h *hostRow) []offered {
		events := eventsOfRow("host", h.ID)
		switch {
		case h.State == "revoked":
			return []offered{events}
		case h.Drained:
			return []offered{events, {action: "undo-drain-host", id: h.ID}}
		}
		return []offered{events, {action: "drain-host", id: h.ID}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []hostRow, next url.Values, err error) {
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			page, behind := cut(v.HostsAfter(query.Get("after"), most+1), most, func(h *hosts.Host) url.Values { return after(h.ID) })
			for _, h := range page {
				serves, _, _ := v.Serves(h.ID)
				all = append(all, hostRow{h, v.HostState(&h), serves})
			}
			next = behind
			return nil
		})
		return all, next, err
	},
}
