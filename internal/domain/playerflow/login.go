package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// again answers the repeat of a login whose answer was lost. It returns the same login session although the ticket is used up, unless that session
// has ended since.
func (t *logins) again(cmd *Login) (done bool, err error) {
	x, ok := t.Remembered(cmd.caller())
	if !ok {
		return false, nil
	}
	r, ok := t.Flow.Login(flow.LoginSessionID(x.Made))
	if !ok {
		return false, nil
	}
	if t.Flow.Logins.Get(r).State != flow.LoginLive {
		return false, flow.Refuse(flow.Refusal{Code: flow.SessionReplaced}, "the login session of this request was replaced by a later one")
	}
	cmd.Made, cmd.Flow = *t.Flow.Logins.Get(r), x.Flow
	return true, nil
}

// redeem finds the player of a login ticket. It returns the event that marks the ticket or signed token as used; nil if the login has neither.
func (t *logins) redeem(cmd *Login) (used kernel.Event, err error) {
	switch {
	case !cmd.Once.IsZero():
		_, known := t.Flow.LoginTicket(cmd.Once)
		if known || cmd.Until <= t.Now || cmd.Until > t.Now.Add(SignedTokenMax) {
			return nil, flow.Refuse(flow.Refusal{Code: flow.Unauthenticated}, "the signed token was used, has expired, or is valid for too long")
		}
		if err := t.roomForTicket(t.Limits.LoginTicketsMax); err != nil {
			return nil, err
		}
		return &LoginTicketChanged{flow.LoginTicket{Hash: cmd.Once, Player: cmd.Player, Once: true, Used: true, Until: cmd.Until}}, nil
	case cmd.Ticket.IsZero():
		return nil, nil
	}
	x, ok := t.loginTicket(cmd.Ticket, t.Now)
	if !ok {
		return nil, flow.Refuse(flow.Refusal{Code: flow.Unauthenticated}, "the login ticket is unknown, was used, or has expired")
	}
	cmd.Player = x.Player
	if x.DisplayName != "" {
		cmd.DisplayName = x.DisplayName
	}
	if x.Once {
		used = &LoginTicketRemoved{cmd.Ticket}
	}
	return used, nil
}

// roomForTicket refuses a login ticket, or a signed token that has to be remembered, at a limit. The limit for login tickets is lower, so that a
// backend that issues an unlimited number of them does not lock out players with signed tokens.
func (t *logins) roomForTicket(most int) error {
	if n := t.Flow.Tickets.Len(); n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d login tickets and used signed tokens have not expired; the limit is %d", n, most)
	}
	return nil
}

// loginTicket finds a valid login ticket.
func (c *State) loginTicket(hash domain.UUID, now domain.Time) (*flow.LoginTicket, bool) {
	r, ok := c.Flow.LoginTicket(hash)
	if !ok {
		return nil, false
	}
	x := c.Flow.Tickets.Get(r)
	return x, !x.Used && x.Until > now
}

// check refuses a login that is not allowed now, and completes the event for a known player.
func (t *logins) check(p *flow.Player, e *PlayerLoggedIn) error {
	config := &t.Config.Sessions
	switch {
	case p.Banned:
		return flow.Refuse(flow.Refusal{Code: flow.PlayerBanned}, "player %s is banned", p.ID)
	case config.RejectDuplicates && p.Login() != 0 && p.Here():
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyLoggedIn}, "player %s is logged in on another device", p.ID)
	case p.FlapUntil > t.Now:
		return flow.Refuse(flow.Refusal{Code: flow.LoginFlapping, Until: p.FlapUntil}, "player %s has logged in too often", p.ID)
	}
	e.Login.Epoch = p.Epoch + 1
	was := p.Replaces()
	e.ReplacedAt, e.Replaced, e.ReplacedSince, e.FlapUntil = was.At, was.Logins, was.Since, p.FlapUntil
	if p.Login() != 0 && p.Here() {
		most := int(config.ReplacesMax)
		e.ReplacedAt = slide(was.At, was.Logins, was.Since, t.Now, config.ReplaceWindow, most)
		e.Replaced, e.ReplacedSince = 0, 0
		if len(e.ReplacedAt) == most {
			e.FlapUntil = t.Now.Add(config.FlappingLock)
		}
	}
	// The connected client loses control; the new one has as long to attach as a silent one.
	e.PresenceBy = t.Contact.Add(config.DeadAfter)
	return nil
}

// replace ends the control of a player's current login session.
func (t *logins) replace(r flow.PlayerRef, device string) {
	p := t.Flow.Players.Get(r)
	if p.Login() == 0 {
		return
	}
	l := *t.Flow.Logins.Get(p.Login())
	l.State, l.Previous, l.PreviousBy, l.ExpireBy = flow.LoginReplaced, domain.UUID{}, 0, t.Contact.Add(replacedKept)
	t.tellPlayers(flow.OnSessionReplaced, flow.Message{Device: device, Deadline: t.Now}, p.ID)
	t.Emit(&LoginChanged{l})
}

// end ends a player's login session and thereby the player's presence.
func (t *logins) end(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	if p.Login() != 0 {
		t.Emit(&LoginRemoved{t.Flow.Logins.Get(p.Login()).ID})
	}
	t.goOffline(r)
}

// signOfLife extends a login session, but not at every sign of life, because each extension is an event in the journal.
func (t *logins) signOfLife(r flow.PlayerRef) {
	l := *t.Flow.Logins.Get(t.Flow.Players.Get(r).Login())
	by := t.Contact.Add(t.Config.Sessions.IdleExpiry)
	if time.Duration(by-l.ExpireBy)*time.Millisecond > t.Config.Sessions.IdleExpiry/20 {
		l.ExpireBy, l.Warned = by, false
		t.Emit(&LoginChanged{l})
	}
}

// due warns the player of an idle login session and later ends the session. It extends the session of an online client and removes a replaced one.
func (t *logins) due(r flow.LoginRef) {
	t.Cause = "SessionExpired"
	l := *t.Flow.Logins.Get(r)
	player, _ := t.Flow.Player(l.Player)
	switch {
	case l.State != flow.LoginLive:
		t.Emit(&LoginRemoved{l.ID})
	case t.Flow.Players.Get(player).Presence == flow.Online:
		l.ExpireBy, l.Warned = t.Contact.Add(t.Config.Sessions.IdleExpiry), false
		t.Emit(&LoginChanged{l})
	case !l.Warned && l.ExpireBy > t.Contact:
		l.Warned = true
		t.Emit(&LoginChanged{l})
		t.tellPlayers(flow.OnSessionExpiring, flow.Message{Deadline: t.WallTime(l.ExpireBy)}, l.Player)
	default:
		t.end(player)
	}
}

// ExpiryNotice is how long before its end a login session's player is warned.
const ExpiryNotice = time.Minute

// LoginActsAt returns the next deadline of a login session: first the warning, then the end.
func LoginActsAt(l *flow.Login) domain.ContactTime {
	if l.State == flow.LoginLive && !l.Warned {
		return l.ExpireBy.Add(-ExpiryNotice)
	}
	return l.ExpireBy
}
