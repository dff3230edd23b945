package hosting

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// StartPlacement starts a placement in a queue. It neither waits for a free process nor is refused if there is none.
type StartPlacement struct {
	Placement placement.Placement // as requested: ID, Queue, PlayersMax, …, Players with the ids of their future player sessions

	kernel.ArchivedID `cbor:"-"`

	// Result: Placement, as stored, pending.
}

// Claimed returns the id, which the caller always chooses.
func (cmd *StartPlacement) Claimed() (kernel.ClaimKind, string) {
	return kernel.APlacement, cmd.Placement.ID
}

// Hold implements quota.Taker.
func (cmd *StartPlacement) Hold(h quota.Holder) { cmd.Placement.Holder = h }

func (cmd *StartPlacement) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	for i, x := range cmd.Placement.Players {
		if err := t.mayBeForeign("DesiredPlayerSessions", i, x.Player); err != nil {
			return err
		}
	}
	if err := cmd.check(t); err != nil {
		return err
	}
	if err := t.CheckPlacementRoom(&cmd.Placement); err != nil {
		return err
	}
	t.BeginPlacement(&cmd.Placement)
	return nil
}

// check completes the placement and refuses one that must not begin.
func (cmd *StartPlacement) check(t *Tx) error {
	p, c := &cmd.Placement, t.State
	r, ok := c.Placements.Queue(p.Queue)
	if !ok {
		return domain.Refuse(domain.NotFound, "queue %s not found", p.Queue)
	}
	q := c.Queue(r)
	if p.PlayersMax > c.Config.PlayersInGameMax {
		return domain.Refuse(domain.Invalid, "MaximumPlayerSessionCount: %d is more than %d", p.PlayersMax, c.Config.PlayersInGameMax)
	}
	if err := t.CheckProperties(p.Properties); err != nil {
		return err
	}
	if err := checkWishes(p, q); err != nil {
		return err
	}
	_, known := c.Placements.Placement(p.ID)
	switch {
	case known || cmd.Archived:
		return domain.Refuse(domain.TokenMismatch, "PlacementId: %s was used before", p.ID)
	case cmd.ArchivedAt != c.Forgotten():
		return domain.Refuse(domain.Stale, "the archive has grown since it was asked for placement %s", p.ID)
	}
	p.Region, p.Account, p.Status, p.Start = q.Region, q.Account, placement.Pending, t.Now
	p.TimeoutAt = t.Now.Add(q.Timeout)
	return nil
}

// placementBytesMax bounds the size of one placement, so that the ended placement fits into an archive record. Game session data of 262,144
// characters, of up to four bytes each, leaves room for players and latencies.
const placementBytesMax = 2 << 20

// CheckPlacementRoom bounds the space that placements with maximal data take in the journal and in memory.
func (t *Tx) CheckPlacementRoom(p *placement.Placement) error {
	bytes := p.Bytes()
	if bytes > placementBytesMax {
		return domain.Refuse(domain.Invalid, "GameSessionData, PlayerLatencies and DesiredPlayerSessions: %d bytes in all; want at most %d", bytes, placementBytesMax)
	}
	holder := t.HolderFor(p.Holder, p.Maker)
	if err := t.Placements.Held().Room(quota.Placements, holder, p.Maker, bytes, t.Config.PlacementBytesMax); err != nil {
		return err
	}
	if err := t.Quotas.Check(quota.Placements, t.Placements.Held(), holder, 1, 0); err != nil {
		return err
	}
	if err := t.Quotas.Check(quota.GameSessions, t.Sessions.GamesHeld(), holder, 1, 0); err != nil {
		return err
	}
	p.Holder = quota.Stored(holder, p.Maker)
	return nil
}

func checkWishes(p *placement.Placement, q *placement.Queue) error {
	if int32(len(p.Players)) > p.PlayersMax {
		return domain.Refuse(domain.Invalid, "DesiredPlayerSessions: %d players, but MaximumPlayerSessionCount is %d", len(p.Players), p.PlayersMax)
	}
	seen := make(map[string]bool, len(p.Players))
	for i, x := range p.Players {
		if seen[x.Player] {
			return domain.Refuse(domain.Invalid, "DesiredPlayerSessions[%d].PlayerId: %s is named twice", i, excerpt.Short(x.Player))
		}
		seen[x.Player] = true
	}
	for i, l := range p.Latencies {
		if l.Milliseconds < 0 {
			return domain.Refuse(domain.Invalid, "PlayerLatencies[%d].LatencyInMilliseconds: %g is less than 0", i, l.Milliseconds)
		}
	}
	o := p.Override
	switch {
	case o == nil:
		return nil
	case len(p.Latencies) > 0:
		return domain.Refuse(domain.Invalid, "PriorityConfigurationOverride: cannot be given together with PlayerLatencies")
	case len(q.PriorityOrder) == 0 || q.PriorityOrder[0] != placement.ByLocation:
		return domain.Refuse(domain.Invalid, "PriorityConfigurationOverride: queue %s does not have LOCATION first in its PriorityOrder", q.Name)
	case len(o.Locations) == 0:
		return domain.Refuse(domain.Invalid, "PriorityConfigurationOverride.LocationOrder: empty, want 1 to 10 locations")
	}
	return distinct("PriorityConfigurationOverride.LocationOrder", o.Locations)
}

// StopPlacement cancels a placement that has no game session yet.
type StopPlacement struct {
	ID string
	By domain.Maker

	// Result
	Placement placement.Placement
}

func (cmd *StopPlacement) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Placements.Placement(cmd.ID)
	if !ok || !cmd.By.MayTouch(t.Placement(r).Maker) {
		return domain.Refuse(domain.NotFound, "placement %s not found", cmd.ID)
	}
	switch p := t.Placement(r); {
	case p.Status != placement.Pending:
		return domain.Refuse(domain.Invalid, "placement %s is %s; only a PENDING one can be stopped", p.ID, p.Status)
	case p.Game != "":
		return domain.Refuse(domain.Invalid, "placement %s has a game session already: %s", p.ID, p.Game)
	}
	t.endPlacement(r, placement.Cancelled)
	cmd.Placement = *t.Placement(r)
	return nil
}

// endPlacement ends a pending placement without success. A game session that is ACTIVATING for it also ends, because it would occupy a process
// without a caller.
func (t *Tx) endPlacement(r placement.Ref, status placement.Status) {
	p := t.Placement(r)
	id, game := p.ID, session.ID(p.Game)
	t.finishPlacement(id, status, t.passedOver(r))
	if g, ok := t.Sessions.Game(game); ok && game != "" {
		if x := t.Game(g); x.Live() && x.Placement == id {
			process := fleet.ProcessRef(x.Process)
			t.endGame(g, session.NoReason, session.EndedWithPlacement)
			t.askTermination(process, fleet.EndedActivationLate)
		}
	}
}

// passedOver explains why a placement ends without a game session.
func (t *Tx) passedOver(r placement.Ref) []placement.Try {
	p := t.Placement(r)
	if p.Game != "" {
		return nil
	}
	best, passed := t.candidates(r, t.Now)
	for _, c := range best {
		passed = append(passed, t.noneFree(c.Place, t.Now))
	}
	const most = 24
	return passed[:min(most, len(passed))]
}

// noneFree reports that a place has no process for a placement, and why processes that look free are not.
func (c *State) noneFree(at placement.Place, now domain.Time) placement.Try {
	try := placement.Try{At: now, Fleet: at.Fleet, Location: at.Location, Outcome: placement.NoFreeProcess}
	if n := c.Fleets.HeldBack(at.Fleet, at.Location); n > 0 {
		try.Detail = fmt.Sprintf("%d idle processes are on computes with as many ACTIVATING game sessions as the fleet allows", n)
	}
	return try
}

// failPlacementOf ends the placement of a game session that is terminated before it became active.
func (t *Tx) failPlacementOf(g *session.GameSession) {
	if r, ok := t.pendingFor(g.Placement, g.ID); ok {
		t.finishPlacement(t.Placement(r).ID, placement.Failed, nil)
	}
}

// pendingFor finds the placement that waits for a game session to become active.
func (t *Tx) pendingFor(id string, game session.ID) (placement.Ref, bool) {
	if id == "" {
		return 0, false
	}
	r, ok := t.Placements.Placement(id)
	if !ok {
		return 0, false
	}
	p := t.Placement(r)
	return r, p.Status == placement.Pending && p.Game == string(game)
}

// placedGameEnded lets a placement try again after its game session ended before it was active.
func (t *Tx) placedGameEnded(id string, game session.ID) {
	if r, ok := t.pendingFor(id, game); ok {
		t.Emit(&PlacementRetried{id})
		t.dirty = append(t.dirty, r)
	}
}

// fulfilPlacement ends the placement that a newly active game session belongs to, if any, and reserves the seats of its players.
func (t *Tx) fulfilPlacement(game session.ID) {
	g, _ := t.Sessions.Game(game)
	r, ok := t.pendingFor(t.Game(g).Placement, game)
	if !ok {
		return
	}
	p := t.Placement(r)
	id, players, maker, holder := p.ID, p.Players, p.Maker, p.Holder
	var own time.Duration
	if t.hooks != nil {
		own = t.hooks.ReservationFor(id)
	}
	by := t.Contact.Add(cmp.Or(own, t.Config.Reservation))
	for _, x := range players {
		of := holder
		if x.Maker != 0 {
			of = 0
		}
		t.Emit(&PlayerReserved{PlayerSession: x.ID, GameSession: game, Player: x.Player, Data: x.Data, ReserveBy: by, Maker: cmp.Or(x.Maker, maker), Holder: of})
	}
	t.finishPlacement(id, placement.Fulfilled, nil)
	if t.hooks != nil {
		t.hooks.Placed(id, game)
	}
}

// Settle assigns capacity that a command has freed to waiting placements, and makes the first attempt for new placements. It runs at the end of each
// command, in the same transaction.
func (t *Tx) Settle() {
	for {
		if n := len(t.dirty); n > 0 {
			r := t.dirty[0]
			t.dirty = t.dirty[1:]
			// The same Tick may have placed it already: if the failed attempt ended a rollout, all placements choose again.
			if p := t.Placement(r); p.Status == placement.Pending && p.Game == "" {
				t.round(r)
			}
			continue
		}
		freed := slices.Clone(t.Fleets.TakeFreed())
		if len(freed) == 0 {
			return
		}
		for _, at := range freed {
			place := placement.Place(at)
			for r, ok := t.Placements.FirstWaiting(place); ok; r, ok = t.Placements.FirstWaiting(place) {
				if !t.place(r, place) {
					break
				}
			}
		}
	}
}

// Reset discards the pending work of Settle.
func (t *Tx) Reset() {
	t.dirty = t.dirty[:0]
	t.Fleets.TakeFreed()
}

// round tries every place that a placement may use now, best first. If none has a free process, the placement waits at all of them until its next
// latency cap applies.
func (t *Tx) round(r placement.Ref) {
	t.takeTurns(r)
	for {
		best, _ := t.candidates(r, t.Now)
		for _, c := range best {
			if t.place(r, c.Place) {
				return
			}
		}
		p := t.Placement(r)
		if o := p.Override; o != nil && !o.Only && !p.PassedOnce {
			t.Emit(&PlacementPassed{p.ID})
			continue // another round, now with the queue's other locations
		}
		places := make([]placement.Place, len(best))
		for i, c := range best {
			places[i] = c.Place
		}
		t.Placements.Wait(r, places)
		t.planRound(r, t.Now)
		return
	}
}

// place creates the game session of a placement on a free process at a place, if there is one.
func (t *Tx) place(r placement.Ref, at placement.Place) bool {
	process, ok := t.Fleets.PickIdle(at.Fleet, at.Location)
	if !ok {
		return false
	}
	in, _ := t.Fleets.Fleet(at.Fleet)
	f, p := t.fleet(in), t.Placement(r)
	t.Emit(&GameSessionCreated{
		ID: t.idOfAttempt(p, at), Process: t.Process(process).Key,
		Name: p.Name, Data: p.Data, MatchmakerData: p.MatchmakerData, Properties: p.Properties, PlayersMax: p.PlayersMax,
		FullProtection: f.FullProtection, ActivateBy: t.activateBy(f), Placement: p.ID,
	})
	return true
}

// idOfAttempt returns the id of a placement's game session at a place. It is derived from the placement's id, which an attempt there releases when
// it fails. If another game session has the id, because a caller of CreateGameSession chose the same name, the new one gets a generated id. See B213.
func (t *Tx) idOfAttempt(p *placement.Placement, at placement.Place) session.ID {
	id := session.MakeID(at.Fleet, at.Location, p.ID)
	if r, taken := t.Sessions.Game(id); taken {
		if g := t.Game(r); g.Placement != p.ID || g.Created < p.Start {
			return session.MakeID(at.Fleet, at.Location, session.NameID(t.NewID()).String())
		}
	}
	return id
}
