package console

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
)

var fleetActions = []*action{{
	name: "create-location", text: "Create location", done: "The location exists. Now create a fleet there.", section: "fleets", operation: "CreateLocation",
	prepare: func(_ *Door, _ *http.Request, f *form) error {
		f.Title, f.Effect = "Create a location", "A location is where you have machines, such as a data center. Fleets refer to it."
		f.Fields = []*field{{Name: "name", Label: "Location name", Hint: "begins with custom-, such as custom-berlin", Value: "custom-", Required: true, Most: 64}}
		return nil
	},
	command: func(f *form) string {
		return terminal("aws gamelift create-location", option{"--location-name", f.value("name"), "NAME"})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "CreateLocation", map[string]any{"LocationName": f.value("name")})
		return "do/create-fleet?locations=" + escaped(f.value("name")), err
	},
}, {
	name: "create-fleet", text: "Create Anywhere fleet", done: "The fleet exists. Now register a compute, from which a game server connects.", section: "fleets", operation: "CreateFleet",
	prepare: func(d *Door, r *http.Request, f *form) error {
		f.Title, f.Effect = "Create an Anywhere fleet", "Its computes are your own machines. It uses no resources while none is registered."
		where := &field{Name: "locations", Label: "Locations", Kind: manyOf, Required: true}
		f.Fields = []*field{
			{Name: "name", Label: "Fleet name", Required: true},
			{Name: "description", Label: "Description"},
			where,
		}
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			for _, l := range v.Locations("", choicesMax) {
				where.Choices = append(where.Choices, pick{l.Name, l.Name})
			}
			if len(where.Choices) == 1 {
				where.Values = []string{where.Choices[0].Value}
			}
			return nil
		})
	},
	command: func(f *form) string {
		locations := ""
		for _, name := range f.field("locations").Values {
			locations += " Location=" + shellWord(name)
		}
		if locations == "" {
			locations = " Location=NAME"
		}
		return terminal("aws gamelift create-fleet --compute-type ANYWHERE", option{"--name", f.value("name"), "NAME"}, option{"--description", f.value("description"), ""}) + " --locations" + locations
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		locations := []map[string]string{}
		for _, name := range f.field("locations").Values {
			locations = append(locations, map[string]string{"Location": name})
		}
		d.changing.Lock()
		defer d.changing.Unlock()
		if err := d.nameIsFree(ctx, f.value("name")); err != nil {
			return "", err
		}
		made, err := d.perform(ctx, by, "CreateFleet", map[string]any{
			"Name": f.value("name"), "Description": f.value("description"), "ComputeType": "ANYWHERE", "Locations": locations,
		})
		if err != nil {
			return "", err
		}
		attributes, _ := made["FleetAttributes"].(map[string]any)
		id, _ := attributes["FleetId"].(string)
		return "fleets/" + escaped(id), nil
	},
}}

// nameIsFree refuses the name of an existing fleet. The API allows it, but here it usually means that a form was sent twice.
func (d *Door) nameIsFree(ctx context.Context, name string) error {
	return d.engine.Read(ctx, func(v *cell.View) error {
		for _, f := range v.Fleets(0, "", v.Totals().Fleets) {
			if f.Name == name {
				return domain.Refuse(domain.Conflict, "Fleet name is %.200q, which fleet %s has; want another one. Was the form sent twice?", name, f.ID)
			}
		}
		return nil
	})
}
