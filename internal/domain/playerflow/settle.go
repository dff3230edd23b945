package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Settle sets the deadlines of the players and parties that were touched, and emits the events for players, the studio and game servers.
//
// While a command is decided, and while hosting and matchmaking call the hooks, records change, and touch, setKeys and tellPlayers keep
// track. Settle derives the consequences from the state as a whole, once, after the last change:
//
//  1. planPlayer and planParty start and stop the deadlines of each touched player and party as the state requires. A deadline that runs
//     already keeps its end, so a needless touch changes nothing. They touch no other record, so one pass is enough.
//  2. account records who changed the keys of players, and why.
//  3. Each player whose keys changed gets one OnGameSessionChanged with the old and the new keys, however many steps the change took
//     (I9). It comes before all other events, so that a client knows its phase when it reads them.
//  4. The events noted with tellPlayers follow in their order.
//  5. Players whose allowed actions differ from those before the transaction get OnAllowedActionsChanged.
//  6. Game servers get their notices.
//  7. The caller's answer gets the revision and the number of the last event, which count all of the above.
//
// A change that is not tracked has no effect here: a change of keys without setKeys causes no event, and a player who is not touched may
// keep a wrong deadline or lack one. Audit detects both (I9, I12, held).
func (t *transaction) Settle() {
	f := &t.scratch
	for i := 0; i < len(f.players); i++ { // planning touches no other records
		t.planPlayer(f.players[i])
	}
	for i := 0; i < len(f.parties); i++ {
		t.planParty(f.parties[i])
	}
	t.account()
	for _, x := range f.changed {
		p := t.Flow.Players.Get(x.player)
		t.write(flow.OnGameSessionChanged, (&flow.Message{
			Cause: x.cause, Record: flow.Record{Rev: p.Rev, Keys: p.Keys}, Old: x.keys, Allowed: t.AllowedActions(x.player),
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
	if f.record != nil {
		t.answer()
	}
	t.Reset()
}

// Reset discards the work of Settle.
func (t *transaction) Reset() { t.scratch = scratch{} }

// answer fills in the flow record of the caller's answer and stores the answer for a repeat of the request.
func (t *transaction) answer() {
	r, ok := t.Flow.Player(t.own().of)
	if !ok {
		return
	}
	p := t.Flow.Players.Get(r)
	*t.own().record = flow.Record{Rev: p.Rev, Seq: p.Seq, Keys: p.Keys}
	by := t.own().caller
	if by == nil || by.Request == "" {
		return
	}
	key := RequestKey(by)
	if x, ok := t.Flow.Request(key); ok && x.At.Add(RequestsKept) >= t.Now {
		return // another call has the same key: a hash collision with odds of one in 10^19, or an attack
	}
	since := t.Now.Add(-RequestsKept)
	if oldest, ok := t.Flow.OldestRequest(); ok && t.Flow.Requests.Len() >= t.Limits.RequestsMax {
		since = max(since, oldest.At+1)
	}
	t.Emit(&RequestAnswered{
		flow.Request{Key: key, At: t.Now, Player: by.Player, Flow: *t.own().record, Made: by.Made, Proof: by.proof}, since,
	})
}

// planPlayer sets the deadlines for the return of a player's client.
func (t *transaction) planPlayer(r flow.PlayerRef) {
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
	until(&e.LeaveQueueBy, away && t.searching(p), t.Contact.Add(config.Search.OfflineGrace))
	if e.RemoveBy != p.RemoveBy || e.LeaveQueueBy != p.LeaveQueueBy {
		t.Emit(e)
	}
}

// searching reports whether the absence of a player would hold back a search. It would not while a match waits for acceptance.
func (t *transaction) searching(p *flow.Player) bool {
	if p.Keys.Ticket.IsZero() {
		return false
	}
	return t.SearchWaits(p.Keys.Party)
}

// SearchWaits reports whether a party searches and no match of its ticket waits for acceptance.
func (c *State) SearchWaits(party flow.PartyID) bool {
	r, ok := c.Flow.Party(party)
	if !ok {
		return false
	}
	s := c.Flow.Parties.Get(r).Search
	return s != nil && s.Status <= flow.Held
}

// planParty sets the deadlines of a party whose members or leader are away, and holds its search back while a member is away.
func (t *transaction) planParty(id flow.PartyID) {
	r, ok := t.Flow.Party(id)
	if !ok {
		return
	}
	config := &t.Config.Parties
	p := *t.Flow.Parties.Get(r)
	was := p
	var leaderHere, otherOnline, present bool
	var since domain.Time // when the last leader went offline
	var held []string
	for _, m := range p.Members {
		x := t.member(m.Player)
		present = present || x.Here() || !x.Keys.Game.IsZero()
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
	case present:
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

// planReady sets and clears the deadlines after which members are no longer ready. They are cleared while the party searches or the
// member is in a game, and start anew afterwards. It reports whether one has changed.
func (t *transaction) planReady(p *flow.Party) (changed bool) {
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

// holdSearch records which members hold back a party's search, and reports whether that has changed.
func (t *transaction) holdSearch(p *flow.Party, held []string) bool {
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
