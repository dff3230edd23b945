package console

import (
	"cmp"
	"net/http"
	"net/url"

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

var fleetList = list[fleetRow]{
	name: "fleets", label: "Fleets", most: fleetsPage, empty: "There is no fleet.",
	columns: []column[fleetRow]{
		{name: "name", head: "Name", value: func(f *fleetRow) value { return linked(cmp.Or(f.Name, f.ID), "fleets/"+escaped(f.ID)) }},
		{name: "id", head: "Id", hidden: true, value: func(f *fleetRow) value { return code(f.ID) }},
		{name: "status", head: "Status", value: func(f *fleetRow) value { return state(f.Status.String()) }},
		{name: "kind", head: "Kind", value: func(f *fleetRow) value { return words(f.Kind()) }},
		{name: "build", head: "Build", hidden: true, value: func(f *fleetRow) value {
			if f.Managed == nil {
				return words("")
			}
			return linked(f.Managed.Build, "builds/"+escaped(f.Managed.Build))
		}},
		{name: "description", head: "Description", hidden: true, value: func(f *fleetRow) value { return words(f.Description) }},
		{name: "locations", head: "Locations", hidden: true, value: func(f *fleetRow) value {
			var all []string
			for _, l := range f.Locations {
				all = append(all, l.Name)
			}
			return several(all)
		}},
		{name: "computes", head: "Computes", value: func(f *fleetRow) value { return number(f.Runs.Computes) }},
		{name: "processes", head: "Processes", value: func(f *fleetRow) value { return number(f.Runs.Processes) }},
		{name: "free", head: "Free", value: func(f *fleetRow) value { return number(f.Runs.IdleProcesses) }},
		{name: "game-sessions", head: "Game sessions", value: func(f *fleetRow) value { return number(f.Runs.GameSessions) }},
		{name: "players", head: "Players", value: func(f *fleetRow) value { return number(f.Runs.PlayersActive) }},
		{name: "reserved", head: "Reserved", hidden: true, value: func(f *fleetRow) value { return number(f.Runs.PlayersReserved) }},
		{name: "created", head: "Created", value: func(f *fleetRow) value { return instant(f.Created) }},
	},
	id: func(f *fleetRow) string { return f.ID },
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleetRow, next url.Values, err error) {
		from := place(query)
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			all, next = fleetsInUse(v, v.Fleets(from.Created, from.ID, most+1), most)
			return nil
		})
		return all, next, err
	},
}

// fleetsInUse is cut for fleets, with their use.
func fleetsInUse(v *cell.View, some []fleet.Fleet, most int) (all []fleetRow, next url.Values) {
	page, next := cut(some, most, func(f *fleet.Fleet) url.Values { return since(f.Created, f.ID) })
	for _, f := range page {
		all = append(all, fleetRow{f, v.Utilization(f.ID, "")})
	}
	return all, next
}

// fleetRows is how many rows of each list the page of a fleet shows.
const fleetRows = 100

type fleetPage struct {
	fleetRow
	Places                      []fleetPlace
	Computes, Processes, Events *table
}

type fleetPlace struct {
	hosting.PlaceCounts
	Status fleet.Status
	Why    string // how many server processes are free there, and why the others are not
}

func (d *Door) fleet(r *http.Request) (*content, error) {
	id := r.PathValue("id")
	var x fleetPage
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		f, err := fleetNamed(v, id)
		if err != nil {
			return err
		}
		x.fleetRow = fleetRow{f, v.Utilization(id, "")}
		for _, p := range v.Places(id) {
			status, _ := f.HasLocation(p.Location)
			x.Places = append(x.Places, fleetPlace{p, status, hosting.Capacity(&p.Hosts, "in "+p.Location)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	path := Prefix + "/fleets/" + escaped(id)
	if x.Computes, err = computeList.beginning(d, r, path+"/computes"); err != nil {
		return nil, err
	}
	if x.Processes, err = processList.beginning(d, r, path+"/processes"); err != nil {
		return nil, err
	}
	if x.Events, err = eventList.beginning(d, r, path+"/events"); err != nil {
		return nil, err
	}
	return &content{Title: x.Name, Section: "fleets", page: "fleet", Data: &x, Command: "muster explain fleet " + id}, nil
}

func fleetNamed(v *cell.View, id string) (fleet.Fleet, error) {
	f, ok := v.Fleet(id)
	if !ok {
		return f, domain.Refuse(domain.NotFound, "There is no fleet %.100q.", id)
	}
	return f, nil
}

// inFleet makes the page of a list of what a fleet has. The command ends with the fleet's id.
func (d *Door) inFleet(title, command string) func(*http.Request, *table) (*content, error) {
	return func(r *http.Request, t *table) (*content, error) {
		id := r.PathValue("id")
		c := &content{Section: "fleets", page: "list-with-back", Command: command + shellWord(id)}
		return c, d.engine.Read(r.Context(), func(v *cell.View) error {
			f, err := fleetNamed(v, id)
			c.Title = title + " of " + cmp.Or(f.Name, id)
			c.Data = &listWithBack{t, link{"Fleet " + cmp.Or(f.Name, id), Prefix + "/fleets/" + escaped(id)}}
			return err
		})
	}
}

// listWithBack is the page of a list of what an object has.
type listWithBack struct {
	Table *table
	Back  link
}
