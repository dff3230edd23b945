package cell

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/sim/canon"
)

// checkState counts everything again, slowly, and compares the counts, the indexes and the deadlines with the result.
func checkState(c *Cell) error {
	return errors.Join(checkCounts(c), checkDepths(c), checkHosting(c), checkDeadlines(c), checkSearch(c), checkMatchmaking(c), checkAccess(c), checkHosts(c), checkPeople(c), checkLogins(c))
}

// checkLogins compares the number of players who are logged in with the players.
func checkLogins(c *Cell) error {
	n := 0
	for _, p := range c.playerflow.Flow.Players.All() {
		if p.Login() != 0 {
			n++
		}
	}
	if got := c.playerflow.Flow.LoggedIn(); got != n {
		return fmt.Errorf("%d players are logged in, counted %d", n, got)
	}
	return nil
}

func checkCounts(c *Cell) error {
	type at struct{ fleet, location string }
	var errs []error
	counts, idle := map[at]session.Counts{}, map[at]int{}
	for r, g := range c.hosting.Sessions.Games.All() {
		held, players, empty, reserved, active := int32(0), int32(0), int32(0), int32(0), int32(0)
		seats := map[session.SeatRef]uint16{}
		c.hosting.Sessions.PlayersIn(r, func(_ session.PlayerRef, p *session.PlayerSession) bool {
			players++
			switch p.Status {
			case session.Reserved:
				reserved++
			case session.PlayerActive:
				active++
			}
			if p.Status.Live() {
				seats[p.Seat]++
				if seat := c.hosting.Sessions.Seats.Get(p.Seat); seat.Game != r {
					errs = append(errs, fmt.Errorf("%s: its seat is of game %d", p.ID, seat.Game))
				}
			} else if p.Seat != 0 {
				errs = append(errs, fmt.Errorf("%s has ended and has a seat", p.ID))
			}
			return true
		})
		for seat, x := range c.hosting.Sessions.Seats.All() {
			if x.Game == r && x.Kept && x.Holders == 0 {
				empty++
				seats[seat] = 0
			}
		}
		for seat, holders := range seats {
			if x := c.hosting.Sessions.Seats.Get(seat); x.Holders != holders {
				errs = append(errs, fmt.Errorf("%s: a seat has %d holders, counted %d", g.ID, x.Holders, holders))
			}
		}
		held = int32(len(seats))
		if held != g.SeatsHeld || players != g.Players || empty != g.SeatsEmpty {
			errs = append(errs, fmt.Errorf("%s: %d seats held, %d of them empty, of %d players, counted %d, %d of %d", g.ID, g.SeatsHeld, g.SeatsEmpty, g.Players, held, empty, players))
		}
		n := counts[at{g.FleetID, g.Location}]
		if g.Live() {
			n.GameSessions++
			n.SeatsHeld += held
			n.SeatsEmpty += empty
			n.SeatsMax += g.PlayersMax
			switch g.Status {
			case session.Active:
				n.SeatsFree += max(0, g.PlayersMax-held)
			case session.Activating:
				n.Activating++
			case session.Terminating:
				n.Terminating++
			}
		}
		n.PlayersReserved += reserved
		n.PlayersActive += active
		counts[at{g.FleetID, g.Location}] = n
	}
	var allSessions session.Counts
	for place, want := range counts {
		allSessions.Add(&want)
		if got := c.hosting.Sessions.Utilization(place.fleet, place.location); got != want {
			errs = append(errs, fmt.Errorf("utilization of %v is %+v, counted %+v", place, got, want))
		}
	}
	if got := c.hosting.Sessions.AllCounts(); got != allSessions {
		errs = append(errs, fmt.Errorf("the counts of all sessions are %+v, counted %+v", got, allSessions))
	}
	type onCompute struct{ processes, ready, hosting int32 }
	computes, activating := map[fleet.ComputeRef]onCompute{}, map[fleet.ComputeRef]int32{}
	for _, p := range c.hosting.Fleets.Processes.All() {
		if p.Session != 0 && c.hosting.Sessions.Games.Get(session.GameRef(p.Session)).Status == session.Activating {
			activating[p.Compute]++
		}
	}
	full := func(r fleet.ComputeRef) bool {
		runtime := c.hosting.Fleets.Fleets.Get(c.hosting.Fleets.Computes.Get(r).Fleet).Runtime
		return runtime != nil && runtime.ActivationsMax > 0 && activating[r] >= runtime.ActivationsMax
	}
	heldBack := map[at]int{}
	sites, running, hosting := map[at]fleet.SiteCounts{}, map[at]int32{}, map[at]int32{}
	for _, p := range c.hosting.Fleets.Processes.All() {
		site := sites[at{p.Key.Fleet, p.Location}]
		if p.State == fleet.ProcessReady && p.Health == fleet.Healthy {
			site.Healthy++
		}
		sites[at{p.Key.Fleet, p.Location}] = site
		if p.State != fleet.Ended {
			running[at{p.Key.Fleet, p.Location}]++
			if p.Session != 0 && p.TerminateBy == 0 {
				hosting[at{p.Key.Fleet, p.Location}]++
			}
		}
		n := computes[p.Compute]
		if p.State != fleet.Ended {
			n.processes++
		}
		if p.State == fleet.ProcessReady {
			n.ready++
		}
		if p.Session != 0 {
			n.hosting++
		}
		computes[p.Compute] = n
		switch place := (at{p.Key.Fleet, p.Location}); {
		case !p.Eligible() || c.hosting.Fleets.Computes.Get(p.Compute).Draining():
		case full(p.Compute):
			heldBack[place]++
		default:
			idle[place]++
		}
	}
	for r, x := range c.hosting.Fleets.Computes.All() {
		if got := (onCompute{x.Processes, x.Ready, x.Hosting}); got != computes[r] {
			errs = append(errs, fmt.Errorf("compute %s counts %+v, counted %+v", x.Name, got, computes[r]))
		}
		place := at{x.FleetID, x.Location}
		n := sites[place]
		n.Computes++
		n.Processes += x.Ready
		if x.Ready > 0 {
			n.ComputesReady++
		}
		if x.Hosting > 0 {
			n.ComputesWithGame++
		}
		n.Idle = int32(idle[place])
		sites[place] = n
		if got, want := c.hosting.Fleets.HeldBack(place.fleet, place.location), heldBack[place]; got != want {
			errs = append(errs, fmt.Errorf("%v holds %d processes back, counted %d", place, got, want))
		}
		if got := c.hosting.Fleets.IdleCount(place.fleet, place.location); got != idle[place] {
			errs = append(errs, fmt.Errorf("%v has %d idle processes, counted %d", place, got, idle[place]))
		}
	}
	var all fleet.SiteCounts
	for place, want := range sites {
		got := c.hosting.Fleets.SiteCounts(place.fleet, place.location)
		all.Add(&got)
		if got.Computes != want.Computes || got.ComputesReady != want.ComputesReady || got.ComputesWithGame != want.ComputesWithGame || got.Processes != want.Processes ||
			got.Healthy != want.Healthy || got.Idle != want.Idle {
			errs = append(errs, fmt.Errorf("%v has %+v, counted %+v", place, got, want))
		}
		free := int32(idle[place] + heldBack[place])
		if got.Running() != running[place] || got.Of(fleet.Hosting) != hosting[place] || got.Of(fleet.Free) != free {
			errs = append(errs, fmt.Errorf("%v has %d processes, %d hosting, %d free, counted %d, %d, %d", place,
				got.Running(), got.Of(fleet.Hosting), got.Of(fleet.Free), running[place], hosting[place], free))
		}
	}
	if got := c.hosting.Fleets.AllCounts(); got != all {
		errs = append(errs, fmt.Errorf("the counts of all hosts are %+v, counted %+v", got, all))
	}
	return errors.Join(errs...)
}

// checkDepths counts the pending placements and the game servers again.
func checkDepths(c *Cell) error {
	var errs []error
	now := c.Last()
	queues, locations := map[string]waits{}, map[string]waits{}
	for _, p := range c.hosting.Placements.Placements.All() {
		if p.Status == placement.Pending {
			queues[p.Queue] = queues[p.Queue].with(now, p.Start)
		}
		if first, ok := p.Waits(); ok {
			locations[first.Location] = locations[first.Location].with(now, p.Start)
		}
	}
	for _, q := range c.hosting.Placements.Queues.All() {
		if got, want := c.hosting.Placements.QueueDepth(q.Name), queues[q.Name]; !want.is(got, now) {
			errs = append(errs, fmt.Errorf("queue %s has depth %+v, counted %+v", q.Name, got, want))
		}
	}
	for location, got := range c.hosting.Placements.LocationDepths {
		if want := locations[location]; !want.is(got, now) {
			errs = append(errs, fmt.Errorf("location %s has depth %+v, counted %+v", location, got, want))
		}
		delete(locations, location)
	}
	if len(locations) > 0 {
		errs = append(errs, fmt.Errorf("placements wait for locations without a depth: %v", locations))
	}
	utilized := map[string]int{}
	for _, s := range c.gameservers.Records.Servers.All() {
		if s.Utilized {
			utilized[s.Group]++
		}
	}
	for _, g := range c.gameservers.Records.Groups.All() {
		if got := c.gameservers.Records.Utilized(g.Name); got != utilized[g.Name] {
			errs = append(errs, fmt.Errorf("group %s has %d utilized game servers, counted %d", g.Name, got, utilized[g.Name]))
		}
	}
	return errors.Join(errs...)
}

// waits counts placements and adds up how long they have waited.
type waits struct {
	placements int
	time       time.Duration
}

func (w waits) with(now, start domain.Time) waits {
	return waits{w.placements + 1, w.time + now.Sub(start)/1000} // in thousandths, which a sum of many does not overflow
}

func (w waits) is(d placement.Depth, now domain.Time) bool {
	if w.placements != d.Placements || d.Placements == 0 {
		return w.placements == d.Placements
	}
	apart := w.time/time.Duration(w.placements) - d.AverageWait(now)/1000
	return apart.Abs() <= time.Microsecond
}

// checkHosting compares game sessions with processes: a process hosts at most one game session in its life.
func checkHosting(c *Cell) error {
	var errs []error
	for r, g := range c.hosting.Sessions.Games.All() {
		switch {
		case g.Live() && session.GameRef(c.hosting.Fleets.Processes.Get(fleet.ProcessRef(g.Process)).Session) != r:
			errs = append(errs, fmt.Errorf("%s lives on a process that hosts another", g.ID))
		case g.Live() && c.hosting.Fleets.Processes.Get(fleet.ProcessRef(g.Process)).State != fleet.ProcessReady:
			errs = append(errs, fmt.Errorf("%s lives on a process that is %s", g.ID, c.hosting.Fleets.Processes.Get(fleet.ProcessRef(g.Process)).State))
		case !g.Live() && (g.Process != 0 || g.SeatsHeld != 0):
			errs = append(errs, fmt.Errorf("%s has ended, has process %d and %d seats held", g.ID, g.Process, g.SeatsHeld))
		}
	}
	for r, p := range c.hosting.Fleets.Processes.All() {
		if p.Session != 0 && (!p.HadSession || fleet.ProcessRef(c.hosting.Sessions.Games.Get(session.GameRef(p.Session)).Process) != r) {
			errs = append(errs, fmt.Errorf("process %s hosts a game session that is not its own", p.Key))
		}
	}
	return errors.Join(errs...)
}

// checkDeadlines compares the deadlines in the records with those in the queue.
func checkDeadlines(c *Cell) error {
	want := map[kernel.Deadline]bool{}
	note := func(kind kernel.Wait, ref chunk.AnyRef, at int64) {
		if at != 0 {
			want[kernel.Deadline{At: at, Ref: ref, Kind: kind}] = true
		}
	}
	for r, p := range c.hosting.Sessions.Players.All() {
		note(hosting.Reservation, r.Any(), int64(p.ReserveBy))
	}
	for r, g := range c.hosting.Sessions.Games.All() {
		note(hosting.Activation, r.Any(), int64(g.ActivateBy))
	}
	for r, p := range c.hosting.Fleets.Processes.All() {
		for kind, at := range map[kernel.Wait]domain.ContactTime{hosting.Ready: p.ReadyBy, hosting.Lost: p.LostBy, hosting.Unhealthy: p.UnhealthyBy, hosting.Termination: p.TerminateBy} {
			note(kind, r.Any(), int64(at))
		}
		if p.State == fleet.Ended {
			note(hosting.ForgetProcess, r.Any(), int64(p.ForgetAt))
		}
	}
	for r, x := range c.gameservers.Records.Servers.All() {
		note(gameservers.GameServerClaim, r.Any(), int64(x.ClaimBy))
		note(gameservers.GameServerHealth, r.Any(), int64(x.HealthBy))
	}
	for r, h := range c.hosts.Records.All() {
		note(hosts.Silence, r.Any(), int64(h.SilentBy))
	}
	for r, x := range c.people.SignIns.All() {
		note(people.SessionEnd, r.Any(), int64(min(x.Expires, x.CheckBy)))
	}
	for r, k := range c.access.Records.Keys.All() {
		if k.Works() {
			note(access.Expiry, r.Any(), int64(k.Expires))
		}
	}
	for r, x := range c.hosting.Fleets.Creations.All() {
		note(hosting.Creation, r.Any(), int64(x.Until))
	}
	for r, x := range c.hosting.Fleets.Rollouts.All() {
		note(hosting.RolloutStep, r.Any(), int64(x.StepBy))
		if x.Phase == fleet.RolloutMoving && x.TooManyFailures() != "" || x.Phase == fleet.RolloutReturning && serves(c, x.From) {
			note(hosting.RolloutEnd, r.Any(), int64(kernel.AtOnce))
		}
		if (x.StepBy != 0) != (x.Phase == fleet.RolloutMoving) {
			return fmt.Errorf("the rollout of %s is %s, and its step ends at %d", x.Alias, x.Phase, x.StepBy)
		}
	}
	for r, f := range c.hosting.Fleets.Fleets.All() {
		if f.Sweeps() {
			note(hosting.Sweep, r.Any(), int64(kernel.AtOnce))
		}
	}
	for r, p := range c.hosting.Placements.Placements.All() {
		if p.Status == placement.Pending {
			note(hosting.PlacementTimeout, r.Any(), int64(p.TimeoutAt))
		}
	}
	for r, n := range c.notices.Records.Notices.All() {
		note(notice.NoticeAge, r.Any(), int64(n.Until))
	}
	for r, x := range c.matchmaking.Records.Tickets.All() {
		if x.Status.Waits() {
			note(matchmaking.TicketTimeout, r.Any(), int64(x.TimeoutAt))
		}
	}
	for r, x := range c.matchmaking.Records.Matches.All() {
		note(matchmaking.AcceptanceTimeout, r.Any(), int64(x.AcceptBy))
	}
	noteFlow(c, note)
	var errs []error
	if err := c.Waiting.Check(); err != nil {
		errs = append(errs, err)
	}
	for d := range c.Waiting.All() {
		if !want[d] && d.Kind != hosting.PlacementRound { // which no record has: after a restart all choose again
			errs = append(errs, fmt.Errorf("something waits that no record has: %+v", d))
		}
		delete(want, d)
	}
	for d := range want {
		errs = append(errs, fmt.Errorf("no deadline waits for %+v", d))
	}
	return errors.Join(errs...)
}

// serves reports whether a fleet is active and has a ready server process.
func serves(c *Cell, fleetID string) bool {
	r, ok := c.hosting.Fleets.Fleet(fleetID)
	if !ok || c.hosting.Fleets.Fleets.Get(r).Status != fleet.Active {
		return false
	}
	for _, p := range c.hosting.Fleets.Processes.All() {
		if _, at := c.hosting.Fleets.Fleets.Get(r).HasLocation(p.Location); at && p.Key.Fleet == fleetID && p.State == fleet.ProcessReady {
			return true
		}
	}
	return false
}

// checkRestarts compares the running cell with a replay of the whole journal and with a loaded snapshot.
func (w *world) checkRestarts() error {
	replayed, loaded := New(w.cell.config), New(w.cell.config)
	for i, batch := range w.journal {
		if err := replayed.Replay(uint64(i+1), batch); err != nil {
			return fmt.Errorf("replay entry %d: %w", i+1, err)
		}
	}
	var snapshot bytes.Buffer
	if err := w.cell.Freeze().Write(&snapshot); err != nil {
		return err
	}
	if err := loaded.Load(&snapshot); err != nil {
		return err
	}
	return errors.Join(
		canon.Differ("the replayed cell", replayed.Freeze(), w.cell.Freeze()), checkState(replayed),
		canon.Differ("the loaded cell", loaded.Freeze(), w.cell.Freeze()), checkState(loaded),
	)
}

// checkMatchmaking compares tickets, matches and the game sessions made from them with each other and with their indexes.
func checkMatchmaking(c *Cell) error {
	var errs []error
	m := c.matchmaking.Records
	active := map[string]int{}
	for r, t := range m.Tickets.All() {
		if !t.Status.Active() {
			if t.EndedNo == 0 || t.End == 0 {
				errs = append(errs, fmt.Errorf("ticket %s is %s, ended at %v as number %d", t.ID, t.Status, t.End, t.EndedNo))
			}
			continue
		}
		active[t.Configuration]++
		if at, ok := m.TicketNo(t.No); !ok || at != r {
			errs = append(errs, fmt.Errorf("ticket %s is not found by its number", t.ID))
		}
		for id := range t.EachPlayer {
			at, ok := m.TicketOf(id)
			if !ok || at != r && (t.Status != matchmaking.Placing || m.Tickets.Get(at).No < t.No) {
				errs = append(errs, fmt.Errorf("player %s of ticket %s, which is %s, is not found to be its", id, t.ID, t.Status))
			}
		}
		if at, ok := m.BackfillOf(t.Game); t.Backfill && t.Game != "" && (!ok || at != r) {
			errs = append(errs, fmt.Errorf("backfill %s is not found by its game session", t.ID))
		}
		if t.Status.Waits() != (t.Outcome == nil) {
			errs = append(errs, fmt.Errorf("ticket %s is %s, and in a match: %t", t.ID, t.Status, t.Outcome != nil))
		}
		if t.Outcome != nil {
			if _, ok := m.Match(t.Outcome.Match); !ok {
				errs = append(errs, fmt.Errorf("ticket %s is %s in a match that is gone", t.ID, t.Status))
			}
		}
	}
	for name, n := range active {
		if got := m.Counts(name).Active; got != n {
			errs = append(errs, fmt.Errorf("%d tickets are active in %s, counted %d", got, name, n))
		}
	}
	errs = append(errs, c.checkHeld()...)
	for _, x := range m.Matches.All() {
		asked := x.AcceptBy != 0
		for _, s := range x.Seats {
			r, ok := m.TicketNo(s.Ticket)
			if !ok || m.Tickets.Get(r).Outcome == nil || m.Tickets.Get(r).Outcome.Match != x.ID || asked != (m.Tickets.Get(r).Status == matchmaking.RequiresAcceptance) {
				errs = append(errs, fmt.Errorf("match %s has ticket number %d, which does not know it", x.ID, s.Ticket))
			}
		}
		if r, ok := c.hosting.Placements.Placement(x.ID); !asked && (!ok || c.hosting.Placements.Placements.Get(r).Status != placement.Pending) {
			errs = append(errs, fmt.Errorf("match %s is accepted, and nothing is placed for it", x.ID))
		}
	}
	for _, h := range m.Hosted.All() {
		if r, ok := c.hosting.Sessions.Game(session.ID(h.Game)); !ok || !c.hosting.Sessions.Games.Get(r).Live() || h.Of == nil {
			errs = append(errs, fmt.Errorf("game session %s came of a match, and has ended", h.Game))
		}
	}
	return errors.Join(errs...)
}

// noteFlow notes the deadlines in the records of player flow.
func noteFlow(c *Cell, note func(kind kernel.Wait, ref chunk.AnyRef, at int64)) {
	for r, p := range c.playerflow.Flow.Players.All() {
		note(playerflow.PlayerPresence, r.Any(), int64(p.PresenceBy))
		note(playerflow.PartyRemoval, r.Any(), int64(p.RemoveBy))
		note(playerflow.QueueRemoval, r.Any(), int64(p.LeaveQueueBy))
		note(playerflow.PlayerAge, r.Any(), int64(c.playerflow.PlayerAgesAt(p)))
		note(playerflow.PlayerUnlock, r.Any(), int64(p.UnlockAt))
	}
	for r, l := range c.playerflow.Flow.Logins.All() {
		note(playerflow.LoginExpiry, r.Any(), int64(playerflow.LoginActsAt(l)))
	}
	for r, p := range c.playerflow.Flow.Parties.All() {
		note(playerflow.PartyLeader, r.Any(), int64(p.LeaderBy))
		note(playerflow.PartyStale, r.Any(), int64(p.StaleBy))
		note(playerflow.PartyReady, r.Any(), int64(p.ReadyBy()))
	}
	for r, x := range c.playerflow.Flow.Invites.All() {
		note(playerflow.InviteExpiry, r.Any(), int64(x.ExpireBy))
	}
	for r, x := range c.playerflow.Flow.Instances.All() {
		for kind, at := range map[kernel.Wait]domain.ContactTime{
			playerflow.InstanceAllocation: x.AllocateBy, playerflow.InstanceAbsolute: x.AbsoluteBy, playerflow.InstanceEnding: x.EndBy, playerflow.InstanceEmpty: x.EmptyBy, playerflow.InstanceKeepAlive: x.KeepAliveBy,
		} {
			note(kind, r.Any(), int64(at))
		}
		note(playerflow.InstanceForget, r.Any(), int64(x.ForgetAt))
	}
	for r, m := range c.playerflow.Flow.Memberships.All() {
		note(playerflow.SeatHold, r.Any(), int64(m.HoldBy))
	}
	for r, q := range c.playerflow.Flow.Queues.All() {
		note(playerflow.QueueEstimate, r.Any(), int64(q.TellAt))
		if q.Closed && !q.Drained {
			note(playerflow.QueueDrain, r.Any(), int64(kernel.AtOnce))
		}
	}
	for r, x := range c.playerflow.Flow.Tickets.All() {
		note(playerflow.LoginTicketAge, r.Any(), int64(x.Until))
	}
	var first domain.ContactTime
	for _, x := range c.playerflow.Flow.Studio.Subscriptions() {
		if x.TakeBy != 0 && (first == 0 || x.TakeBy < first) {
			first = x.TakeBy
		}
	}
	note(playerflow.StudioReceivers, 0, int64(first))
}

// checkHeld compares the counts by holder with the records.
func (c *Cell) checkHeld() (errs []error) {
	for _, wrong := range c.Recount() {
		errs = append(errs, errors.New(wrong))
	}
	return errs
}

// checkHosts compares the hosts with each other, with their tokens and with their computes.
func checkHosts(c *Cell) error {
	var errs []error
	names, keys := map[string]string{}, map[string]string{}
	for _, h := range c.hosts.Records.All() {
		if h.Revoked != 0 {
			if !h.Silent() {
				errs = append(errs, fmt.Errorf("host %s was revoked, and counts as connected", h.ID))
			}
			continue
		}
		if other, twice := names[h.Name]; twice {
			errs = append(errs, fmt.Errorf("hosts %s and %s have the name %s", other, h.ID, h.Name))
		}
		if other, twice := keys[string(h.Key)]; twice {
			errs = append(errs, fmt.Errorf("hosts %s and %s have the same key", other, h.ID))
		}
		names[h.Name], keys[string(h.Key)] = h.ID, h.ID
	}
	v := c.View()
	if n := c.hosts.Records.Len(); n > hosts.HostsMax {
		errs = append(errs, fmt.Errorf("%d hosts", n))
	}
	tokens := v.HostTokens()
	if len(tokens) > hosts.TokensMax {
		errs = append(errs, fmt.Errorf("%d join tokens for hosts", len(tokens)))
	}
	for _, x := range tokens {
		if x.Uses > hosts.UsesMax || x.Fleet == "" && x.Location == "" {
			errs = append(errs, fmt.Errorf("join token %+v", x))
		}
	}
	return errors.Join(errs...)
}

// checkPeople compares the sign-in sessions with the people and checks the limits.
func checkPeople(c *Cell) error {
	var errs []error
	v := c.View()
	of := map[string]int{}
	for _, x := range c.people.SignIns.All() {
		of[x.Holder()]++
		if x.Roles == 0 || !x.Roles.Known() || x.Expires <= x.Started || x.CheckBy <= x.Checked {
			errs = append(errs, fmt.Errorf("sign-in session %+v", x))
		}
		if person, ok := v.Person(x.Subject); x.Provider == people.Own && (!ok || !slices.Equal(x.Groups, person.Groups)) {
			errs = append(errs, fmt.Errorf("sign-in session %s with the groups %q is of %s, who is gone or in %q", x.ID, x.Groups, x.Subject, person.Groups))
		}
	}
	for holder, n := range of {
		if listed := v.SignInsOf(holder); len(listed) != n || n > people.SessionsOfPersonMax {
			errs = append(errs, fmt.Errorf("%s has %d sign-in sessions, of which %d are listed", holder, n, len(listed)))
		}
	}
	names := map[string]bool{}
	for _, x := range v.People() {
		if names[x.Name] || len(x.Passkeys) > people.PasskeysMax {
			errs = append(errs, fmt.Errorf("person %s has a name that another has, or %d passkeys", x.ID, len(x.Passkeys)))
		}
		names[x.Name] = true
	}
	return errors.Join(errs...)
}
