package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

func (w *Wishes) queueName() string { return fmt.Sprint("queue-", w.chance.IntN(2)) }

// destinations returns the fleets and aliases in random order, and now and then one that will be deleted before its use.
func (w *Wishes) destinations(v *cell.View) (arns []string) {
	if aliases := w.aliases(v); len(aliases) > 0 && !w.oneIn(3) {
		arns = aliases
		if w.oneIn(2) {
			return arns
		}
	}
	for _, f := range v.Fleets(0, "", 100) {
		arns = append(arns, "arn:aws:gamelift:us-east-1:1:fleet/"+f.ID)
	}
	w.chance.Shuffle(len(arns), func(i, j int) { arns[i], arns[j] = arns[j], arns[i] })
	return arns
}

func createQueue(w *Wishes, v *cell.View) kernel.Command {
	q := placement.Queue{
		Name: w.queueName(), Region: "us-east-1", Account: "1", Destinations: w.destinations(v),
		Timeout: time.Duration(10+w.chance.IntN(60)) * time.Second,
	}
	if w.oneIn(2) {
		q.LatencyPolicies = []placement.LatencyPolicy{{Cap: 50, Duration: time.Duration(1+w.chance.IntN(20)) * time.Second}, {Cap: 90}}
	}
	if w.oneIn(3) {
		q.PriorityOrder, q.LocationOrder = []placement.Criterion{placement.ByLocation}, []string{"custom-1", "custom-0"}
	}
	if w.oneIn(4) {
		q.AllowedLocations = []string{w.locationName(), "custom-0"}
	}
	if w.oneIn(2) {
		q.NotificationTarget, q.CustomEventData = topics[w.chance.IntN(len(topics))], "green"
	}
	return &hosting.CreateQueue{Queue: q}
}

func updateQueue(w *Wishes, v *cell.View) kernel.Command {
	arns := w.destinations(v)
	cmd := &hosting.UpdateQueue{Name: w.queueName(), Destinations: &arns}
	if w.oneIn(2) {
		target, data := topics[w.chance.IntN(len(topics))], fmt.Sprint("blue-", w.number())
		cmd.NotificationTarget, cmd.CustomEventData = &target, &data
	}
	return cmd
}

func deleteQueue(w *Wishes, _ *cell.View) kernel.Command {
	if !w.oneIn(4) {
		return nil
	}
	return &hosting.DeleteQueue{Name: w.queueName()}
}

// placementID returns a new id most of the time, else a used one.
func (w *Wishes) placementID() string {
	if w.oneIn(6) {
		return fmt.Sprint("placement-", w.chance.IntN(int(1+w.made/50)))
	}
	return fmt.Sprint("placement-", w.number())
}

func startPlacement(w *Wishes, _ *cell.View) kernel.Command {
	p := placement.Placement{ID: w.placementID(), Queue: w.queueName(), PlayersMax: int32(w.chance.IntN(4)), Name: "placed"}
	for i := range w.chance.IntN(int(p.PlayersMax) + 1) {
		p.Players = append(p.Players, placement.Player{Player: fmt.Sprint("player-", i), ID: domain.PlayerSessionID(w.uuid())})
	}
	switch w.chance.IntN(4) {
	case 0:
		for i := range 3 {
			p.Latencies = append(p.Latencies, placement.Latency{Player: "player-0", Location: fmt.Sprint("custom-", i), Milliseconds: float32(w.chance.IntN(120))})
		}
	case 1:
		p.Override = &placement.Override{Locations: []string{w.locationName()}, Only: w.oneIn(2)}
	}
	return &hosting.StartPlacement{Placement: p}
}

func stopPlacement(w *Wishes, _ *cell.View) kernel.Command {
	return &hosting.StopPlacement{ID: fmt.Sprint("placement-", w.chance.IntN(int(1+w.made)))}
}

// knownPlacement is the acknowledged state of a placement.
type knownPlacement struct {
	ended placement.Status // 0: pending in all answers so far
	game  string           // of its game session, if fulfilled
}

// toldPlacement records a placement that a client received.
func (k *known) toldPlacement(w *World, p placement.Placement) {
	old := k.placements[p.ID]
	if old == nil {
		old = &knownPlacement{}
		k.placements[p.ID] = old
		k.placementOrder = append(k.placementOrder, p.ID)
	}
	if err := old.mayBe(&p); err != nil {
		w.violated("%s: %v", p.ID, err)
	}
	if p.Status != placement.Pending {
		old.ended, old.game = p.Status, p.Game
	}
}

// mayBe checks that the known state may have become p: a placement ends once.
func (k *knownPlacement) mayBe(p *placement.Placement) error {
	if k.ended != 0 && (p.Status != k.ended || p.Game != k.game) {
		return fmt.Errorf("it ended %s with %q, is %s with %q", k.ended, k.game, p.Status, p.Game)
	}
	return nil
}

// checkPlacements compares placements with their game sessions, and every acknowledged one with memory and archive.
func (w *World) checkPlacements() {
	v := w.node.seq.Cell().View()
	live := map[string]int{}
	for _, id := range w.known.fleetsEver {
		games, _, _ := v.GameSessions(id, hosting.GameFilter{}, 0, "", 1<<20)
		for _, g := range games {
			if !g.Live() || g.Placement == "" {
				continue
			}
			live[g.Placement]++
			p, ok := v.Placement(g.Placement)
			switch {
			case live[g.Placement] > 1:
				w.violated("%s has two live game sessions, one is %s", g.Placement, g.ID)
			case ok && p.Status == placement.Pending && p.Game != string(g.ID):
				w.violated("%s waits for %q, but %s is live for it", p.ID, p.Game, g.ID)
			case ok && p.Status != placement.Pending && p.Status != placement.Fulfilled && g.Status == session.Active:
				w.violated("%s is %s, but %s is ACTIVE", p.ID, p.Status, g.ID)
			}
		}
	}
	for _, id := range w.known.placementOrder {
		p, ok := v.Placement(id)
		if !ok {
			data := w.archived(w.node.archive, archive.Placement, id)
			if data == nil {
				w.violated("%s is gone", id)
			}
			var err error
			if p, err = hosting.DecodePlacement(data); err != nil {
				w.violated("archive: %s: %v", id, err)
			}
		}
		if err := w.known.placements[id].mayBe(&p); err != nil {
			w.violated("%s: %v", id, err)
		}
		if p.Status == placement.Pending && p.Game != "" {
			if g, ok := v.GameSession(session.ID(p.Game)); !ok || g.Status != session.Activating {
				w.violated("%s waits for %s, which is %s", id, p.Game, g.Status)
			}
		}
	}
}

// noPlacementIsLate is checked directly after a tick had nothing left to do: no placement waits beyond its timeout, or while a suitable
// process is free.
func (w *World) noPlacementIsLate() {
	v := w.node.seq.Cell().View()
	for _, id := range w.known.placementOrder {
		p, ok := v.Placement(id)
		if !ok || p.Status != placement.Pending {
			continue
		}
		if p.TimeoutAt <= w.time() {
			w.violated("%s is pending past its timeout at %v", id, p.TimeoutAt)
		}
		if p.Game != "" {
			continue
		}
		for _, c := range v.Choices(id, w.time()) {
			if c.Outcome == placement.NoFreeProcess && c.Free > 0 {
				w.violated("%s waits, and %d processes are free in %s of %s", id, c.Free, c.Location, c.Fleet)
			}
		}
	}
}
