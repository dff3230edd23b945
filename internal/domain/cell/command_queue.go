package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
)

// CreateQueue makes a queue.
type CreateQueue struct {
	Queue placement.Queue // all but Created

	// Result: Queue as it is stored.
}

func (cmd *CreateQueue) decide(t *tx) error {
	q := &cmd.Queue
	if _, ok := t.c.placements.Queue(q.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: queue %s exists already", q.Name)
	}
	if n := t.c.placements.Queues.Len(); n >= t.c.config.QueuesMax {
		return domain.Refuse(domain.LimitExceeded, "%d queues exist; the limit is %d", n, t.c.config.QueuesMax)
	}
	if err := t.checkQueue(q); err != nil {
		return err
	}
	if err := t.checkDestinations(q); err != nil {
		return err
	}
	tags, err := t.tagged(QueueResource, nil, q.Tags)
	if err != nil {
		return err
	}
	q.Tags, q.Created = tags, t.now
	if q.Timeout == 0 {
		q.Timeout = defaultQueueTimeout
	}
	t.emit(&QueueChanged{*q})
	return nil
}

// defaultQueueTimeout is that of docs/spec/gamelift-api.md#queues.
const defaultQueueTimeout = 600 * time.Second

// checkQueue checks what a queue is to be; a zero timeout stands for the default.
func (t *tx) checkQueue(q *placement.Queue) error {
	if q.Timeout != 0 && (q.Timeout < 10*time.Second || q.Timeout > 600*time.Second) {
		return domain.Refuse(domain.Invalid, "TimeoutInSeconds: %d, want 10 to 600", int(q.Timeout/time.Second))
	}
	for i, p := range q.LatencyPolicies {
		if p.Cap <= 0 {
			return domain.Refuse(domain.Invalid, "PlayerLatencyPolicies[%d].MaximumIndividualPlayerLatencyMilliseconds: required, more than 0", i)
		}
	}
	seen := map[placement.Criterion]bool{}
	for i, by := range q.PriorityOrder {
		if seen[by] {
			return domain.Refuse(domain.Invalid, "PriorityConfiguration.PriorityOrder[%d]: named twice", i)
		}
		seen[by] = true
	}
	if seen[placement.ByLocation] && len(q.LocationOrder) == 0 {
		return domain.Refuse(domain.Invalid, "PriorityConfiguration.LocationOrder: required, because PriorityOrder names LOCATION")
	}
	return distinct("PriorityConfiguration.LocationOrder", q.LocationOrder)
}

// checkDestinations checks those that are given now. One that was given before may be gone: the queue passes it over.
func (t *tx) checkDestinations(q *placement.Queue) error {
	if n, most := len(q.Destinations), t.c.config.DestinationsInQueueMax; n > most {
		return domain.Refuse(domain.LimitExceeded, "Destinations: %d destinations; the limit is %d", n, most)
	}
	var first *fleet.Fleet
	for i, arn := range q.Destinations {
		d := t.c.destination(i, arn)
		if d.Problem == placement.NoSuchFleet {
			return domain.Refuse(domain.NotFound, "Destinations[%d].DestinationArn: %s", i, d.Detail)
		}
		r, ok := t.c.fleets.Fleet(d.Fleet)
		if !ok {
			continue // a terminal alias
		}
		switch f := t.c.fleets.Fleets.Get(r); {
		case first == nil:
			first = f
		case f.CertificateType != first.CertificateType:
			return domain.Refuse(domain.Invalid, "Destinations[%d].DestinationArn: fleet %s has the certificate configuration %s, fleet %s before it %s; a queue cannot have both",
				i, f.ID, f.CertificateType, first.ID, first.CertificateType)
		}
	}
	return nil
}

func distinct(field string, names []string) error {
	seen := map[string]bool{}
	for i, name := range names {
		if seen[name] {
			return domain.Refuse(domain.Invalid, "%s[%d]: %s is named twice", field, i, name)
		}
		seen[name] = true
	}
	return nil
}

// UpdateQueue changes what is given and keeps the rest. Lists are replaced as a whole.
type UpdateQueue struct {
	Name               string
	Timeout            *time.Duration
	Destinations       *[]string
	LatencyPolicies    *[]placement.LatencyPolicy
	AllowedLocations   *[]string
	PriorityOrder      *[]placement.Criterion
	LocationOrder      *[]string
	CustomEventData    *string
	NotificationTarget *string

	// Result
	Queue placement.Queue
}

func (cmd *UpdateQueue) decide(t *tx) error {
	r, ok := t.c.placements.Queue(cmd.Name)
	if !ok {
		return domain.Refuse(domain.NotFound, "queue %s not found", cmd.Name)
	}
	q := *t.c.placements.Queues.Get(r)
	set(&q.Timeout, cmd.Timeout)
	set(&q.Destinations, cmd.Destinations)
	set(&q.LatencyPolicies, cmd.LatencyPolicies)
	set(&q.AllowedLocations, cmd.AllowedLocations)
	set(&q.PriorityOrder, cmd.PriorityOrder)
	set(&q.LocationOrder, cmd.LocationOrder)
	set(&q.CustomEventData, cmd.CustomEventData)
	set(&q.NotificationTarget, cmd.NotificationTarget)
	if err := t.checkQueue(&q); err != nil {
		return err
	}
	if cmd.Destinations != nil {
		if err := t.checkDestinations(&q); err != nil {
			return err
		}
	}
	t.emit(&QueueChanged{q})
	t.c.replan(q.Name, t.now)
	cmd.Queue = q
	return nil
}

// DeleteQueue removes a queue; its pending placements fail.
type DeleteQueue struct{ Name string }

func (cmd *DeleteQueue) decide(t *tx) error {
	if _, ok := t.c.placements.Queue(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "queue %s not found", cmd.Name)
	}
	var pending []placement.Ref
	t.c.placements.PendingIn(cmd.Name, func(r placement.Ref, _ *placement.Placement) bool {
		pending = append(pending, r)
		return true
	})
	for _, r := range pending {
		t.endPlacement(r, placement.Failed)
	}
	t.emit(&QueueRemoved{cmd.Name})
	return nil
}
