package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// IssueLoginTicket lets a player log in whom a trusted backend has authenticated.
type IssueLoginTicket struct {
	Hash        domain.UUID // first half of the SHA-256 of the ticket
	Player      string
	DisplayName string
	Life        time.Duration
	Once        bool

	// Result
	Ticket flow.LoginTicket
}

// loginTicketMax is the longest life of a login ticket.
const loginTicketMax = 5 * time.Minute

func (cmd *IssueLoginTicket) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	if cmd.Life <= 0 || cmd.Life > loginTicketMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "ttl_ms: %d, want 1 to %d", cmd.Life.Milliseconds(), loginTicketMax.Milliseconds())
	}
	if _, known := t.Flow.LoginTicket(cmd.Hash); !known {
		if err := t.roomForLoginTicket(); err != nil {
			return err
		}
	}
	cmd.Ticket = flow.LoginTicket{Hash: cmd.Hash, Player: cmd.Player, DisplayName: cmd.DisplayName, Once: cmd.Once, Until: t.Now.Add(cmd.Life)}
	t.Emit(&LoginTicketChanged{cmd.Ticket})
	return nil
}

// roomForLoginTicket refuses a login ticket, or a signed token that has to be remembered, when there are as many as may be.
func (t *Tx) roomForLoginTicket() error {
	if n, most := t.Flow.Tickets.Len(), t.Limits.LoginTicketsMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d login tickets and used signed tokens have not expired; the limit is %d", n, most)
	}
	return nil
}

// proof is what a login uses up; zero for one that proves who the player is with something else.
func (cmd *Login) proof() domain.UUID {
	if !cmd.Once.IsZero() {
		return cmd.Once
	}
	return cmd.Ticket
}

// caller is under what a login is remembered: apart from the player's other calls, and only for the same proof.
func (cmd *Login) caller() *Caller {
	proof := cmd.proof()
	return &Caller{Player: cmd.Player, Request: cmd.Request, Made: cmd.Session, kind: "Login\x00" + string(proof[:]), proof: proof}
}

// loginAgain answers a login that was carried out, when its answer was lost: the same login session again, although the
// ticket is used up. A login session that has ended since cannot be given again.
func (t *Tx) loginAgain(cmd *Login) (done bool, err error) {
	x, ok := t.Remembered(cmd.caller())
	if !ok {
		return false, nil
	}
	r, ok := t.Flow.Login(x.Made)
	if !ok {
		return false, nil
	}
	if t.Flow.Logins.Get(r).State != flow.LoginLive {
		return false, flow.Refuse(flow.Refusal{Code: flow.SessionReplaced}, "the login session of this request was replaced by a later one")
	}
	cmd.Made, cmd.Flow = *t.Flow.Logins.Get(r), x.Flow
	return true, nil
}

// redeem finds the player of a login ticket, and says what becomes of what the login uses up; nil: nothing is.
func (t *Tx) redeem(cmd *Login) (used kernel.Event, err error) {
	switch {
	case !cmd.Once.IsZero():
		_, known := t.Flow.LoginTicket(cmd.Once)
		if known || cmd.Until <= t.Now || cmd.Until > t.Now.Add(SignedTokenMax) {
			return nil, flow.Refuse(flow.Refusal{Code: flow.Unauthenticated}, "the signed token was used, is too old, or is good for too long")
		}
		if err := t.roomForLoginTicket(); err != nil {
			return nil, err
		}
		return &LoginTicketChanged{flow.LoginTicket{Hash: cmd.Once, Player: cmd.Player, Once: true, Used: true, Until: cmd.Until}}, nil
	case cmd.Ticket.IsZero():
		return nil, nil
	}
	x, ok := t.loginTicket(cmd.Ticket, t.Now)
	if !ok {
		return nil, flow.Refuse(flow.Refusal{Code: flow.Unauthenticated}, "the login ticket is not known, was used, or is too old")
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

// SignedTokenMax bounds how long the use of a signed token has to be remembered.
const SignedTokenMax = loginTicketMax + time.Minute // for clocks that differ

// loginTicket finds a login ticket that is good now.
func (c *State) loginTicket(hash domain.UUID, now domain.Time) (*flow.LoginTicket, bool) {
	r, ok := c.Flow.LoginTicket(hash)
	if !ok {
		return nil, false
	}
	x := c.Flow.Tickets.Get(r)
	return x, !x.Used && x.Until > now
}

// KnowsTicket reports whether a login with a ticket is worth a try: the ticket is good, or the login was carried out with it
// and its answer can be given again. Without that anybody could make logins of a player whom they only name.
func (v *View) KnowsTicket(cmd *Login, now domain.Time) bool {
	if _, ok := v.c.loginTicket(cmd.Ticket, now); ok {
		return true
	}
	by := cmd.caller()
	x, ok := v.c.Flow.Request(RequestKey(by))
	return ok && by.Request != "" && x.Player == by.Player && x.Proof == by.proof
}
