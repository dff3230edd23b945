package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// A player's allowed actions change with the keys, which OnGameSessionChanged reports, and with much else: a member becomes ready, a
// leader leaves, a seat is lost, a lock ends. Before an event is applied, the affected players and their allowed actions are recorded.
// At the end of the transaction, players whose actions differ are told.

// actionsBefore holds what a player was allowed to do before the transaction.
type actionsBefore struct {
	player  string
	allowed flow.Actions
}

// noteActions records the players whose actions an event may change. It runs before the event is applied. A change of one member also
// affects the party's leaders, who may search only with all members.
func (t *transaction) noteActions(event kernel.Event) {
	switch e := event.(type) {
	case *PlayerKeysChanged: // OnGameSessionChanged tells that player
		if r, ok := t.Flow.Player(e.Player); ok && t.Flow.Players.Get(r).Keys.Game != e.Keys.Game {
			t.noteLeaders(r)
		}
	case *PresenceChanged:
		if r, ok := t.Flow.Player(e.Player); ok && t.Flow.Players.Get(r).Here() != (e.Presence != flow.Offline) {
			t.noteActor(e.Player)
			t.noteLeaders(r)
		}
	case *PlayerChanged:
		r, ok := t.Flow.Player(e.Player)
		if !ok {
			return
		}
		p := t.Flow.Players.Get(r)
		if e.UnlockAt != p.UnlockAt || e.RequeueUntil != p.Requeues().Until || !slices.Equal(e.Penalties, p.Penalties) {
			t.noteActor(e.Player)
			t.noteLeaders(r)
		}
	case *MembershipChanged:
		if r, ok := t.Flow.Player(e.Membership.Player); ok {
			if now := t.Flow.Players.Get(r).Membership(); now == 0 || t.Flow.Memberships.Get(now).Status != e.Membership.Status {
				t.noteActor(e.Membership.Player)
			}
		}
	case *PartyChanged:
		t.noteMembers(e.Party.ID)
		for _, m := range e.Party.Members {
			t.noteActor(m.Player)
		}
	case *GameInstanceChanged:
		r, ok := t.Flow.Instance(e.Instance.ID)
		if !ok || t.Flow.Instances.Get(r).Status == e.Instance.Status {
			return
		}
		for _, m := range t.Flow.Instances.Get(r).Members() {
			t.noteActor(t.Flow.Memberships.Get(m).Player)
		}
	}
}

// noteLeaders records the leaders of a player's party.
func (t *transaction) noteLeaders(r flow.PlayerRef) {
	party, ok := t.Flow.Party(t.Flow.Players.Get(r).Keys.Party)
	if !ok {
		return
	}
	for _, m := range t.Flow.Parties.Get(party).Members {
		if m.Leader {
			t.noteActor(m.Player)
		}
	}
}

func (t *transaction) noteMembers(party flow.PartyID) {
	r, ok := t.Flow.Party(party)
	if !ok {
		return
	}
	for _, m := range t.Flow.Parties.Get(r).Members {
		t.noteActor(m.Player)
	}
}

// noteActor records a logged-in player; others get their actions at the next login.
func (t *transaction) noteActor(player string) {
	if t.own().isActor[player] {
		return
	}
	r, ok := t.Flow.Player(player)
	if !ok || t.Flow.Players.Get(r).Login() == 0 {
		return
	}
	note(&t.own().isActor, player)
	t.own().actors = append(t.own().actors, actionsBefore{player, t.AllowedActions(r)})
}

// tellActions tells players whose allowed actions differ from those before the transaction. It skips players whose keys have changed,
// because OnGameSessionChanged tells them.
func (t *transaction) tellActions() {
	if len(t.own().actors) == 0 {
		return
	}
	var order []flow.Actions
	to := map[flow.Actions][]string{}
	for _, x := range t.own().actors {
		r, ok := t.Flow.Player(x.player)
		if !ok || t.own().isChanged[r] || t.Flow.Players.Get(r).Login() == 0 {
			continue
		}
		now := t.AllowedActions(r)
		if now == x.allowed {
			continue
		}
		if to[now] == nil {
			order = append(order, now)
		}
		to[now] = append(to[now], x.player)
	}
	for _, allowed := range order {
		t.write(flow.OnAllowedActionsChanged, (&flow.Message{Allowed: allowed}).Encode(), to[allowed])
	}
}
