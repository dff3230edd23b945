package console

import (
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// fleetsPage is how many fleets a page shows.
const fleetsPage = 100

type fleetRow struct {
	fleet.Fleet
	Runs hosting.Utilization
}

// Kind is what the API calls the compute type.
func (f *fleetRow) Kind() string {
	if f.Managed != nil {
		return "managed"
	}
	return "Anywhere"
}

type fleetList struct {
	Fleets []fleetRow
	Next   string // URL of the next page; empty: this is the last one
}

func (d *Door) fleets(r *http.Request) (*content, error) {
	var x fleetList
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		after := domain.Time(0)
		id := r.URL.Query().Get("after")
		if f, ok := v.Fleet(id); ok {
			after = f.Created
		} else {
			id = ""
		}
		all := v.Fleets(after, id, fleetsPage+1)
		if len(all) > fleetsPage {
			all = all[:fleetsPage]
			x.Next = Prefix + "/fleets?after=" + all[fleetsPage-1].ID
		}
		for _, f := range all {
			x.Fleets = append(x.Fleets, fleetRow{f, v.Utilization(f.ID, "")})
		}
		return nil
	})
	return &content{Title: "Fleets", Section: "fleets", page: "fleets", Data: &x, Command: "aws gamelift list-fleets"}, err
}

// What the page of a fleet shows at most.
const (
	fleetComputes  = 200
	fleetProcesses = 500
	fleetEvents    = 100
)

type fleetPage struct {
	fleetRow
	Places    []place
	Computes  []fleet.Compute
	Processes []fleet.Process
	Events    []fleet.Event
	Partly    bool // there are more computes or processes
}

type place struct {
	hosting.PlaceCounts
	Status fleet.Status
	Why    string // no server process is free there; empty: one is
}

func (d *Door) fleet(r *http.Request) (*content, error) {
	id := r.PathValue("id")
	var x fleetPage
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		f, ok := v.Fleet(id)
		if !ok {
			return domain.Refuse(domain.NotFound, "There is no fleet %.100q.", id)
		}
		x.fleetRow = fleetRow{f, v.Utilization(id, "")}
		for _, p := range v.Places(id) {
			status, _ := f.HasLocation(p.Location)
			x.Places = append(x.Places, place{p, status, v.WhyNoProcess(id, p.Location)})
		}
		x.Computes = v.Computes(id, "", 0, "", fleetComputes+1)
		if x.Partly = len(x.Computes) > fleetComputes; x.Partly {
			x.Computes = x.Computes[:fleetComputes]
		}
		for _, c := range x.Computes {
			on := v.ProcessesOn(id, c.Name)
			if room := fleetProcesses - len(x.Processes); len(on) > room {
				on, x.Partly = on[:room], true
			}
			x.Processes = append(x.Processes, on...)
		}
		x.Events = v.FleetEvents(id, 0, 0, 0, fleetEvents)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &content{Title: x.Name, Section: "fleets", page: "fleet", Data: &x, Command: "muster explain fleet " + id}, nil
}
