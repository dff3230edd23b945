package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Login creates a login session for a player whose identity the front door has verified, or who presents a login ticket. It
// does not change the player's keys.
type Login struct {
	Player         string              // with Ticket: the player named by the client, which is not trusted
	Ticket         domain.UUID         // hash of a login ticket; zero: none
	Once           domain.UUID         // hash of the name of a single-use signed token; zero: none
	Until          domain.Time         // with Once: when that token expires
	Request        string              // X-Request-Id: a repeat within ten minutes with the same proof gets the same login session; empty: none
	LoginSessionID flow.LoginSessionID // of the new login session
	Token          domain.UUID         // first half of the SHA-256 of its access token
	Device         string
	ClientVersion  string
	DisplayName    string // empty: unchanged
	AutoReconnect  bool
	Insecure       bool

	// Result
	Made flow.Login
	Flow flow.Record
}

func (cmd *Login) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if done, err := t.logins.again(cmd); done || err != nil {
		return err
	}
	config := &t.Config.Sessions
	used, err := t.logins.redeem(cmd)
	if err == nil {
		err = checkPlayerID("player_id", cmd.Player)
	}
	if err != nil {
		return err
	}
	e := &PlayerLoggedIn{Login: flow.Login{
		ID: cmd.LoginSessionID, Player: cmd.Player, Epoch: 1, State: flow.LoginLive, Token: cmd.Token, Device: cmd.Device,
		ClientVersion: cmd.ClientVersion, AutoReconnect: cmd.AutoReconnect, Insecure: cmd.Insecure, Created: t.Now,
		ExpireBy: t.Contact.Add(config.IdleExpiry),
	}}
	r, known := t.Flow.Player(cmd.Player)
	var old flow.Profile
	if known {
		p := t.Flow.Players.Get(r)
		if err := t.logins.check(p, e); err != nil {
			return err
		}
		if p.Profile != nil {
			old = *p.Profile
		}
	} else if err := t.roomForPlayer(); err != nil {
		return err
	}
	if cmd.DisplayName != "" {
		old.DisplayName = cmd.DisplayName
	}
	if cmd.ClientVersion != "" {
		old.ClientVersion = cmd.ClientVersion
	}
	e.Profile = &old

	if used != nil {
		t.Emit(used)
	}
	if known {
		t.logins.replace(r, cmd.Device)
	}
	t.Emit(e)
	r, _ = t.Flow.Player(cmd.Player)
	cmd.Made = *t.Flow.Logins.Get(t.Flow.Players.Get(r).Login())
	t.own().caller, t.Cause = cmd.caller(), "Login"
	t.answerTo(cmd.Player, &cmd.Flow)
	return nil
}

// RefreshLogin gives a login session a new access token. The old one stays valid for the rotation overlap.
type RefreshLogin struct {
	Caller
	Token domain.UUID
	Nonce domain.UUID // input of the token besides a secret; a repeat finds it in Made

	// Result
	Login flow.Login
}

func (cmd *RefreshLogin) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	cmd.kind = "Refresh\x00"
	r, done, err := t.caller(&cmd.Caller, "Refresh")
	if err != nil {
		return err
	}
	cmd.Login = *t.Flow.Logins.Get(t.Flow.Players.Get(r).Login())
	if done {
		return nil
	}
	config := &t.Config.Sessions
	l := cmd.Login
	l.Previous, l.PreviousBy = l.Token, t.Now.Add(config.RotationOverlap)
	l.Token, l.ExpireBy, l.Warned = cmd.Token, t.Contact.Add(config.IdleExpiry), false
	t.Emit(&LoginChanged{l})
	cmd.Login, cmd.Made = l, cmd.Nonce
	return nil
}

// Logout ends a login session.
type Logout struct{ Caller }

func (cmd *Logout) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "Logout")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if party, ok := t.Flow.Party(p.Keys.Party); ok && p.Keys.Game.IsZero() && !t.Config.Parties.LogoutKeepsParty {
		t.searches.declines(r, party, func() { t.parties.leave(r, flow.Left) })
	}
	t.logins.end(r)
	return nil
}

// AttachStream records that the event stream of a login session is open.
type AttachStream struct {
	Player         string
	LoginSessionID flow.LoginSessionID
	Stream         uint64      // unique among all streams of the cell; never 0
	After          uint64      // number of the last event that the client has; 0: none
	Node           domain.UUID // that has the stream; zero: a single node

	// Result
	Sync  uint64      // number of the OnSync with which the client starts; 0: it gets the events after After
	Flow  flow.Record // its Seq is the number of the latest event
	Login flow.Login
}

func (cmd *AttachStream) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, err := t.controls(cmd.Player, cmd.LoginSessionID)
	if err != nil {
		return err
	}
	node, err := t.nodes.Holder(cmd.Node)
	if err != nil {
		return err
	}
	t.logins.signOfLife(r)
	p := t.Flow.Players.Get(r)
	t.logins.goOnline(r, cmd.Stream, node, p.PolledBy)
	if cmd.After == 0 || !replayable(p, cmd.After) {
		cmd.Sync = t.logins.sync(p)
	}
	t.logins.greet(r)
	p = t.Flow.Players.Get(r)
	cmd.Login = *t.Flow.Logins.Get(p.Login())
	t.Cause = "Attach"
	t.answerTo(cmd.Player, &cmd.Flow)
	return nil
}

// LoseStream records that a stream was closed or silent for too long. It is ignored if another stream was opened since.
type LoseStream struct {
	Player string
	Stream uint64
}

func (cmd *LoseStream) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Flow.Player(cmd.Player)
	if !ok || t.Flow.Players.Get(r).Stream != cmd.Stream || cmd.Stream == 0 {
		return nil
	}
	t.Cause = "StreamLost"
	if p := t.Flow.Players.Get(r); p.PolledBy > t.Contact {
		t.logins.goOnline(r, 0, p.Node, p.PolledBy)
		return nil
	}
	t.logins.goOffline(r)
	return nil
}

// PollEvents records that a client has polled: it counts as online for at least deadAfter, even while a stream is attached,
// whose connection may be dead. With Stream it records only a sign of life of the login session.
type PollEvents struct {
	Player         string
	LoginSessionID flow.LoginSessionID
	After          *uint64     // number of the last event that the client has; nil: it does not ask for events
	Node           domain.UUID // that was polled; zero: a single node
	Stream         uint64      // on which the client was heard: the player is online as long as this stream is attached; 0: the client has polled

	// Result
	Sync uint64 // number of the OnSync that the client gets; 0: it gets the events after After
	Flow flow.Record
}

func (cmd *PollEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, err := t.controls(cmd.Player, cmd.LoginSessionID)
	if err != nil {
		return err
	}
	node, err := t.nodes.Holder(cmd.Node)
	if err != nil {
		return err
	}
	t.logins.signOfLife(r)
	if cmd.Stream != 0 {
		return nil
	}
	t.Cause = "Poll"
	t.answerTo(cmd.Player, &cmd.Flow)
	if p := t.Flow.Players.Get(r); cmd.After != nil && !replayable(p, *cmd.After) {
		cmd.Sync = t.logins.sync(p)
	}
	t.logins.polled(r, node)
	return nil
}

// AckEvents records that a client has the events up to a number, so that they need not be kept for it.
type AckEvents struct {
	Player         string
	LoginSessionID flow.LoginSessionID
	Seq            uint64
}

// AckStep is how many events must be acknowledged at once to be worth a journal event.
const AckStep = 64

func (cmd *AckEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.controls(cmd.Player, cmd.LoginSessionID)
	if err != nil {
		return err
	}
	p := t.Flow.Players.Get(r)
	if last := min(cmd.Seq, p.Seq); last+1 >= p.FirstKept()+AckStep {
		t.Emit(&EventsTrimmed{p.ID, last + 1})
	}
	return nil
}

// IssueLoginTicket lets a player log in who was authenticated by a trusted backend.
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
		if err := t.logins.roomForTicket(quota.Most(t.Limits.LoginTicketsMax)); err != nil {
			return err
		}
	}
	cmd.Ticket = flow.LoginTicket{Hash: cmd.Hash, Player: cmd.Player, DisplayName: cmd.DisplayName, Once: cmd.Once, Until: t.Now.Add(cmd.Life)}
	t.Emit(&LoginTicketChanged{cmd.Ticket})
	return nil
}

// proof returns the ticket or signed token that a login uses up; zero for other proofs.
func (cmd *Login) proof() domain.UUID {
	if !cmd.Once.IsZero() {
		return cmd.Once
	}
	return cmd.Ticket
}

// caller returns the key under which a login is remembered: separate from the player's other calls, and only for the same
// credential.
func (cmd *Login) caller() *Caller {
	proof := cmd.proof()
	return &Caller{Player: cmd.Player, Request: cmd.Request, Made: domain.UUID(cmd.LoginSessionID), kind: "Login\x00" + string(proof[:]), proof: proof}
}

// SignedTokenMax bounds how long the use of a signed token has to be remembered.
const SignedTokenMax = loginTicketMax + time.Minute // allows for clock differences

// KnowsTicket reports whether a login with a ticket may proceed: the ticket is valid, or the login was already executed with
// it and its answer can be repeated. Without this check, a client could attempt logins for any player that it names.
func (v *View) KnowsTicket(cmd *Login, now domain.Time) bool {
	if _, ok := v.c.loginTicket(cmd.Ticket, now); ok {
		return true
	}
	by := cmd.caller()
	x, ok := v.c.Flow.Request(RequestKey(by))
	return ok && by.Request != "" && x.Player == by.Player && x.Proof == by.proof
}
