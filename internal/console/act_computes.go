package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/plural"
)

var computeActions = []*action{{
	name: "register-compute", text: "Register compute", done: "The compute is registered. This page shows when a game server connects from it.", section: "fleets", object: true, operation: "RegisterCompute",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.engine.Read(r.Context(), func(v *cell.View) error {
			x, ok := v.Fleet(f.ID)
			if !ok {
				return domain.Refuse(domain.NotFound, "There is no fleet %.100q.", f.ID)
			}
			f.Title = "Register a compute in fleet " + x.Name
			f.Effect = "Game servers on that machine can then connect with the auth token of the compute."
			where := &field{Name: "location", Label: "Location", Kind: oneOf, Required: true}
			for _, l := range x.Locations {
				where.Choices = append(where.Choices, pick{l.Name, l.Name})
			}
			if len(where.Choices) > 0 {
				where.Value = where.Choices[0].Value
			}
			f.Fields = []*field{
				{Name: "name", Label: "Compute name", Hint: "of your choice, unique in the fleet", Required: true, Most: 128},
				{Name: "ip", Label: "IP address", Hint: "where players reach its game servers; this or a DNS name", Most: 128},
				{Name: "dns", Label: "DNS name", Most: 255},
				where,
			}
			return nil
		})
	},
	command: func(f *form) string {
		address := option{"--ip-address", f.value("ip"), "ADDRESS"}
		if f.value("dns") != "" {
			address.placeholder = ""
		}
		return terminal("aws gamelift register-compute", option{"--fleet-id", f.ID, ""}, option{"--compute-name", f.value("name"), "NAME"}, address,
			option{"--dns-name", f.value("dns"), ""}, option{"--location", f.value("location"), "LOCATION"})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		if f.value("ip") == "" && f.value("dns") == "" {
			f.field("ip").refuse("an address, or a DNS name below")
			return "", nil
		}
		_, err := d.perform(ctx, by, "RegisterCompute", map[string]any{
			"FleetId": f.ID, "ComputeName": f.value("name"), "IpAddress": f.value("ip"), "DnsName": f.value("dns"), "Location": f.value("location"),
		})
		return "compute/" + f.ID + "/" + escaped(f.value("name")), err
	},
}, {
	name: "deregister-compute", text: "Deregister compute", done: "The compute is gone.", section: "fleets", object: true, operation: "DeregisterCompute",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareCompute(r, f, func(c *fleet.Compute) error {
			f.Title, f.Confirm = "Deregister compute "+c.Name, c.Name
			f.Effect = "Its auth tokens become void, and its " + plural.Of(c.Processes, "server process", "server processes") + " and " + plural.Of(c.Hosting, "game session", "game sessions") +
				" end in the service. It cannot be undone."
			return nil
		})
	},
	command: func(f *form) string {
		id, name, _ := strings.Cut(f.ID, "/")
		return terminal("aws gamelift deregister-compute", option{"--fleet-id", id, ""}, option{"--compute-name", name, ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		id, name, _ := strings.Cut(f.ID, "/")
		_, err := d.perform(ctx, by, "DeregisterCompute", map[string]any{"FleetId": id, "ComputeName": name})
		return "fleets/" + id, err
	},
}, {
	name: "drain-compute", text: "Drain", done: "The compute is drained: it gets no new game sessions.", section: "fleets", object: true, operation: "TagResource",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareCompute(r, f, func(c *fleet.Compute) error {
			if c.Draining() {
				return domain.Refuse(domain.Invalid, "Compute %s is drained already.", c.Name)
			}
			f.Title, f.Effect = "Drain compute "+c.Name, "It gets no new game sessions. Now it hosts "+plural.Of(c.Hosting, "game session", "game sessions")+"."
			return nil
		})
	},
	command: func(f *form) string { return drainCommand(f, "") },
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "TagResource", map[string]any{"ResourceARN": computeARN(f), "Tags": []map[string]string{{"Key": fleet.DrainTag, "Value": "true"}}})
		return "compute/" + escaped(f.ID), err
	},
}, {
	name: "undo-drain-compute", text: "End drain", done: "The compute gets new game sessions again.", section: "fleets", object: true, operation: "UntagResource",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareCompute(r, f, func(c *fleet.Compute) error {
			if !c.Draining() {
				return domain.Refuse(domain.Invalid, "Compute %s is not drained.", c.Name)
			}
			f.Title, f.Effect = "End the drain of compute "+c.Name, "It gets new game sessions again."
			return nil
		})
	},
	command: func(f *form) string { return drainCommand(f, " --undo") },
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "UntagResource", map[string]any{"ResourceARN": computeARN(f), "TagKeys": []string{fleet.DrainTag}})
		return "compute/" + escaped(f.ID), err
	},
}}

// prepareCompute finds the compute of a form, whose id is FLEET/NAME.
func (d *Door) prepareCompute(r *http.Request, f *form, fill func(*fleet.Compute) error) error {
	return d.engine.Read(r.Context(), func(v *cell.View) error {
		id, name, _ := strings.Cut(f.ID, "/")
		c, ok := v.Compute(id, name)
		if !ok {
			return domain.Refuse(domain.NotFound, "There is no compute %.100q in fleet %.100q.", name, id)
		}
		return fill(&c)
	})
}

func drainCommand(f *form, undo string) string {
	id, name, _ := strings.Cut(f.ID, "/")
	return terminal("muster drain "+shellWord(name)+undo, option{"--fleet", id, ""})
}

// computeARN returns an ARN for the compute of a form as a resource with tags. Only its last parts count.
func computeARN(f *form) string { return "arn:aws:gamelift:::compute/" + f.ID }
