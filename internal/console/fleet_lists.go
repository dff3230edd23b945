package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

var computeList = list[fleet.Compute]{
	name: "computes", label: "Computes", most: fleetRows, empty: "No compute is registered.",
	columns: []column[fleet.Compute]{
		{name: "name", head: "Compute", value: func(c *fleet.Compute) value { return linked(c.Name, "compute/"+escaped(c.FleetID+"/"+c.Name)) }},
		{name: "location", head: "Location", value: func(c *fleet.Compute) value { return words(c.Location) }},
		{name: "address", head: "Address", value: func(c *fleet.Compute) value { return words(cmp.Or(c.DNSName, c.IPAddress)) }},
		{name: "processes", head: "Processes", value: func(c *fleet.Compute) value { return number(c.Processes) }},
		{name: "ready", head: "Ready", value: func(c *fleet.Compute) value { return number(c.Ready) }},
		{name: "hosting", head: "Hosting", value: func(c *fleet.Compute) value { return number(c.Hosting) }},
		{name: "processes-ever", head: "Processes ever", hidden: true, value: func(c *fleet.Compute) value { return number(c.ProcessesEver) }},
		{name: "created", head: "Registered", value: func(c *fleet.Compute) value { return instant(c.Created) }},
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleet.Compute, next url.Values, err error) {
		id, from := r.PathValue("id"), place(query)
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			if _, err := fleetNamed(v, id); err != nil {
				return err
			}
			all, next = cut(v.Computes(id, "", from.Created, from.ID, most+1), most, func(c *fleet.Compute) url.Values { return since(c.Created, c.Name) })
			return nil
		})
		return all, next, err
	},
}

var processList = list[fleet.Process]{
	name: "processes", label: "Server processes", most: fleetRows, empty: "No server process is connected.",
	columns: []column[fleet.Process]{
		{name: "process", head: "Process", value: func(p *fleet.Process) value {
			return shortened(p.Key.Process, p.Key.String(), "process/"+escaped(p.Key.String()))
		}},
		{name: "compute", head: "Compute", value: func(p *fleet.Process) value { return words(p.Key.Compute) }},
		{name: "location", head: "Location", hidden: true, value: func(p *fleet.Process) value { return words(p.Location) }},
		{name: "state", head: "State", value: func(p *fleet.Process) value { return state(p.State.String()) }},
		{name: "connection", head: "Connection", value: func(p *fleet.Process) value {
			if !p.Linked {
				return state("disconnected")
			}
			return words("connected")
		}},
		{name: "health", head: "Health", value: func(p *fleet.Process) value { return words(p.Health.String()) }},
		{name: "port", head: "Port", value: func(p *fleet.Process) value { return number(p.Port) }},
		{name: "sdk", head: "SDK", value: func(p *fleet.Process) value { return words(p.SDK) }},
		{name: "tool", head: "Tool", hidden: true, value: func(p *fleet.Process) value { return words(p.Tool) }},
		{name: "log-paths", head: "Log paths", hidden: true, value: func(p *fleet.Process) value { return several(p.LogPaths) }},
		{name: "connected", head: "Connected", value: func(p *fleet.Process) value { return instant(p.Connected) }},
		{name: "ready", head: "Ready", hidden: true, value: func(p *fleet.Process) value { return instant(p.Ready) }},
	},
	offers: func(p *fleet.Process) []offered { return []offered{{link: outputLink(p.Key.String())}} },
	// A page ends behind a compute, so it may have more rows than it wants (as many as limit-processes-per-compute), or fewer although there are more.
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleet.Process, next url.Values, err error) {
		id, from := r.PathValue("id"), place(query)
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			if _, err := fleetNamed(v, id); err != nil {
				return err
			}
			computes := v.Computes(id, "", from.Created, from.ID, processComputes+1)
			for i := range computes {
				if len(all) >= most || i == processComputes {
					next = since(from.Created, from.ID)
					break
				}
				from = catalog.Place{Created: computes[i].Created, ID: computes[i].Name}
				all = append(all, v.ProcessesOn(id, computes[i].Name)...)
			}
			return nil
		})
		return all, next, err
	},
}

// processComputes is how many computes one read looks at for their server processes: others of a large fleet may have none.
const processComputes = 1000

var eventList = list[fleet.Event]{
	name: "fleet-events", label: "Events", most: fleetRows, empty: "No event is kept.",
	columns: []column[fleet.Event]{
		{name: "at", head: "At", value: func(e *fleet.Event) value { return instant(e.At) }},
		{name: "code", head: "Code", value: func(e *fleet.Event) value { return code(e.Code) }},
		{name: "times", head: "Times", value: func(e *fleet.Event) value { return number(e.Times()) }},
		{name: "message", head: "Message", value: func(e *fleet.Event) value { return words(e.Message) }},
		{name: "players", head: "Players who lost their game", hidden: true, value: func(e *fleet.Event) value { return number(e.Players) }},
		{name: "id", head: "Id", hidden: true, value: func(e *fleet.Event) value { return code(e.ID.String()) }},
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleet.Event, next url.Values, err error) {
		id := r.PathValue("id")
		below, _ := strconv.ParseUint(query.Get("below"), 10, 64) // something else begins with the last event
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			if _, err := fleetNamed(v, id); err != nil {
				return err
			}
			all, next = cut(v.FleetEvents(id, 0, 0, below, most+1), most, func(e *fleet.Event) url.Values { return url.Values{"below": {strconv.FormatUint(e.No, 10)}} })
			return nil
		})
		return all, next, err
	},
}
