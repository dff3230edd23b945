package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// flowTx is what one transaction does to players, and settles at its end: whoever's keys changed is told first, then
// comes what else players are told; whoever is touched gets the deadlines that the new state asks for.
type flowTx struct {
	changed []keysBefore
	told    []telling
	notices []serverNotice
	players []flow.PlayerRef
	parties []domain.UUID

	actors []actionsBefore

	isChanged, isTouched map[flow.PlayerRef]bool
	isActor              map[string]bool
	isPlanned            map[domain.UUID]bool
	caller               *Caller
	by                   flow.Actor  // who asks for the command, if the command itself does not tell
	of                   string      // whose stand is answered
	stand                *flow.Stand // where to
}

type keysBefore struct {
	player flow.PlayerRef
	keys   flow.Keys
	cause  string // a Tick has several
}

type telling struct {
	kind flow.MessageType
	body string
	to   []string

	studio bool // nobody else is told
}

// Caller is the player who wishes something, by a client that is logged in.
type Caller struct {
	Player  string
	Session domain.UUID
	Request string  // X-Request-Id: a repeat within ten minutes gets the same answer; empty: none
	IfRev   *uint64 // the wish holds only for this revision of the flow record
	Look    bool    // change nothing: only say whether the wish would be fulfilled. Not every command can

	// Result
	Flow     flow.Stand  // after the call
	Made     domain.UUID // what the call made, if it made something: a party, an invite, a game instance, a player session
	Repeated bool        // this very request was carried out before; Flow and Made are those of then
	Would    bool        // of a look: the wish would be fulfilled, and change something

	kind  string      // keeps calls apart whose answers hold a secret; empty: together with all others
	proof domain.UUID // of a login: what it uses up
}

// caller finds the player who wishes something and recognises a wish that was fulfilled before.
func (t *Tx) caller(by *Caller, cause string) (r flow.PlayerRef, done bool, err error) {
	if err := t.flowOn(); err != nil {
		return 0, false, err
	}
	r, err = t.controls(by.Player, by.Session)
	if err != nil {
		return 0, false, err
	}
	if by.Request != "" {
		if x, ok := t.Remembered(by); ok {
			by.Flow, by.Made, by.Repeated = x.Flow, x.Made, true
			return r, true, nil
		}
	}
	if p := t.Flow.Players.Get(r); by.IfRev != nil && *by.IfRev != p.Rev {
		return 0, false, flow.Refuse(flow.Refusal{Code: flow.RevConflict}, "the flow record of %s has revision %d, not %d", p.ID, p.Rev, *by.IfRev)
	}
	t.Cause = cause
	if !by.Look {
		t.own().caller = by
		t.stand(by.Player, &by.Flow)
	}
	return r, false, nil
}

// looks reports, behind the last check of a command, whether its caller only wants to know how the checks end.
func (by *Caller) looks() bool {
	by.Would = by.Look
	return by.Look
}

// stand says where the answer goes that tells how a player stands after everything.
func (t *Tx) stand(player string, to *flow.Stand) { t.own().of, t.own().stand = player, to }

func RequestKey(by *Caller) uint64 {
	return kernel.RequestHash(by.Player + "\x00" + by.kind + by.Request)
}

// Remembered finds the answer of an earlier call with the same request id. The key is short and no secret: that it is the same
// player's is looked at, too.
func (t *Tx) Remembered(by *Caller) (*flow.Request, bool) {
	x, ok := t.Flow.Request(RequestKey(by))
	return x, ok && by.Request != "" && x.Player == by.Player && x.Proof == by.proof && x.At.Add(RequestsKept) > t.Now
}

// flowOn refuses what needs player flow when there is none.
func (t *Tx) flowOn() error {
	if t.Limits.Flow == nil {
		return flow.Refuse(flow.Refusal{Code: flow.Unavailable}, "player flow is not enabled")
	}
	return nil
}

// controls checks that a login session is the one that acts for a player.
func (t *Tx) controls(player string, id domain.UUID) (flow.PlayerRef, error) {
	r, ok := t.Flow.Login(id)
	if !ok || t.Flow.Logins.Get(r).Player != player {
		return 0, flow.Refuse(flow.Refusal{Code: flow.SessionNotFound}, "login session fs-%s of player %s not found", id, player)
	}
	if t.Flow.Logins.Get(r).State != flow.LoginLive {
		return 0, flow.Refuse(flow.Refusal{Code: flow.SessionReplaced}, "login session fs-%s of player %s was replaced by a later one", id, player)
	}
	p, _ := t.Flow.Player(player)
	return p, nil
}

// playerNamed finds a player whom a trusted caller names.
func (t *Tx) playerNamed(id string) (flow.PlayerRef, error) {
	r, ok := t.Flow.Player(id)
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.PlayerNotFound, Players: []string{id}}, "player %s not found", id)
	}
	return r, nil
}

// roomForPlayer refuses a player whom the service does not know yet when it knows as many as it may.
func (t *Tx) roomForPlayer() error {
	if n, most := t.Flow.Players.Len(), t.Limits.PlayersMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "%d players are known; the limit is %d", n, most)
	}
	return nil
}

// touch notes players whose deadlines may have to change, and their parties.
func (t *Tx) touch(r flow.PlayerRef) {
	if !t.own().isTouched[r] {
		note(&t.own().isTouched, r)
		t.own().players = append(t.own().players, r)
	}
	t.touchParty(t.Flow.Players.Get(r).Keys.Party)
}

func (t *Tx) touchParty(id domain.UUID) {
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

// setKeys changes the keys of a player. The revision rises once in a transaction.
func (t *Tx) setKeys(r flow.PlayerRef, change func(*flow.Keys)) {
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

// tellPlayers notes what players are told once everything has happened.
func (t *Tx) tellPlayers(kind flow.MessageType, m flow.Message, to ...string) {
	if len(to) == 0 {
		return
	}
	t.own().told = append(t.own().told, telling{kind: kind, body: m.Encode(), to: to})
}

// Settle plans the deadlines of those who were touched, and writes down what players and servers are told.
//
// While a command is decided, and while hosting and matchmaking call the hooks, records change and what they concern is noted: touch,
// setKeys, tellPlayers. What follows from the state as a whole is worked out here, once, behind the last of these changes:
//
//  1. planPlayer and planParty compare the deadlines of each touched player and party with those that the state asks for. One that runs
//     already keeps its end, so a touch too many changes nothing. They touch no others, so one pass is enough.
//  2. account writes down who changed the keys of players, and why.
//  3. OnGameSessionChanged for each player whose keys changed, with the keys of before and of now: exactly one, however many steps it
//     took (I9), and before everything else, so that a client knows its phase when it hears the rest.
//  4. What was noted with tellPlayers, in its order.
//  5. OnAllowedActionsChanged, for players who may do something else than before the transaction.
//  6. What game servers are told.
//  7. The caller's answer: revision and number of the last event, which count all of that.
//
// A change that is not noted is missing here: keys that are not changed by setKeys send no event, and a player who is not touched has
// a deadline too many or too few. Audit finds both (I9, I12, held).
func (t *Tx) Settle() {
	f := &t.scratch
	for i := 0; i < len(f.players); i++ { // planning touches no others
		t.planPlayer(f.players[i])
	}
	for i := 0; i < len(f.parties); i++ {
		t.planParty(f.parties[i])
	}
	t.account()
	for _, x := range f.changed {
		p := t.Flow.Players.Get(x.player)
		t.write(flow.OnGameSessionChanged, (&flow.Message{
			Cause: x.cause, Stand: flow.Stand{Rev: p.Rev, Keys: p.Keys}, Old: x.keys, Allowed: t.AllowedActions(x.player),
		}).Encode(), []string{p.ID})
	}
	for _, x := range f.told {
		if x.studio {
			t.writeForStudio(x.kind, x.body, x.to)
			continue
		}
		t.write(x.kind, x.body, x.to)
	}
	t.tellActions()
	t.writeNotices()
	if f.stand != nil {
		t.answer()
	}
	t.Reset()
}

// Reset forgets what Settle would do.
func (t *Tx) Reset() { t.scratch = flowTx{} }

// outboxBytesMax bounds what one player's outbox holds, whatever is in it.
const outboxBytesMax = 512 << 10

// write puts one event into the outboxes of players.
func (t *Tx) write(kind flow.MessageType, body string, to []string) {
	keep := &t.Config.Sessions
	e := &PlayersTold{Type: kind, Body: body, To: make([]Addressee, 0, len(to))}
	for _, id := range to {
		r, ok := t.Flow.Player(id)
		if !ok {
			continue
		}
		p := t.Flow.Players.Get(r)
		events, first, size := p.Outbox(), p.FirstKept(), p.OutboxBytes()+len(body)
		for len(events) > 0 {
			n := len(events) + 1
			old := n > keep.EventsKept && events[0].At.Add(keep.EventsKeptFor) <= t.Now
			if !old && n <= flow.EventsLimit && size <= outboxBytesMax {
				break
			}
			size -= len(events[0].Body)
			events = events[1:]
			first++
		}
		e.To = append(e.To, Addressee{id, p.Seq + 1, first})
	}
	if len(e.To) > 0 {
		t.tellStudio(e)
		t.Emit(e)
	}
}

// answer fills in what every answer to a player carries, and keeps it for a repeat of the request.
func (t *Tx) answer() {
	r, ok := t.Flow.Player(t.own().of)
	if !ok {
		return
	}
	p := t.Flow.Players.Get(r)
	*t.own().stand = flow.Stand{Rev: p.Rev, Seq: p.Seq, Keys: p.Keys}
	by := t.own().caller
	if by == nil || by.Request == "" {
		return
	}
	key := RequestKey(by)
	if x, ok := t.Flow.Request(key); ok && x.At.Add(RequestsKept) >= t.Now {
		return // another call has the same key, by a chance in ten to the nineteenth or on purpose
	}
	since := t.Now.Add(-RequestsKept)
	if oldest, ok := t.Flow.OldestRequest(); ok && t.Flow.Requests.Len() >= t.Limits.RequestsMax {
		since = max(since, oldest.At+1)
	}
	t.Emit(&RequestAnswered{
		flow.Request{Key: key, At: t.Now, Player: by.Player, Flow: *t.own().stand, Made: by.Made, Proof: by.proof}, since,
	})
}

// planPlayer sets the deadlines that wait for a player's client to come back.
func (t *Tx) planPlayer(r flow.PlayerRef) {
	if r == 0 {
		return
	}
	config := &t.Config
	p := t.Flow.Players.Get(r)
	e := presenceOf(p)
	away := p.Presence == flow.Offline
	until := func(at *domain.ContactTime, waits bool, grace domain.ContactTime) {
		switch {
		case !waits:
			*at = 0
		case *at == 0:
			*at = grace
		}
	}
	inGame := !p.Keys.Game.IsZero()
	until(&e.RemoveBy, away && !p.Keys.Party.IsZero() && !inGame, t.Contact.Add(config.Parties.OfflineRemoval))
	until(&e.LeaveQueueBy, away && t.searches(p), t.Contact.Add(config.Search.OfflineGrace))
	if e.RemoveBy != p.RemoveBy || e.LeaveQueueBy != p.LeaveQueueBy {
		t.Emit(e)
	}
}

// searches reports whether the absence of a player holds a search back: from the acceptance on it does not.
func (t *Tx) searches(p *flow.Player) bool {
	if p.Keys.Ticket.IsZero() {
		return false
	}
	return t.SearchWaits(p.Keys.Party)
}

// SearchWaits reports whether a party searches and no match of its ticket waits to be accepted.
func (c *State) SearchWaits(party domain.UUID) bool {
	r, ok := c.Flow.Party(party)
	if !ok {
		return false
	}
	s := c.Flow.Parties.Get(r).Search
	return s != nil && s.Status <= flow.Held
}

// presenceOf is the event that changes nothing.
func presenceOf(p *flow.Player) *PresenceChanged {
	return &PresenceChanged{p.ID, p.Presence, p.Stream, p.PresenceBy, p.OfflineSince, p.RemoveBy, p.LeaveQueueBy, p.PolledBy}
}

// planParty sets the deadlines of a party where nobody is, or whose leader is away, and holds its search back while a
// member is.
func (t *Tx) planParty(id domain.UUID) {
	r, ok := t.Flow.Party(id)
	if !ok {
		return
	}
	config := &t.Config.Parties
	p := *t.Flow.Parties.Get(r)
	was := p
	var leaderHere, otherOnline, anybody bool
	var since domain.Time // when the last leader went
	var held []string
	for _, m := range p.Members {
		x := t.member(m.Player)
		anybody = anybody || x.Here() || !x.Keys.Game.IsZero()
		if m.Leader {
			leaderHere = leaderHere || x.Here()
			since = max(since, x.OfflineSince)
		} else {
			otherOnline = otherOnline || x.Presence == flow.Online
		}
		if x.Presence != flow.Online {
			held = append(held, m.Player)
		}
	}
	switch {
	case leaderHere || !otherOnline:
		p.LeaderBy = 0
	case p.LeaderBy == 0:
		p.LeaderBy = max(t.ContactTime(since).Add(config.LeaderGrace), t.Contact)
	}
	switch {
	case anybody:
		p.StaleBy = 0
	case p.StaleBy == 0:
		p.StaleBy = t.Contact.Add(config.StaleExpiration)
	}
	status := t.holdSearch(&p, held)
	clocks := t.planReady(&p)
	if p.LeaderBy != was.LeaderBy || p.StaleBy != was.StaleBy || status || clocks {
		t.Emit(&PartyChanged{p})
	}
	if status {
		t.tellPlayers(flow.OnMatchmakingStatus, flow.Message{Search: p.Search, Ticket: p.Search.Ticket}, p.Players()...)
	}
}

// planReady starts and stops the clocks after which members are not ready any more. None runs while the party searches or
// the member is in a game: it begins anew after that. It reports whether one has changed.
func (t *Tx) planReady(p *flow.Party) (changed bool) {
	timeout := t.Config.Parties.ReadyTimeout
	for i, m := range p.Members {
		waits := m.Ready && timeout > 0 && p.Search == nil && t.member(m.Player).Keys.Game.IsZero()
		if waits == (m.ReadyBy != 0) {
			continue
		}
		if !changed {
			changed, p.Members = true, slices.Clone(p.Members)
		}
		p.Members[i].ReadyBy = 0
		if waits {
			p.Members[i].ReadyBy = t.Contact.Add(timeout)
		}
	}
	return changed
}

// holdSearch notes who holds the search of a party back. It reports whether players are to be told.
func (t *Tx) holdSearch(p *flow.Party, held []string) bool {
	if p.Search == nil || p.Search.Status > flow.Held || slices.Equal(p.Search.HeldBy, held) {
		return false
	}
	s := *p.Search
	s.HeldBy = held
	switch {
	case len(held) > 0:
		s.Status = flow.Held
	default:
		s.Status = flow.Searching
	}
	p.Search = &s
	return true
}

// member returns the flow record of a member of a party.
func (t *Tx) member(id string) *flow.Player {
	r, _ := t.Flow.Player(id)
	return t.Flow.Players.Get(r)
}
