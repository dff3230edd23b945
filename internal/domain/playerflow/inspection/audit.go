package inspection

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// Violation is an invariant of player flow that does not hold, which is a defect of the service: docs/spec/player-flow.md#invariants.
type Violation struct {
	Invariant string // "I1" to "I15", a race such as "R5", or a word: a key of invariants
	Subject   string // the record or player that it is about
	Detail    string
}

func (v Violation) String() string { return v.Invariant + " " + v.Subject + ": " + v.Detail }

// Audit checks the whole state and lists the invariants that do not hold. Its duration grows with the number of players; a Survey does
// the same in steps, without the advices. I5 and I10 are about commits rather than one state, so tests check them. Of I9, Audit checks
// that the latest revision has a record of its commit.
func (v *View) Audit() []Violation {
	v.SawAll()
	a := auditor{c: v.c}
	for r, p := range v.c.Flow.Players.All() {
		a.player(r, p)
	}
	for _, p := range v.c.Flow.Parties.All() {
		a.party(p)
	}
	for r, x := range v.c.Flow.Instances.All() {
		a.instance(r, x)
	}
	for _, x := range v.c.Flow.Advices.All() {
		a.advice(x)
	}
	return a.found
}

type auditor struct {
	c       *Inspection
	found   []Violation
	waiting map[domain.TicketID]bool // tickets whose players wait for a host; nil: not computed yet
}

func (a *auditor) fail(invariant, subject, format string, args ...any) {
	a.found = append(a.found, Violation{invariant, subject, fmt.Sprintf(format, args...)})
}

func (a *auditor) player(r flow.PlayerRef, p *flow.Player) {
	f, k := a.c.Flow, p.Keys
	if at, ok := f.Player(p.ID); !ok || at != r {
		a.fail("I1", p.ID, "its flow record is not the one that is found by its id")
	}
	if !k.Ticket.IsZero() && k.Party.IsZero() {
		a.fail("I2", p.ID, "it has ticket %s and no party", k.Ticket)
	}
	if !k.Ticket.IsZero() && !k.Game.IsZero() {
		a.fail("I3", p.ID, "it has ticket %s and game %s", k.Ticket, k.Game)
	}
	a.playersGame(r, p)
	if !k.Party.IsZero() {
		party, ok := f.Party(k.Party)
		if !ok {
			a.fail("I7", p.ID, "party %s does not exist", k.Party)
		} else if _, member := f.Parties.Get(party).Member(p.ID); !member {
			a.fail("I7", p.ID, "it is not a member of party %s", k.Party)
		}
	}
	if p.Login() != 0 {
		if l := f.Logins.Get(p.Login()); l.Player != p.ID || l.Epoch != p.Epoch || l.State != flow.LoginLive {
			a.fail("I11", p.ID, "login session %s has epoch %d of %d and state %d", l.ID, l.Epoch, p.Epoch, l.State)
		}
	}
	a.playersDeadlines(p)
	a.lastChange(p)
	if n := uint64(len(p.Outbox())); n > p.Seq || n > flow.EventsLimit {
		a.fail("outbox", p.ID, "%d events are kept, %d were told", n, p.Seq)
	}
}

// lastChange compares the revision of a player with the latest change that waits for the archive, if any.
func (a *auditor) lastChange(p *flow.Player) {
	last, ok := a.c.Flow.LastChange(p.ID)
	switch {
	case !ok:
	case last.Rev < p.Rev:
		a.fail("I9", p.ID, "its revision is %d, its latest change made it %d", p.Rev, last.Rev)
	case last.Rev == p.Rev && last.Keys != p.Keys:
		a.fail("I9", p.ID, "its keys are not those of its latest change, revision %d", p.Rev)
	}
}

func (a *auditor) playersGame(r flow.PlayerRef, p *flow.Player) {
	f := a.c.Flow
	if p.Keys.Game.IsZero() != (p.Membership() == 0) {
		a.fail("I6", p.ID, "key %s, membership %d", p.Keys.Game, p.Membership())
		return
	}
	if p.Membership() == 0 {
		return
	}
	m := f.Memberships.Get(p.Membership())
	x := f.Instances.Get(m.InstanceRef())
	switch {
	case m.Instance != p.Keys.Game || m.Player != p.ID || m.PlayerRef() != r:
		a.fail("I6", p.ID, "key %s, membership of %s in %s", p.Keys.Game, m.Player, m.Instance)
	case x.ID != m.Instance || !x.Live():
		a.fail("I6", p.ID, "game %s is %s", x.ID, x.Status)
	case !slices.Contains(x.Members(), p.Membership()):
		a.fail("I6", p.ID, "game %s does not know its membership", x.ID)
	}
	a.membership(m, x)
}

// membership compares a membership with its player sessions.
func (a *auditor) membership(m *flow.Membership, x *flow.Instance) {
	status := func(id domain.PlayerSessionID) session.PlayerStatus {
		r, ok := a.c.hosting.FindPlayer(id)
		if !ok {
			return 0
		}
		p := a.c.hosting.PlayerSession(r)
		if string(a.c.hosting.Game(p.Game).ID) != x.Game || p.Player != m.Player {
			a.fail("R19", m.Player, "player session %s is not of this player in this game", id)
		}
		return p.Status
	}
	current := status(m.Session)
	bad := false
	switch m.Status {
	case flow.MemberPending:
		bad = !m.Session.IsZero()
	case flow.MemberReserved:
		bad = current != session.Reserved
	case flow.MemberActive:
		bad = current != session.PlayerActive
	default:
		bad = current.Live()
	}
	if bad {
		a.fail("R5", m.Player, "membership is %s, its player session %s", m.Status, current)
	}
	if !m.Next.IsZero() && (m.Status != flow.MemberActive || status(m.Next) != session.Reserved) {
		a.fail("R3", m.Player, "membership is %s, the player session that takes over %s", m.Status, status(m.Next))
	}
	if away := m.Status == flow.MemberDisconnected || m.Status == flow.MemberNoShow; away &&
		x.Rules.Reconnect == flow.ReconnectOptional && m.HoldBy == 0 && m.HoldLeft == 0 {
		a.fail("I12", m.Player, "membership is %s and nothing ends it", m.Status)
	}
	if m.Status == flow.MemberReserved && a.c.reservedUntil(m) == 0 {
		a.fail("I12", m.Player, "its reservation has no end")
	}
	if m.Keep != (m.Seat != 0) {
		a.fail("I15", m.Player, "its seat is kept: %t, seat %d", m.Keep, m.Seat)
	}
}

func (a *auditor) playersDeadlines(p *flow.Player) {
	k := p.Keys
	away := p.Presence == flow.Offline
	switch {
	case p.Presence == flow.Unknown && p.PresenceBy == 0, p.Presence == flow.Online && p.Stream == 0 && p.PresenceBy == 0:
		a.fail("I12", p.ID, "it is %s, and nothing ends that", p.Presence)
	case away && !k.Party.IsZero() && k.Game.IsZero() && p.RemoveBy == 0:
		a.fail("I12", p.ID, "it is offline in a party, and nothing ends that")
	case away && !k.Ticket.IsZero() && p.LeaveQueueBy == 0 && a.c.SearchWaits(k.Party):
		a.fail("I12", p.ID, "it is offline in the queue, and nothing ends that")
	case !away && (p.RemoveBy != 0 || p.LeaveQueueBy != 0), p.RemoveBy != 0 && !k.Game.IsZero(), p.LeaveQueueBy != 0 && k.Ticket.IsZero():
		a.fail("I12", p.ID, "it is %s, to be removed at %d, out of the queue at %d", p.Presence, p.RemoveBy, p.LeaveQueueBy)
	}
}

func (a *auditor) party(p *flow.Party) {
	who := p.ID.String()
	leaders, here := 0, false
	for i, m := range p.Members {
		if m.Leader {
			leaders++
		}
		if at, _ := p.Member(m.Player); at != i {
			a.fail("I8", who, "member %s is in it twice", m.Player)
		}
		r, ok := a.c.Flow.Player(m.Player)
		if !ok || a.c.Flow.Players.Get(r).Keys.Party != p.ID {
			a.fail("I7", who, "member %s has another party", m.Player)
			continue
		}
		x := a.c.Flow.Players.Get(r)
		here = here || x.Here() || !x.Keys.Game.IsZero()
		ticket := domain.TicketID{}
		if p.Search != nil {
			ticket = p.Search.Ticket
			if !x.Keys.Game.IsZero() {
				a.fail("I14", who, "it is in matchmaking, and %s is in a game", m.Player)
			}
		}
		if x.Keys.Ticket != ticket {
			a.fail("I4", who, "ticket %s, member %s has %s", ticket, m.Player, x.Keys.Ticket)
		}
	}
	switch {
	case len(p.Members) == 0:
		a.fail("I7", who, "it has no members")
	case leaders == 0: // the configuration limits their number, and may have changed since they were made
		a.fail("leader", who, "it has no leader")
	case p.ReadyBy() != 0 && (p.Search != nil || slices.ContainsFunc(p.Members, func(m flow.Member) bool { return m.ReadyBy != 0 && !m.Ready })):
		a.fail("I12", who, "the clock of a member runs who is not ready, or searches")
	case here != (p.StaleBy == 0):
		a.fail("I12", who, "a member is present: %t, shut down at %d", here, p.StaleBy)
	}
	a.search(who, p)
}

// search compares a party's search with its ticket.
func (a *auditor) search(who string, p *flow.Party) {
	if p.Search == nil {
		return
	}
	r, ok := a.c.matchmaking.FindTicket(p.Search.Ticket.String())
	if !ok || !a.c.matchmaking.Ticket(r).Status.Active() {
		a.fail("I12", who, "its ticket %s is not active", p.Search.Ticket)
		return
	}
	x := a.c.matchmaking.Ticket(r)
	a.ticketOf(who, p, x)
	if p.Search.Expires == 0 || p.Search.Status == flow.RequiresAcceptance && p.Search.AcceptBy == 0 {
		a.fail("I12", who, "its search is %s, and nothing ends that", p.Search.Status)
	}
	if asked := x.Status == matchmaking.RequiresAcceptance; asked != (p.Search.Status == flow.RequiresAcceptance) || x.Status == matchmaking.Placing {
		a.fail("I13", who, "its search is %s, its ticket %s", p.Search.Status, x.Status)
	}
	if held := len(p.Search.HeldBy) > 0; p.Search.Status != flow.RequiresAcceptance && held != (p.Search.Status == flow.Held) {
		a.fail("held", who, "its search is %s, held by %v", p.Search.Status, p.Search.HeldBy)
	}
}

func (a *auditor) instance(r flow.InstanceRef, x *flow.Instance) {
	who := x.ID.String()
	for _, m := range x.Members() {
		if a.c.Flow.Memberships.Get(m).InstanceRef() != r {
			a.fail("I6", who, "it lists the membership of another one")
		}
		if player := a.c.Flow.Memberships.Get(m).PlayerRef(); a.c.Flow.Players.Get(player).Membership() != m {
			a.fail("I8", who, "player %s has another membership", a.c.Flow.Players.Get(player).ID)
		}
	}
	switch {
	case !x.Live() && len(x.Members()) > 0:
		a.fail("I6", who, "it has ended and has %d members", len(x.Members()))
	case !x.Live() && x.ForgetAt == 0, x.Status == flow.InstancePending && x.AllocateBy == 0, x.Status == flow.InstanceEnding && x.EndBy == 0:
		a.fail("I12", who, "it is %s, and nothing ends that", x.Status)
	case x.Status == flow.InstancePending:
		a.placing(who, x)
		return
	case !x.Live():
		return
	}
	g, ok := a.c.hosting.FindGame(session.ID(x.Game))
	if !ok || !a.c.hosting.Game(g).Live() {
		a.fail("I6", who, "it is %s, and its game session %s is not live", x.Status, x.Game)
		return
	}
	game, seats := a.c.hosting.Game(g), map[chunk.AnyRef]bool{}
	a.hosted(who, x, game)
	switch {
	case x.AllocateBy != 0 && (x.Ready || x.Status != flow.InstanceActive):
		a.fail("I12", who, "it is %s, it takes players: %t, and it must do so by %d", x.Status, x.Ready, x.AllocateBy)
	case !x.Ready && x.AllocateBy == 0 && x.AbsoluteBy == 0 && x.EndBy == 0:
		a.fail("I12", who, "it takes no players yet, and nothing ends that")
	}
	for _, ref := range x.Members() {
		m := a.c.Flow.Memberships.Get(ref)
		if m.Seat != 0 {
			seats[m.Seat] = true
		}
	}
	if int32(len(seats)) > game.SeatsHeld {
		a.fail("I15", who, "%d seats are kept, and %d are held", len(seats), game.SeatsHeld)
	}
}

// advice checks that a search, or a game that waits for its host, still needs the advice.
func (a *auditor) advice(x *flow.Advice) {
	if _, searching := a.c.Flow.PartyByTicket(x.Ticket); searching {
		return
	}
	if a.waiting == nil { // computed once, because there may be as many searches as memberships
		a.waiting = map[domain.TicketID]bool{}
		for _, m := range a.c.Flow.Memberships.All() {
			if !a.c.Flow.Instances.Get(m.InstanceRef()).Ready {
				a.waiting[m.Ticket] = true
			}
		}
	}
	if a.waiting[x.Ticket] {
		return
	}
	a.fail("advice", x.Ticket.String(), "it is kept, and no party searches or waits for a host with this ticket")
}
