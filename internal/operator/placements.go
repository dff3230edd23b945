package operator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

func (d *Door) explainPlacement(ctx context.Context, id string) (*Explanation, error) {
	p, err := d.engine.Placement(ctx, id)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: "placement", ID: p.ID, Status: p.Status.String()}
	x.fact("queue", p.Queue)
	x.fact("players", fmt.Sprintf("%d named, at most %d", len(p.Players), p.PlayersMax))
	x.fact("started", clock(p.Start))
	x.fact("times out", clock(p.TimeoutAt))
	if p.Status == placement.Pending {
		if err := d.waitingPlacement(ctx, x, &p); err != nil {
			return nil, err
		}
	}
	for _, turn := range p.Turns {
		of := "old"
		if turn.New {
			of = "new"
		}
		x.fact("rollout", "at alias "+turn.Alias+" its turn is the "+of+" fleet's")
	}
	x.fact("game session", p.Game)
	for i := range p.Tried {
		if t := &p.Tried[i]; t.Outcome != placement.Reserved && t.Outcome != placement.ActivationFailed {
			x.place(t, 0)
		}
	}
	game := session.GameSession{}
	if p.Game != "" {
		if game, err = d.engine.GameSession(ctx, session.ID(p.Game)); err != nil && !domain.IsRefused(err, domain.NotFound) {
			return nil, err
		}
	}
	placementMoments(x, &p, &game)
	x.Why = whyPlacement(x, &p, &game)
	if x.nowhere != "" {
		x.Why += " No place is open to it: " + x.nowhere
	}
	return x.sorted(), nil
}

// placementMoments adds the life of a placement and of its game session, if any.
func placementMoments(x *Explanation, p *placement.Placement, game *session.GameSession) {
	x.moment(p.Start, "STARTED", "in queue "+p.Queue)
	for i := range p.Tried {
		switch t := &p.Tried[i]; t.Outcome {
		case placement.Reserved:
			x.moment(t.At, t.Outcome.String(), processAt(t))
		case placement.ActivationFailed:
			x.moment(t.At, t.Outcome.String(), processAt(t)+" was given the game session, which did not become active")
		}
	}
	if p.Game != "" {
		gameMoments(x, game)
	}
	x.moment(p.End, p.Status.String(), "")
}

func processAt(t *placement.Try) string {
	return "process " + t.Process + " of fleet " + t.Fleet + " in " + t.Location
}

// waitingPlacement explains where a placement could go now, and why not to the other places.
func (d *Door) waitingPlacement(ctx context.Context, x *Explanation, p *placement.Placement) error {
	now := domain.TimeOf(d.engine.Now())
	return d.engine.Read(ctx, func(v *cell.View) error {
		if p.Game == "" {
			for _, c := range v.Choices(p.ID, now) {
				if c.Try.Outcome == placement.NoFreeProcess && c.Try.Detail == "" {
					c.Try.Detail = v.WhyNoProcess(c.Try.Fleet, c.Try.Location)
				}
				x.place(&c.Try, c.Free)
			}
		}
		q, ok := v.Queue(p.Queue)
		if ok {
			x.nowhere, x.Next = attention.Nowhere(v, &q, p, now)
		}
		if !ok || len(p.Latencies) == 0 || len(q.LatencyPolicies) == 0 {
			return nil
		}
		switch limit, until := q.Cap(now.Sub(p.Start)); {
		case limit == 0:
			x.fact("latency cap", "none now")
		case until == 0:
			x.fact("latency cap", strconv.Itoa(int(limit))+" ms")
		default:
			x.fact("latency cap", fmt.Sprintf("%d ms until %s", limit, clock(p.Start.Add(until))))
		}
		return nil
	})
}

func whyPlacement(x *Explanation, p *placement.Placement, game *session.GameSession) string {
	switch p.Status {
	case placement.Pending:
		switch {
		case p.Game != "":
			return "It waits for process " + game.ProcessID + " on compute " + game.ComputeName + " to activate its game session."
		case len(x.Places) == 0:
			return "It waits, and its queue has no destinations."
		default:
			return "It waits. Of the places in its queue: " + placesInWords(x.Places) + "."
		}
	case placement.Fulfilled:
		return fmt.Sprintf("It was fulfilled after %s, at attempt %d.", p.End.Sub(p.Start).Round(time.Millisecond), attempts(p))
	case placement.Cancelled:
		return "StopGameSessionPlacement stopped it."
	case placement.TimedOut:
		if p.Game != "" {
			return "It timed out before process " + game.ProcessID + " had activated its game session."
		}
		if len(x.Places) == 0 {
			return "It timed out: its queue had no destinations."
		}
		return "It timed out. Of the places in its queue at the end: " + placesInWords(x.Places) + "."
	default:
		if p.Game == "" || game.Cause == session.EndedWithPlacement {
			return "Its queue was deleted."
		}
		return "Its game session was ended before it was active."
	}
}

// attempts returns how many server processes got the game session, as far as attempts are stored.
func attempts(p *placement.Placement) (n int) {
	for _, t := range p.Tried {
		if t.Outcome == placement.Reserved || t.Outcome == placement.ActivationFailed {
			n++
		}
	}
	return n
}
