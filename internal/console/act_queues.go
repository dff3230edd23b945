package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/placement"
)

var queueActions = []*action{{
	name: "change-queue", text: "Change", done: "The queue is changed.", section: "queues", object: true, operation: "UpdateGameSessionQueue",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.readQueue(r.Context(), f.ID, func(q *placement.Queue) {
			f.Title = "Change queue " + q.Name
			f.Effect = "Waiting placements choose again. A queue without destinations is closed: its placements wait until they time out."
			f.Now = queueNow(q)
			f.Fields = []*field{
				{Name: "timeout", Label: "Time-out", Hint: "seconds that a placement waits, 10 to 600", Value: strconv.Itoa(int(q.Timeout / time.Second)), Required: true, Most: 10},
				{Name: "destinations", Label: "Destinations", Hint: "ARNs of fleets and aliases in the order of preference, each on a line", Kind: textLines, Value: strings.Join(q.Destinations, "\n"), Most: 8 << 10},
			}
		})
	},
	command: func(f *form) string {
		destinations := ""
		for arn := range strings.FieldsSeq(f.value("destinations")) {
			destinations += " DestinationArn=" + shellWord(arn)
		}
		if destinations == "" {
			destinations = " '[]'"
		}
		return terminal("aws gamelift update-game-session-queue", option{"--name", f.ID, ""}, option{"--timeout-in-seconds", f.value("timeout"), "SECONDS"}) + " --destinations" + destinations
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		d.changing.Lock()
		defer d.changing.Unlock()
		var now []string
		if err := d.readQueue(ctx, f.ID, func(q *placement.Queue) { f.Now, now = queueNow(q), q.Destinations }); err != nil {
			return "", err
		}
		f.stale()
		input := map[string]any{"Name": f.ID, "TimeoutInSeconds": f.number("timeout", 10, 600)}
		arns := strings.Fields(f.value("destinations"))
		destinations := []map[string]string{}
		for _, arn := range arns {
			destinations = append(destinations, map[string]string{"DestinationArn": arn})
		}
		if !f.valid() {
			return "", nil
		}
		if !slices.Equal(arns, now) { // an unchanged list may name resources that no longer exist, which the service API refuses
			input["Destinations"] = destinations
		}
		_, err := d.perform(ctx, by, "UpdateGameSessionQueue", input)
		return "queues", err
	},
}, {
	name: "delete-queue", text: "Delete", done: "The queue is gone.", section: "queues", object: true, operation: "DeleteGameSessionQueue",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.readQueue(r.Context(), f.ID, func(q *placement.Queue) {
			f.Title, f.Confirm = "Delete queue "+q.Name, q.Name
			f.Effect = "Placements that wait in it fail, and new ones are refused. It cannot be undone."
		})
	},
	command: func(f *form) string {
		return terminal("aws gamelift delete-game-session-queue", option{"--name", f.ID, ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.perform(ctx, by, "DeleteGameSessionQueue", map[string]any{"Name": f.ID})
		return "queues", err
	},
}}

func (d *Door) readQueue(ctx context.Context, name string, look func(*placement.Queue)) error {
	return d.engine.Read(ctx, func(v *cell.View) error {
		q, ok := v.Queue(name)
		if !ok {
			return domain.Refuse(domain.NotFound, "There is no queue %.100q.", name)
		}
		look(&q)
		return nil
	})
}

// queueNow returns the part of a queue that a form replaces.
func queueNow(q *placement.Queue) string {
	if len(q.Destinations) == 0 {
		return "a time-out of " + q.Timeout.String() + " and no destination"
	}
	return "a time-out of " + q.Timeout.String() + " and the destinations\n" + strings.Join(q.Destinations, "\n")
}
