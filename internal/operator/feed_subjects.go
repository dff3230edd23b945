package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/plural"
)

// Bounds of what a round reads about an object's surroundings.
const (
	feedGames     = 100 // game sessions of a fleet
	feedProcesses = 500 // server processes of a compute
	feedPending   = 100 // waiting placements of a queue

	feedPlacements = 100 // ended placements of a queue
)

// feedSubjects maps the kinds of objects that have a feed to their functions.
var feedSubjects = map[string]func(*feedScope, context.Context, string) error{
	"fleet": (*feedScope).fleet, "compute": (*feedScope).compute, "process": (*feedScope).process, "host": (*feedScope).host,
	"game-session": (*feedScope).gameSession, "queue": (*feedScope).queue, "placement": (*feedScope).placement, "ticket": (*feedScope).ticket,
	"player": (*feedScope).player, "party": (*feedScope).party, "game-instance": (*feedScope).gameInstance,
	"alias": (*feedScope).alias, "build": (*feedScope).build, "configuration": (*feedScope).configuration,
}

// FeedKinds returns the kinds of objects that have a feed, in alphabetical order.
func FeedKinds() (all []string) {
	for kind := range feedSubjects {
		all = append(all, kind)
	}
	slices.Sort(all)
	return all
}

// feedScope returns what belongs to the feed of an object, as far as it happened until then.
func (d *Door) feedScope(ctx context.Context, kind, id string, until domain.Time) (*feedScope, error) {
	fill, ok := feedSubjects[kind]
	if !ok {
		return nil, domain.Refuse(domain.Invalid, "kind %.40q: want one of %s", kind, strings.Join(FeedKinds(), ", "))
	}
	if id == "" || len(id) > 2048 {
		return nil, domain.Refuse(domain.Invalid, "id of %d bytes: want 1 to 2048", len(id))
	}
	s := &feedScope{d: d, until: until, changed: map[auditSubject]span{}, seen: map[string]bool{}}
	return s, fill(s, ctx, id)
}

// absent returns err unless a record was not found, because the audit log may still have it.
func absent(err error) error {
	if domain.IsRefused(err, domain.NotFound) {
		return nil
	}
	return err
}

func (s *feedScope) fleet(ctx context.Context, id string) error {
	if id = id[strings.LastIndexByte(id, '/')+1:]; id == "" {
		return domain.Refuse(domain.Invalid, "id: want the id or ARN of a fleet")
	}
	var f fleet.Fleet
	err := s.d.engine.Read(ctx, func(v *cell.View) error { f, s.known = v.Fleet(id); return nil })
	if err != nil {
		return err
	}
	s.events = append(s.events, feedLog{fleet: id, of: ever})
	s.changes("fleet", id, ever)
	s.changes("tags", id, ever)
	s.below = append(s.below, auditSubject{"compute", id + "/"}, auditSubject{"game session", id + "/"}, auditSubject{"tags", id + "/"})
	if f.Managed != nil {
		s.changes("build", f.Managed.Build, ever)
	}
	return s.gamesOn(ctx, id, "")
}

// gamesOn adds the creation of game sessions on a fleet or on one of its computes, and the end of those that have ended.
func (s *feedScope) gamesOn(ctx context.Context, fleetID, compute string) error {
	games, since, err := s.d.engine.LatestGames(ctx, fleetID, s.until, feedGames)
	if err != nil {
		return err
	}
	if since > 0 {
		s.lacks(since - 1)
	}
	for i := range slices.Backward(games) {
		g := &games[i]
		s.known = true
		if compute != "" && g.ComputeName != compute {
			continue
		}
		detail := "for process " + g.ProcessID + " on compute " + g.ComputeName
		if !g.Live() {
			detail += "; it ended at " + clock(g.Ended) + ": " + causeOf(g)
		}
		s.changes("game session", string(g.ID), ever)
		s.add("game-session", string(g.ID), []Moment{{g.Created.Std(), "GAME_SESSION_CREATED", detail}})
	}
	return nil
}

func (s *feedScope) compute(ctx context.Context, id string) error {
	c, err := s.d.compute(ctx, id)
	if domain.IsRefused(err, domain.NotFound) { // it was registered once
		c.FleetID, c.Name, _ = strings.Cut(id, "/")
	} else if err != nil {
		return err
	}
	return s.computeOf(ctx, &c)
}

func (s *feedScope) computeOf(ctx context.Context, c *fleet.Compute) error {
	id := c.FleetID + "/" + c.Name
	s.changes("compute", id, ever)
	s.changes("tags", id, ever)
	s.events = append(s.events, feedLog{c.FleetID, " on compute " + c.Name + " ", ever})
	if c.Created == 0 {
		return nil
	}
	s.known = true
	s.moments("compute", id, func(x *Explanation) { x.moment(c.Created, "REGISTERED", "in location "+c.Location) })
	var processes []fleet.Process
	err := s.d.engine.Read(ctx, func(v *cell.View) error { processes = v.ProcessesOn(c.FleetID, c.Name); return nil })
	if err != nil {
		return err
	}
	if len(processes) > feedProcesses {
		s.leftOut = append(s.leftOut, fmt.Sprintf("the connections of %d of the compute's %d server processes; each process has a feed of its own", len(processes)-feedProcesses, len(processes)))
		processes = processes[:feedProcesses]
	}
	for i := range processes {
		p := &processes[i]
		s.moments("process", p.Key.String(), func(x *Explanation) { processMoments(x, p, &session.GameSession{}) })
	}
	return s.gamesOn(ctx, c.FleetID, c.Name)
}

// host adds the machine and the compute that currently represents it.
func (s *feedScope) host(ctx context.Context, id string) error {
	var compute fleet.Compute
	var x Explanation
	token := ""
	err := s.d.engine.Read(ctx, func(v *cell.View) error {
		h, ok := v.Host(id)
		if !ok {
			return nil
		}
		s.known, token = true, h.Token
		x.moment(h.Joined, "HOST_JOINED", "as "+h.Name+" in location "+h.Location)
		x.moment(h.Revoked, "HOST_REVOKED", "by "+h.RevokedBy)
		if fleetID, name, ok := v.Serves(id); ok {
			compute, _ = v.Compute(fleetID, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.add("host", id, x.Timeline)
	s.changes("host", id, ever)
	s.changes("host token", token, ever)
	if compute.FleetID == "" {
		return nil
	}
	return s.computeOf(ctx, &compute)
}

func (s *feedScope) process(ctx context.Context, id string) error {
	x, err := s.d.explainProcess(ctx, id)
	if domain.IsRefused(err, domain.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s.known = true
	for _, f := range x.Facts {
		if f.Name == "game session" {
			if err := s.game(ctx, session.ID(f.Value), true); err != nil {
				return err
			}
		}
	}
	s.add("process", x.ID, slices.DeleteFunc(slices.Clone(x.Timeline), func(m Moment) bool { // those of its game session are already in the feed
		return slices.ContainsFunc(s.entries, func(e FeedEntry) bool { return e.At.Equal(m.At) && e.What == m.What && e.Detail == m.Detail })
	}))
	fleetID, rest, _ := strings.Cut(x.ID, "/")
	if compute := rest[:max(0, strings.LastIndexByte(rest, '/'))]; len(x.Timeline) > 0 && compute != "" {
		began := domain.TimeOf(x.Timeline[0].At)
		s.changes("compute", fleetID+"/"+compute, around(began, 0))
		s.changes("fleet", fleetID, around(began, 0))
	}
	return nil
}

func (s *feedScope) gameSession(ctx context.Context, id string) error {
	game := session.IDOf(id)
	s.changes("game session", string(game), ever)
	return s.game(ctx, game, true)
}

// game adds a game session, its placement, and the fleet events about its server process; with players, also its player sessions.
func (s *feedScope) game(ctx context.Context, id session.ID, players bool) error {
	if !s.once("game-session", string(id)) {
		return nil
	}
	g, err := s.d.engine.GameSession(ctx, id)
	if err != nil {
		return absent(err)
	}
	s.known = true
	if g.Placement != "" {
		if err := s.placed(ctx, g.Placement); err != nil {
			return err
		}
	}
	s.moments("game-session", string(id), func(x *Explanation) { gameMoments(x, &g) })
	life := around(g.Created, g.Ended)
	s.events = append(s.events, feedLog{g.FleetID, "process " + g.ProcessID + " on compute " + g.ComputeName + " ", life})
	s.changes("game session", string(id), ever)
	s.changes("compute", g.FleetID+"/"+g.ComputeName, life)
	s.changes("fleet", g.FleetID, life)
	if !players {
		return nil
	}
	seats, more, err := s.d.engine.PlayersIn(ctx, g.ID, 0, engine.PlayerPlace{}, playersMax)
	if err != nil {
		return err
	}
	if more {
		s.leftOut = append(s.leftOut, fmt.Sprintf("player sessions of game session %s after the first %d", id, playersMax))
	}
	s.seats(seats, func(p *hosting.PlayerSession) (kind, id string) { return "player", p.Player })
	return nil
}

// seats adds player sessions as events of an object that `object` returns for each.
func (s *feedScope) seats(all []hosting.PlayerSession, object func(*hosting.PlayerSession) (kind, id string)) {
	before := map[string]bool{}
	for i := range all {
		p := &all[i]
		who := "player " + p.Player
		seat := p.Player + " " + string(p.GameID)
		if before[seat] {
			who += ", who had a player session in it before"
		}
		before[seat] = true
		kind, id := object(p)
		s.moments(kind, id, func(x *Explanation) { playerSessionMoments(x, p, who) })
	}
}

func (s *feedScope) queue(ctx context.Context, name string) error {
	var pending []placement.Placement
	err := s.d.engine.Read(ctx, func(v *cell.View) error {
		var q placement.Queue
		if q, s.known = v.Queue(name); s.known {
			s.moments("queue", name, func(x *Explanation) { x.moment(q.Created, "CREATED", "") })
		}
		pending = v.PendingIn(name, feedPending+1)
		return nil
	})
	if err != nil {
		return err
	}
	if len(pending) > feedPending {
		s.leftOut = append(s.leftOut, fmt.Sprintf("waiting placements after the oldest %d", feedPending))
		pending = pending[:feedPending]
	}
	for i := range pending {
		p := &pending[i]
		s.moments("placement", p.ID, func(x *Explanation) { placementMoments(x, p, &session.GameSession{}) })
	}
	s.changes("queue", name, ever)
	s.changes("player queue", name, ever)
	return s.placementsIn(ctx, name)
}

// placementsIn adds the ends of a queue's placements. Their starts are only in their own feeds, because the archive finds placements by their
// ends.
func (s *feedScope) placementsIn(ctx context.Context, queue string) error {
	ended, err := engine.PlacementsUntil(ctx, s.d.engine, queue, s.until, feedPlacements)
	if err != nil {
		return s.readLater(err)
	}
	if ended.Since > 0 {
		s.lacks(ended.Since - 1)
	}
	if ended.Skipped {
		s.leftOut = append(s.leftOut, "placements that ended in minutes with too many records for one page")
	}
	for i := range slices.Backward(ended.All) {
		p := &ended.All[i]
		s.known = true
		detail := "after " + p.End.Sub(p.Start).String() + ", for " + plural.Of(int(p.PlayersMax), "seat", "seats")
		if p.Game != "" {
			detail += "; game session " + p.Game
		}
		s.add("placement", p.ID, []Moment{{p.End.Std(), p.Status.String(), detail}})
	}
	return nil
}

// readLater returns err unless the node's archive is still incomplete; in that case it notes that its records are left out.
func (s *feedScope) readLater(err error) error {
	if r, ok := errors.AsType[*domain.Refusal](err); ok && r.Reason == domain.Overloaded {
		s.leftOut = append(s.leftOut, "what has ended: "+r.Detail)
		return nil
	}
	return err
}

func (s *feedScope) placement(ctx context.Context, id string) error {
	p, err := s.d.engine.Placement(ctx, id)
	if err != nil {
		return absent(err)
	}
	s.known = true
	if err := s.placed(ctx, id); err != nil || p.Game == "" {
		return err
	}
	return s.game(ctx, session.ID(p.Game), true)
}

// placed adds a placement.
func (s *feedScope) placed(ctx context.Context, id string) error {
	if !s.once("placement", id) {
		return nil
	}
	p, err := s.d.engine.Placement(ctx, id)
	if err != nil {
		return absent(err)
	}
	s.moments("placement", id, func(x *Explanation) { placementMoments(x, &p, &session.GameSession{}) })
	s.changes("queue", p.Queue, around(p.Start, p.End))
	return nil
}

func (s *feedScope) ticket(ctx context.Context, id string) error {
	t, err := s.ticketOf(ctx, id)
	if err != nil || t == nil {
		return err
	}
	s.known = true
	if t.Outcome != nil && t.Outcome.Game != "" {
		if err := s.game(ctx, session.ID(t.Outcome.Game), true); err != nil {
			return err
		}
	}
	for player := range t.EachPlayer {
		s.changes("player", player, around(t.Start, t.End))
		if err := s.keysOf(ctx, player, func(keys *flow.Keys) bool { return keys.Ticket.String() == id }); err != nil {
			return err
		}
	}
	return nil
}

// ticketOf adds a ticket and returns it; nil if it does not exist or is already in the scope.
func (s *feedScope) ticketOf(ctx context.Context, id string) (*matchmaking.Ticket, error) {
	if !s.once("ticket", id) {
		return nil, nil
	}
	t, err := s.d.engine.Ticket(ctx, id)
	if err != nil {
		return nil, absent(err)
	}
	s.moments("ticket", id, func(x *Explanation) { ticketMoments(x, &t.Ticket) })
	s.changes("matchmaking configuration", t.Configuration, around(t.Start, t.End))
	return &t.Ticket, nil
}

func (s *feedScope) alias(ctx context.Context, id string) error {
	return s.made(ctx, "alias", id, func(v *cell.View) (domain.Time, bool) { a, ok := v.Alias(id); return a.Created, ok })
}

func (s *feedScope) build(ctx context.Context, id string) error {
	return s.made(ctx, "build", id, func(v *cell.View) (domain.Time, bool) { b, ok := v.Build(id); return b.Created, ok })
}

func (s *feedScope) configuration(ctx context.Context, name string) error {
	s.changes("matchmaking configuration", name, ever)
	return s.made(ctx, "configuration", name, func(v *cell.View) (domain.Time, bool) { c, ok := v.Configuration(name); return c.Created, ok })
}

// made adds an object that only people change.
func (s *feedScope) made(ctx context.Context, kind, id string, created func(*cell.View) (domain.Time, bool)) error {
	s.changes(kind, id, ever)
	s.changes("tags", id, ever)
	return s.d.engine.Read(ctx, func(v *cell.View) error {
		at, ok := created(v)
		s.known = ok
		s.moments(kind, id, func(x *Explanation) { x.moment(at, "CREATED", "") })
		return nil
	})
}
