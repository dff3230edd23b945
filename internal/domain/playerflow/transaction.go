package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// own returns the room's part of the transaction. It also schedules Settle.
func (t *transaction) own() *scratch {
	t.AtEnd(Room)
	return &t.scratch
}

// scratch collects the changes of one transaction, until Settle writes the events, notices and deadlines that follow from them.
type scratch struct {
	changed []keysBefore
	told    []telling
	notices []serverNotice
	players []flow.PlayerRef
	parties []flow.PartyID

	actors []actionsBefore

	isChanged, isTouched map[flow.PlayerRef]bool
	isActor              map[string]bool
	isPlanned            map[flow.PartyID]bool
	caller               *Caller
	by                   flow.Actor   // the actor, if the command itself does not name one
	of                   string       // the player whose flow record the answer carries
	record               *flow.Record // the destination of that record
}

type keysBefore struct {
	player flow.PlayerRef
	keys   flow.Keys
	cause  string // a Tick has several causes
}

// touch marks a player whose deadlines may have to change, and the player's party.
func (t *transaction) touch(r flow.PlayerRef) {
	if !t.own().isTouched[r] {
		note(&t.own().isTouched, r)
		t.own().players = append(t.own().players, r)
	}
	t.touchParty(t.Flow.Players.Get(r).Keys.Party)
}

func (t *transaction) touchParty(id flow.PartyID) {
	if !id.IsZero() && !t.own().isPlanned[id] {
		note(&t.own().isPlanned, id)
		t.own().parties = append(t.own().parties, id)
	}
}

func note[K comparable](seen *map[K]bool, key K) {
	if *seen == nil {
		*seen = map[K]bool{}
	}
	(*seen)[key] = true
}

// setKeys changes the keys of a player. The revision rises by one per transaction, however often the keys change.
func (t *transaction) setKeys(r flow.PlayerRef, change func(*flow.Keys)) {
	p := t.Flow.Players.Get(r)
	keys, rev := p.Keys, p.Rev
	change(&keys)
	if keys == p.Keys {
		return
	}
	if !t.own().isChanged[r] {
		note(&t.own().isChanged, r)
		t.own().changed = append(t.own().changed, keysBefore{r, p.Keys, t.causeNow()})
		rev++
	}
	t.touch(r)
	t.Emit(&PlayerKeysChanged{p.ID, rev, keys})
	t.touch(r)
}

// changePlayer lets f change the fields of a player other than keys and presence.
func (t *transaction) changePlayer(r flow.PlayerRef, f func(*PlayerChanged)) {
	p := t.Flow.Players.Get(r)
	requeues := p.Requeues()
	e := &PlayerChanged{
		Player: p.ID, Banned: p.Banned, Leaves: requeues.Leaves, LeavesSince: requeues.Since, RequeueLevel: requeues.Level, RequeueUntil: requeues.Until, Left: requeues.Left,
		Profile: p.Profile, LastGame: p.LastGame, Penalties: p.Penalties, Blocked: p.Blocked,
	}
	f(e)
	e.UnlockAt = nextUnlock(e, t.Now)
	t.Emit(e)
}

// nextUnlock returns when the first of a player's locks ends; 0 if there is none.
func nextUnlock(e *PlayerChanged, now domain.Time) (next domain.Time) {
	consider := func(until domain.Time) {
		if until > now && (next == 0 || until < next) {
			next = until
		}
	}
	consider(e.RequeueUntil)
	for _, x := range e.Penalties {
		consider(x.Until)
	}
	return next
}

func profileOf(p *flow.Player) flow.Profile {
	if p.Profile == nil {
		return flow.Profile{}
	}
	return *p.Profile
}

// changeParty lets f change a copy of a party, raises its revision, and tells its members.
func (t *transaction) changeParty(r flow.PartyRef, change flow.PartyChange, player string, f func(*flow.Party)) {
	p := *t.Flow.Parties.Get(r)
	p.Members = slices.Clone(p.Members)
	f(&p)
	p.Rev++
	t.Emit(&PartyChanged{p})
	t.touchParty(p.ID)
	view := t.PartyView(r)
	t.tellPlayers(flow.OnPartyChanged, flow.Message{Party: &view, Change: change, Player: player}, view.Players()...)
}

// changeSearch lets f change a copy of a party's search, and touches its members.
func (t *transaction) changeSearch(r flow.PartyRef, f func(*flow.Search)) *flow.Search {
	p := *t.Flow.Parties.Get(r)
	s := *p.Search
	f(&s)
	p.Search = &s
	t.Emit(&PartyChanged{p})
	for _, m := range p.Members {
		member, _ := t.Flow.Player(m.Player)
		t.touch(member)
	}
	return &s
}

// changeInstance lets f change a copy of a game instance.
func (t *transaction) changeInstance(r flow.InstanceRef, f func(*flow.Instance)) {
	x := *t.Flow.Instances.Get(r)
	f(&x)
	t.Emit(&GameInstanceChanged{Instance: x})
}

// changeMembership lets f change a copy of a membership, and tells the player if the status has changed.
func (t *transaction) changeMembership(r flow.MembershipRef, f func(*flow.Membership)) {
	m := *t.Flow.Memberships.Get(r)
	was := m.Status
	f(&m)
	if suspect := t.Flow.Instances.Get(m.InstanceRef()).Suspect; suspect != 0 && m.HoldBy != 0 {
		m.HoldLeft, m.HoldBy = max(int64(m.HoldBy-t.Contact), 1), 0
	}
	t.Emit(&MembershipChanged{Membership: m})
	if m.Status != was {
		t.touch(m.PlayerRef())
		t.tellPlayers(flow.OnGameMembershipChanged, flow.Message{
			Instance: m.Instance, OldStatus: was, Status: m.Status, Deadline: t.holdUntil(&m),
		}, m.Player)
	}
}

// member returns the flow record of a member of a party.
func (t *transaction) member(id string) *flow.Player {
	r, _ := t.Flow.Player(id)
	return t.Flow.Players.Get(r)
}

// presenceOf returns an event with the current values, for its caller to modify.
func presenceOf(p *flow.Player) *PresenceChanged {
	return &PresenceChanged{p.ID, p.Presence, p.Stream, p.PresenceBy, p.OfflineSince, p.RemoveBy, p.LeaveQueueBy, p.PolledBy, p.Node}
}

func versionOf(p *flow.Player) string {
	if p.Profile == nil {
		return ""
	}
	return p.Profile.ClientVersion
}
