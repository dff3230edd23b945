package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

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
func (t *transaction) Settle() {
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

// Reset forgets what Settle would do.
func (t *transaction) Reset() { t.scratch = scratch{} }

// answer fills in what every answer to a player carries, and keeps it for a repeat of the request.
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
		return // another call has the same key, by a chance in ten to the nineteenth or on purpose
	}
	since := t.Now.Add(-RequestsKept)
	if oldest, ok := t.Flow.OldestRequest(); ok && t.Flow.Requests.Len() >= t.Limits.RequestsMax {
		since = max(since, oldest.At+1)
	}
	t.Emit(&RequestAnswered{
		flow.Request{Key: key, At: t.Now, Player: by.Player, Flow: *t.own().record, Made: by.Made, Proof: by.proof}, since,
	})
}

// planPlayer sets the deadlines that wait for a player's client to come back.
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

// searching reports whether the absence of a player holds a search back: from the acceptance on it does not.
func (t *transaction) searching(p *flow.Player) bool {
	if p.Keys.Ticket.IsZero() {
		return false
	}
	return t.SearchWaits(p.Keys.Party)
}

// SearchWaits reports whether a party searches and no match of its ticket waits to be accepted.
func (c *State) SearchWaits(party flow.PartyID) bool {
	r, ok := c.Flow.Party(party)
	if !ok {
		return false
	}
	s := c.Flow.Parties.Get(r).Search
	return s != nil && s.Status <= flow.Held
}

// planParty sets the deadlines of a party where nobody is, or whose leader is away, and holds its search back while a
// member is.
func (t *transaction) planParty(id flow.PartyID) {
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

// holdSearch notes who holds the search of a party back. It reports whether players are to be told.
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
