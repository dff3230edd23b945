package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Login makes a login session for a player whose identity the front door has checked, or whose login ticket it brings.
// The player's keys are the same before and after it.
type Login struct {
	Player        string      // with Ticket: whom it names, which is not believed
	Ticket        domain.UUID // hash of a login ticket; zero: none
	Once          domain.UUID // hash of the name of a signed token that is good for one login; zero: none
	Until         domain.Time // with Once: when that token ends
	Request       string      // X-Request-Id: a repeat within ten minutes with the same proof gets the same login session; empty: none
	Session       domain.UUID // of the login session to be
	Token         domain.UUID // first half of the SHA-256 of its access token
	Device        string
	ClientVersion string
	DisplayName   string // empty: as it was
	AutoReconnect bool
	Insecure      bool

	// Result
	Made flow.Login
	Flow flow.Stand
}

func (cmd *Login) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if done, err := t.loginAgain(cmd); done || err != nil {
		return err
	}
	config := &t.Config.Sessions
	used, err := t.redeem(cmd)
	if err == nil {
		err = checkPlayerID("player_id", cmd.Player)
	}
	if err != nil {
		return err
	}
	e := &PlayerLoggedIn{Login: flow.Login{
		ID: cmd.Session, Player: cmd.Player, Epoch: 1, State: flow.LoginLive, Token: cmd.Token, Device: cmd.Device,
		ClientVersion: cmd.ClientVersion, AutoReconnect: cmd.AutoReconnect, Insecure: cmd.Insecure, Created: t.Now,
		ExpireBy: t.Contact.Add(config.IdleExpiry),
	}}
	r, known := t.Flow.Player(cmd.Player)
	var old flow.Profile
	if known {
		p := t.Flow.Players.Get(r)
		if err := t.checkLogin(p, e); err != nil {
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
		t.replaceLogin(r, cmd.Device)
	}
	t.Emit(e)
	r, _ = t.Flow.Player(cmd.Player)
	cmd.Made = *t.Flow.Logins.Get(t.Flow.Players.Get(r).Login())
	t.own().caller, t.Cause = cmd.caller(), "Login"
	t.stand(cmd.Player, &cmd.Flow)
	return nil
}

// checkLogin refuses a login that may not be now, and fills in what it says about the player who is known.
func (t *Tx) checkLogin(p *flow.Player, e *PlayerLoggedIn) error {
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
	e.Replaced, e.ReplacedSince, e.FlapUntil = p.Replaced, p.ReplacedSince, p.FlapUntil
	if p.Login() != 0 && p.Here() {
		if p.ReplacedSince.Add(config.ReplaceWindow) <= t.Now {
			e.Replaced, e.ReplacedSince = 0, t.Now
		}
		if e.Replaced++; e.Replaced >= config.ReplacesMax {
			e.FlapUntil = t.Now.Add(config.FlappingLock)
		}
	}
	// The client that is here is not the controlling one any more; the new one has as long to attach as a silent one has.
	e.PresenceBy = t.Contact.Add(config.DeadAfter)
	return nil
}

// replaceLogin takes the control from a player's login session.
func (t *Tx) replaceLogin(r flow.PlayerRef, device string) {
	p := t.Flow.Players.Get(r)
	if p.Login() == 0 {
		return
	}
	l := *t.Flow.Logins.Get(p.Login())
	l.State, l.Previous, l.PreviousBy, l.ExpireBy = flow.LoginReplaced, domain.UUID{}, 0, t.Contact.Add(replacedKept)
	t.tellPlayers(flow.OnSessionReplaced, flow.Message{Device: device, Deadline: t.Now}, p.ID)
	t.Emit(&LoginChanged{l})
}

// RefreshLogin gives a login session a new access token. The old one is good for a while more.
type RefreshLogin struct {
	Caller
	Token domain.UUID
	Nonce domain.UUID // what the token was made of beside a secret; a repeat finds it in Made

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
		t.declines(r, party, func() { t.leaveParty(r, flow.Left) })
	}
	t.endLogin(r)
	return nil
}

// endLogin ends a player's login session, and with it the presence.
func (t *Tx) endLogin(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	if p.Login() != 0 {
		t.Emit(&LoginRemoved{t.Flow.Logins.Get(p.Login()).ID})
	}
	t.goOffline(r)
}

// AttachStream says that the event stream of a login session is open.
type AttachStream struct {
	Player  string
	Session domain.UUID
	Stream  uint64 // a number that no other stream of the cell has; never 0
	After   uint64 // number of the last event that the client has; 0: none

	// Result
	Sync  uint64     // number of the OnSync that the client begins with; 0: it gets the events behind After
	Flow  flow.Stand // its Seq is the head
	Login flow.Login
}

func (cmd *AttachStream) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, err := t.controls(cmd.Player, cmd.Session)
	if err != nil {
		return err
	}
	t.signOfLife(r)
	p := t.Flow.Players.Get(r)
	t.goOnline(r, cmd.Stream, p.PolledBy)
	if cmd.After == 0 || !replayable(p, cmd.After) {
		cmd.Sync = t.sync(p)
	}
	t.greet(r)
	p = t.Flow.Players.Get(r)
	cmd.Login = *t.Flow.Logins.Get(p.Login())
	t.Cause = "Attach"
	t.stand(cmd.Player, &cmd.Flow)
	return nil
}

// replayable reports whether a client that has the events up to a number gets the others, which are all kept. One that has none
// gets everything there is, unless nothing has happened yet.
func replayable(p *flow.Player, after uint64) bool {
	return after <= p.Seq && after+1 >= p.FirstKept() && (after > 0 || p.Seq == 0)
}

// sync takes a number for an OnSync, so that no client takes it for an event that it has seen. What lies before an earlier one
// is dropped: a replay of many of them would send everything as often.
func (t *Tx) sync(p *flow.Player) uint64 {
	if i := slices.IndexFunc(p.Outbox(), func(x flow.Told) bool { return x.Type == flow.OnSync }); i >= 0 {
		t.Emit(&EventsTrimmed{p.ID, p.FirstKept() + uint64(i) + 1})
	}
	number := p.Seq + 1
	t.write(flow.OnSync, "", []string{p.ID})
	return number
}

// signOfLife moves the end of a login session that nobody hears of, at most once in a while.
func (t *Tx) signOfLife(r flow.PlayerRef) {
	l := *t.Flow.Logins.Get(t.Flow.Players.Get(r).Login())
	by := t.Contact.Add(t.Config.Sessions.IdleExpiry)
	if time.Duration(by-l.ExpireBy)*time.Millisecond > t.Config.Sessions.IdleExpiry/20 {
		l.ExpireBy, l.Warned = by, false
		t.Emit(&LoginChanged{l})
	}
}

// LoseStream says that a stream is closed, or was silent for too long. It is ignored when another one was opened since.
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
		t.goOnline(r, 0, p.PolledBy)
		return nil
	}
	t.goOffline(r)
	return nil
}

// PollEvents says that a client has polled: it counts as online for deadAfter at least, also while a stream is attached whose
// connection may be dead.
type PollEvents struct {
	Player  string
	Session domain.UUID
	After   *uint64 // number of the last event that the client has; nil: it does not ask for events

	// Result
	Sync uint64 // number of the OnSync that the client gets; 0: it gets the events behind After
	Flow flow.Stand
}

// pollStep is the most that a poll keeps a player online beyond deadAfter: polls within it are worth one word in the journal.
const pollStep = time.Second

func (cmd *PollEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, err := t.controls(cmd.Player, cmd.Session)
	if err != nil {
		return err
	}
	t.signOfLife(r)
	t.Cause = "Poll"
	t.stand(cmd.Player, &cmd.Flow)
	if p := t.Flow.Players.Get(r); cmd.After != nil && !replayable(p, *cmd.After) {
		cmd.Sync = t.sync(p)
	}
	t.polled(r)
	return nil
}

// polled keeps a player online for deadAfter from now on.
func (t *Tx) polled(r flow.PlayerRef) {
	config := &t.Config.Sessions
	p := t.Flow.Players.Get(r)
	by := t.Contact.Add(config.DeadAfter)
	if p.Presence == flow.Online && p.PolledBy >= by {
		return
	}
	isNew := p.Presence != flow.Online || p.Stream == 0 && p.PolledBy == 0
	t.goOnline(r, p.Stream, by.Add(min(pollStep, config.DeadAfter/5)))
	if isNew {
		t.greet(r)
	}
}

// AckEvents says that a client has the events up to a number: they need not be kept for it.
type AckEvents struct {
	Player  string
	Session domain.UUID
	Seq     uint64
}

// AckStep is how many acknowledged events are worth a word in the journal.
const AckStep = 64

func (cmd *AckEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.controls(cmd.Player, cmd.Session)
	if err != nil {
		return err
	}
	p := t.Flow.Players.Get(r)
	if last := min(cmd.Seq, p.Seq); last+1 >= p.FirstKept()+AckStep {
		t.Emit(&EventsTrimmed{p.ID, last + 1})
	}
	return nil
}

// goOnline notes that the client of a player is here: by a stream, by polls until a deadline, or by both.
func (t *Tx) goOnline(r flow.PlayerRef, stream uint64, polledBy domain.ContactTime) {
	p := t.Flow.Players.Get(r)
	was := p.Presence
	t.touch(r)
	e := presenceOf(p)
	e.Presence, e.Stream, e.PresenceBy, e.PolledBy, e.OfflineSince, e.RemoveBy, e.LeaveQueueBy = flow.Online, stream, 0, polledBy, 0, 0, 0
	if stream == 0 {
		e.PresenceBy = polledBy
	}
	t.Emit(e)
	if was == flow.Offline {
		t.tellPresence(r)
	}
}

// goOffline notes that the client of a player is gone.
func (t *Tx) goOffline(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	was := p.Presence
	if was == flow.Offline {
		return
	}
	t.touch(r)
	e := presenceOf(p)
	e.Presence, e.Stream, e.PresenceBy, e.PolledBy, e.OfflineSince = flow.Offline, 0, 0, 0, t.Now
	t.Emit(e)
	t.tellPresence(r)
}

// tellPresence tells the others of the party.
func (t *Tx) tellPresence(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return
	}
	others := slices.DeleteFunc(t.Flow.Parties.Get(party).Players(), func(id string) bool { return id == p.ID })
	t.tellPlayers(flow.OnPartyMemberPresence, flow.Message{PartyID: p.Keys.Party, Player: p.ID, Online: p.Here()}, others...)
}

// greet tells a client that has come what it can still do about its game, or does it.
func (t *Tx) greet(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	if p.Membership() == 0 {
		return
	}
	ref := p.Membership()
	m := *t.Flow.Memberships.Get(ref)
	returned := m.Epoch != p.Epoch // this client was not given any details yet
	switch m.Status {
	case flow.MemberPending:
		return
	case flow.MemberReserved, flow.MemberActive: // of an earlier client, unless it is this one's
		if !returned {
			return
		}
	}
	way, err := t.mayReach(r, m.Instance)
	switch {
	case err != nil:
		if away := m.Status == flow.MemberDisconnected || m.Status == flow.MemberNoShow; away {
			t.tellReconnect(ref)
		}
	case t.Flow.Logins.Get(p.Login()).AutoReconnect:
		_, _ = t.connectionDetails(r, m.Instance, nil) // mayReach has made its checks
	case m.Status == flow.MemberReserved && t.stillGood(way.open, t.Flow.Instances.Get(m.InstanceRef())):
		t.tellHost(ref, flow.Resent)
	default:
		t.tellReconnect(ref)
	}
}

// CheckPlayerID checks the shape of a player's id.
func CheckPlayerID(id string) error { return checkPlayerID("player_id", id) }

// checkPlayerID checks the shape of a player's id.
func checkPlayerID(field, id string) error {
	if len(id) == 0 || len(id) > 128 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "%s: %d characters, want 1 to 128", field, len(id))
	}
	for _, c := range []byte(id) {
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
		if !ok {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "%s: %q, want letters, digits and . _ : @ -", field, id)
		}
	}
	return nil
}
