package console

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

var buildList = list[fleet.Build]{
	name: "builds", label: "Builds", most: 200,
	empty: "There are no builds. <code>muster build push DIRECTORY --name NAME --version VERSION</code> uploads one.",
	columns: []column[fleet.Build]{
		{name: "name", head: "Name", value: func(b *fleet.Build) value { return linked(cmp.Or(b.Name, b.ID), "builds/"+escaped(b.ID)) }},
		{name: "version", head: "Version", value: func(b *fleet.Build) value { return words(b.Version) }},
		{name: "id", head: "Id", value: func(b *fleet.Build) value { return code(b.ID) }},
		{name: "status", head: "Status", value: func(b *fleet.Build) value { return state(buildStatus(b)) }},
		{name: "failure", head: "Failure", value: func(b *fleet.Build) value { return words(b.Failure) }},
		{name: "system", head: "Operating system", value: func(b *fleet.Build) value { return words(b.OperatingSystem) }},
		{name: "sdk", head: "Server SDK", hidden: true, value: func(b *fleet.Build) value { return words(b.SDK) }},
		{name: "size", head: "Size in bytes", value: func(b *fleet.Build) value {
			if b.Size == 0 {
				return words("unknown")
			}
			return number(b.Size)
		}},
		{name: "storage", head: "Storage", hidden: true, value: func(b *fleet.Build) value { return words(buildStorage(b)) }},
		{name: "created", head: "Created", value: func(b *fleet.Build) value { return instant(b.Created) }},
	},
	id:     func(b *fleet.Build) string { return b.ID },
	offers: func(b *fleet.Build) []offered { return []offered{eventsOfRow("build", b.ID)} },
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleet.Build, next url.Values, err error) {
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			every := func(*fleet.Build) bool { return true }
			all, next = cut(v.Builds(place(query), most+1, every), most, func(b *fleet.Build) url.Values { return since(b.Created, b.ID) })
			return nil
		})
		return all, next, err
	},
}

// buildStatus returns the status in the API's spelling.
func buildStatus(b *fleet.Build) string {
	if b.Ready() {
		return "READY"
	}
	if b.Failure != "" {
		return "FAILED"
	}
	return "INITIALIZED"
}

// buildStorage describes where the files of a build are.
func buildStorage(b *fleet.Build) string {
	if b.Storage.Bucket == "" {
		return "Muster"
	}
	return "s3://" + b.Storage.Bucket + "/" + b.Storage.Key
}

// buildFleetList lists the fleets whose hosts run a build.
var buildFleetList = list[fleetRow]{
	name: "fleets-of-build", label: "Fleets that run it", most: fleetsPage, empty: "No fleet runs this build.", columns: fleetList.columns, id: fleetList.id,
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []fleetRow, next url.Values, err error) {
		from := place(query)
		err = d.engine.Read(r.Context(), func(v *cell.View) error {
			b, err := buildNamed(v, r.PathValue("id"))
			if err != nil {
				return err
			}
			all, next = fleetsInUse(v, v.FleetsOfBuild(b.ID, from.Created, from.ID, most+1), most)
			return nil
		})
		return all, next, err
	},
}

func buildNamed(v *cell.View, id string) (fleet.Build, error) {
	b, ok := v.Build(id)
	if !ok {
		return b, domain.Refuse(domain.NotFound, "There is no build %.100q.", id)
	}
	return b, nil
}

type buildPage struct {
	fleet.Build
	Status, Files, Bytes string
	Events               link
	Fleets               *table
}

// build returns the page of a build, with the fleets that run it.
func (d *Door) build(r *http.Request, t *table) (*content, error) {
	x := &buildPage{Fleets: t}
	err := d.engine.Read(r.Context(), func(v *cell.View) (err error) {
		x.Build, err = buildNamed(v, r.PathValue("id"))
		return err
	})
	if err != nil {
		return nil, err
	}
	x.Status, x.Files, x.Bytes, x.Events = buildStatus(&x.Build), buildStorage(&x.Build), "unknown", eventsLink("build", x.ID)
	if x.Size > 0 {
		x.Bytes = readable(float64(x.Size), "Bytes")
	}
	return &content{Title: "Build " + cmp.Or(x.Name, x.ID), Section: "builds", page: "build", Data: x, Command: "aws gamelift describe-build --build-id " + shellWord(x.ID)}, nil
}
