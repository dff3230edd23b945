package inspection

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// Timer is a deadline that concerns a player.
type Timer struct {
	Kind  string // the setting that determines it, or its purpose
	Of    string // the party, ticket, game instance, player session, login session or invite that it concerns
	Until domain.Time
	Then  string // what happens
	// Left is the remaining time of a clock that stands still because the host of the game is suspected to be lost; 0: the clock runs.
	Left time.Duration
}

// FlowTimers lists every deadline that concerns a player, the earliest first.
func (v *View) FlowTimers(player string, now domain.Time) []Timer {
	v.SawAll()
	r, ok := v.c.Flow.Player(player)
	if !ok {
		return nil
	}
	t := timers{c: v.c}
	p := v.c.Flow.Players.Get(r)
	t.ofPlayer(p, now)
	if party, ok := v.c.Flow.Party(p.Keys.Party); ok {
		t.ofParty(v.c.Flow.Parties.Get(party))
	}
	if p.Membership() != 0 {
		t.ofGame(v.c.Flow.Memberships.Get(p.Membership()))
	}
	slices.SortStableFunc(t.all, func(a, b Timer) int { return cmp.Compare(a.Until, b.Until) })
	return t.all
}

type timers struct {
	c   *Inspection
	all []Timer
}

func (t *timers) wall(kind, of string, at domain.Time, then string) {
	if at != 0 {
		t.all = append(t.all, Timer{Kind: kind, Of: of, Until: at, Then: then})
	}
}

func (t *timers) contact(kind, of string, at domain.ContactTime, then string) {
	if at != 0 {
		t.wall(kind, of, t.c.WallTime(at), then)
	}
}

func (t *timers) ofPlayer(p *flow.Player, now domain.Time) {
	grace := "deadAfter"
	if p.Presence == flow.Unknown {
		grace = "restartGrace"
	}
	t.contact(grace, p.ID, p.PresenceBy, "the player is OFFLINE unless the client is back")
	t.contact("offlineRemoval", p.ID, p.RemoveBy, "the player leaves the party")
	t.contact("offlineGrace", p.ID, p.LeaveQueueBy, "the party leaves the queue")
	if p.FlapUntil > now {
		t.wall("replaceBurst", p.ID, p.FlapUntil, "another login is allowed")
	}
	for _, x := range t.c.Locks(p, now) {
		kind := "lock " + x.Kind.String()
		if x.Kind == flow.Requeue {
			kind = "requeueLock"
		}
		t.wall(kind, p.ID, x.Until, "the player may search again")
	}
	if p.Login() != 0 {
		l := t.c.Flow.Logins.Get(p.Login())
		t.contact("sessionIdleExpiry", l.ID.String(), l.ExpireBy, "the login session ends unless there is a sign of life")
	}
	for _, ref := range t.c.Flow.InvitesTo(p.ID) {
		if x := t.c.Flow.Invites.Get(ref); !x.Expired {
			t.contact("inviteTimeout", x.ID.String(), x.ExpireBy, "the invite to party "+x.Party.String()+" expires")
		}
	}
	if p.Keys == (flow.Keys{}) {
		t.wall("forgotten", p.ID, t.c.PlayerAgesAt(p), "the oldest thing that is remembered of the player is forgotten")
	}
}

func (t *timers) ofParty(x *flow.Party) {
	id := x.ID.String()
	t.contact("leaderGrace", id, x.LeaderBy, "another member leads the party")
	t.contact("staleExpiration", id, x.StaleBy, "the party is shut down")
	if s := x.Search; s != nil {
		ticket := s.Ticket.String()
		t.wall("ticketTimeout", ticket, s.Expires, "the search fails")
		t.wall("acceptanceTimeout", ticket, s.AcceptBy, "the match fails for those who have not accepted it")
		for _, m := range x.Members { // any of them removes the party from the queue
			if r, ok := t.c.Flow.Player(m.Player); ok {
				t.contact("offlineGrace of a member", m.Player, t.c.Flow.Players.Get(r).LeaveQueueBy, "the party leaves the queue")
			}
		}
	}
}

func (t *timers) ofGame(m *flow.Membership) {
	x := t.c.Flow.Instances.Get(m.InstanceRef())
	id := x.ID.String()
	t.contact("allocationTimeout", id, x.AllocateBy, "the game fails: no host was found, or it does not take players")
	t.contact("absoluteTimeout", id, x.AbsoluteBy, "the game ends")
	t.contact("endingGrace", id, x.EndBy, "the game ends")
	t.contact("emptyTimeout", id, x.EmptyBy, "the game ends")
	t.contact("keepAliveInterval", id, x.KeepAliveBy, "a keep-alive of the server is missed")
	for _, id := range []domain.PlayerSessionID{m.Session, m.Next} {
		if r, ok := t.c.hosting.FindPlayer(id); ok {
			p := t.c.hosting.PlayerSession(r)
			t.contact("reservationTimeout", p.ID.String(), p.ReserveBy, "the reservation ends: the player did not connect")
		}
	}
	hold := "reconnectWindow"
	if m.Status == flow.MemberNoShow {
		hold = "noShowHold"
	}
	t.contact(hold, id, m.HoldBy, "the player's seat is given up")
	if m.HoldLeft != 0 {
		t.all = append(t.all, Timer{
			Kind: hold, Of: id, Left: time.Duration(m.HoldLeft) * time.Millisecond, Then: "the player's seat is given up, once the host is back",
		})
	}
	if x.Suspect == 0 || x.Game == "" {
		return
	}
	if at := t.c.hostLostBy(x); at != 0 {
		t.contact("linkGrace", id, at, "the host is given up, and the game ends")
	}
}

// hostLostBy returns when the server process of a game instance counts as crashed; 0: no such deadline is set.
func (c *Inspection) hostLostBy(x *flow.Instance) domain.ContactTime {
	r, ok := c.hosting.FindGame(session.ID(x.Game))
	if !ok {
		return 0
	}
	g := c.hosting.Game(r)
	if !g.Live() || g.Process == 0 {
		return 0
	}
	return c.hosting.Process(fleet.ProcessRef(g.Process)).LostBy
}
