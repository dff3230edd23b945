package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/quota"
)

// CreateQueue creates a queue.
type CreateQueue struct {
	Queue placement.Queue // all but Created

	// Result: Queue, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateQueue) Hold(h quota.Holder) { cmd.Queue.Holder = h }

func (cmd *CreateQueue) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	q := &cmd.Queue
	if _, ok := t.Placements.Queue(q.Name); ok {
		return domain.Refuse(domain.Invalid, "Name: queue %s exists already", q.Name)
	}
	if n := t.Placements.Queues.Len(); n >= t.Config.QueuesMax {
		return domain.Refuse(domain.LimitExceeded, "%d queues exist; the limit is %d", n, t.Config.QueuesMax)
	}
	if err := t.Take(quota.Queues, t.Placements.QueuesHeld(), &q.Holder, t.Config.QueuesMax); err != nil {
		return err
	}
	if err := t.checkQueue(q); err != nil {
		return err
	}
	if err := t.checkDestinations(q); err != nil {
		return err
	}
	tags, err := t.Tagged(nil, nil, q.Tags)
	if err != nil {
		return err
	}
	q.Tags, q.Created = tags, t.Now
	t.Emit(&QueueChanged{*q})
	return nil
}

// Source: docs/spec/gamelift-api.md#queues.
const defaultQueueTimeout = 600 * time.Second

// checkQueue checks the settings of a queue and replaces a zero timeout with the default.
func (t *Tx) checkQueue(q *placement.Queue) error {
	if q.Timeout == 0 {
		q.Timeout = defaultQueueTimeout
	}
	if q.Timeout < 10*time.Second || q.Timeout > 600*time.Second {
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

// checkDestinations checks new destinations. Destinations that are already stored may be gone; the queue skips them.
func (t *Tx) checkDestinations(q *placement.Queue) error {
	if n, most := len(q.Destinations), t.Config.DestinationsInQueueMax; n > most {
		return domain.Refuse(domain.LimitExceeded, "Destinations: %d destinations; the limit is %d", n, most)
	}
	var first *fleet.Fleet
	for i, arn := range q.Destinations {
		d := t.destination(i, arn)
		if d.Problem == placement.NoSuchFleet {
			return domain.Refuse(domain.NotFound, "Destinations[%d].DestinationArn: %s", i, d.Detail)
		}
		r, ok := t.Fleets.Fleet(d.Fleet)
		if !ok {
			continue // a terminal alias
		}
		switch f := t.fleet(r); {
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

// UpdateQueue changes the given fields and keeps the others. Lists are replaced as a whole.
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

func (cmd *UpdateQueue) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Placements.Queue(cmd.Name)
	if !ok {
		return domain.Refuse(domain.NotFound, "queue %s not found", cmd.Name)
	}
	q := *t.Queue(r)
	kernel.Patch(&q.Timeout, cmd.Timeout)
	kernel.Patch(&q.Destinations, cmd.Destinations)
	kernel.Patch(&q.LatencyPolicies, cmd.LatencyPolicies)
	kernel.Patch(&q.AllowedLocations, cmd.AllowedLocations)
	kernel.Patch(&q.PriorityOrder, cmd.PriorityOrder)
	kernel.Patch(&q.LocationOrder, cmd.LocationOrder)
	kernel.Patch(&q.CustomEventData, cmd.CustomEventData)
	kernel.Patch(&q.NotificationTarget, cmd.NotificationTarget)
	if err := t.checkQueue(&q); err != nil {
		return err
	}
	if cmd.Destinations != nil {
		if err := t.checkDestinations(&q); err != nil {
			return err
		}
	}
	t.Emit(&QueueChanged{q})
	t.replan(q.Name, t.Now)
	cmd.Queue = q
	return nil
}

// DeleteQueue removes a queue; its pending placements fail. If there are many of them, it ends some, and its caller repeats it until none is left:
// the end of a placement may be that of a match with its tickets, and one journal entry cannot hold the ends of hundreds of thousands. Until then the
// queue takes new placements.
type DeleteQueue struct {
	Name string

	// Result
	Left bool // placements were still pending, so the queue is still there
}

// deleteStep is the most placements that one DeleteQueue ends.
const deleteStep = 1000

func (cmd *DeleteQueue) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.Placements.Queue(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "queue %s not found", cmd.Name)
	}
	var pending []placement.Ref
	t.Placements.PendingIn(cmd.Name, func(r placement.Ref, _ *placement.Placement) bool {
		cmd.Left = len(pending) == deleteStep
		if !cmd.Left {
			pending = append(pending, r)
		}
		return !cmd.Left
	})
	for _, r := range pending {
		t.endPlacement(r, placement.Failed)
	}
	if cmd.Left {
		return nil
	}
	t.Emit(&QueueRemoved{cmd.Name})
	return nil
}
