package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// notInMatchmaking refuses what would change what the matchmaker was told.
func notInMatchmaking(p *flow.Player) error {
	if p.Keys.Phase() == flow.Matchmaking {
		return flow.Refuse(flow.Refusal{Code: flow.InMatchmaking}, "player %s is in matchmaking", p.ID)
	}
	return nil
}

// mayChangeParty checks that a player may go to another party now.
func (t *Tx) mayChangeParty(p *flow.Player) error {
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	if !p.Keys.Game.IsZero() && t.Config.Parties.NoChangeInGame {
		return flow.Refuse(flow.Refusal{Code: flow.PartyChangeLocked}, "player %s is in a game, and parties are not changed in a game", p.ID)
	}
	return nil
}

// createParty makes a party with one member, who leads it.
func (t *Tx) createParty(r flow.PlayerRef, party flow.Party) flow.PartyRef {
	config := &t.Config.Parties
	p := t.Flow.Players.Get(r)
	if party.MembersMax == 0 {
		party.MembersMax = config.MembersMax
	}
	if party.Joinability == 0 {
		party.Joinability = config.Joinability
	}
	party.Created, party.Code = t.Now, t.newPartyCode()
	party.Members = []flow.Member{{Player: p.ID, Joined: t.Now, Leader: true}}
	id := party.ID
	t.Emit(&PartyChanged{party})
	t.setKeys(r, func(k *flow.Keys) { k.Party = id })
	t.tellPlayers(flow.OnAddedToParty, flow.Message{PartyID: id}, t.Flow.Players.Get(r).ID)
	made, _ := t.Flow.Party(id)
	t.changeParty(made, flow.PartyCreated, t.Flow.Players.Get(r).ID, func(*flow.Party) {})
	return made
}

// newPartyCode makes a code that people can read to each other: no letter or digit looks like another one.
func (t *Tx) newPartyCode() string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	for {
		id := t.NewID()
		code := make([]byte, 8)
		for i := range code {
			code[i] = alphabet[id[i]%32]
		}
		// Bytes 6 and 8 of an id have fixed bits.
		code[6] = alphabet[id[9]%32]
		if _, taken := t.Flow.PartyByCode(string(code)); !taken {
			return string(code)
		}
	}
}

// changeParty lets f change a copy of a party, raises its revision, and tells its members.
func (t *Tx) changeParty(r flow.PartyRef, change flow.PartyChange, player string, f func(*flow.Party)) {
	p := *t.Flow.Parties.Get(r)
	p.Members = slices.Clone(p.Members)
	f(&p)
	p.Rev++
	t.Emit(&PartyChanged{p})
	t.touchParty(p.ID)
	view := t.PartyView(r)
	t.tellPlayers(flow.OnPartyChanged, flow.Message{Party: &view, Change: change, Player: player}, view.Players()...)
}

func versionOf(p *flow.Player) string {
	if p.Profile == nil {
		return ""
	}
	return p.Profile.ClientVersion
}

// joinParty adds a player who is in no party.
func (t *Tx) joinParty(r flow.PlayerRef, target flow.PartyRef) {
	player := t.Flow.Players.Get(r).ID
	id := t.Flow.Parties.Get(target).ID
	if x := t.pendingInvite(id, player); x != 0 {
		invite := *t.Flow.Invites.Get(x)
		t.Emit(&InviteRemoved{invite.ID})
		t.tellPlayers(flow.OnPartyInviteResponse, flow.Message{Invite: t.inviteView(&invite), Player: player, Accepted: true}, invite.From)
	}
	t.setKeys(r, func(k *flow.Keys) { k.Party = id })
	t.tellPlayers(flow.OnAddedToParty, flow.Message{PartyID: id}, player)
	t.changeParty(target, flow.MemberJoined, player, func(p *flow.Party) {
		p.Members = append(p.Members, flow.Member{Player: player, Joined: t.Now})
		p.Kicked = slices.DeleteFunc(slices.Clone(p.Kicked), func(k flow.Kicked) bool { return k.Player == player })
	})
}

// searchReasons is why a search ends when a member goes.
var searchReasons = map[flow.Reason]flow.Reason{
	flow.Left: flow.MemberLeft, flow.Switched: flow.MemberLeft, flow.WasKicked: flow.MemberKicked,
	flow.Disbanded: flow.PartyShutDown, flow.ShutDown: flow.PartyShutDown,
}

// leaveParty takes a player out of the party, if in one. Any change of the members ends the search: the ticket is for all
// of them.
func (t *Tx) leaveParty(r flow.PlayerRef, reason flow.Reason) {
	player := t.Flow.Players.Get(r)
	id, who := player.Keys.Party, player.ID
	party, ok := t.Flow.Party(id)
	if !ok {
		return
	}
	if t.Flow.Parties.Get(party).Search != nil {
		why, ok := searchReasons[reason]
		if !ok {
			why = flow.MemberRemoved
		}
		t.endSearch(party, flow.OnLeftMatchmaking, why, who)
	}
	if player.RemoveBy != 0 { // the clock is this party's
		e := presenceOf(player)
		e.RemoveBy = 0
		t.Emit(e)
	}
	t.touch(r)
	t.setKeys(r, func(k *flow.Keys) { k.Party = domain.UUID{} })
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, who)
	if len(t.Flow.Parties.Get(party).Members) == 1 {
		t.removeParty(party)
		return
	}
	change := flow.MemberHasLeft
	if reason == flow.WasKicked {
		change = flow.MemberWasKicked
	}
	t.changeParty(party, change, who, func(p *flow.Party) {
		p.Members = slices.DeleteFunc(p.Members, func(m flow.Member) bool { return m.Player == who })
		t.succeed(p, "")
	})
}

// succeed gives a party without a leader another one: the longest-standing member who is online, else the
// longest-standing one. `not` is passed over while anybody else is online.
func (t *Tx) succeed(p *flow.Party, not string) {
	if slices.ContainsFunc(p.Members, func(m flow.Member) bool { return m.Leader }) {
		return
	}
	next := 0
	for i, m := range p.Members {
		if m.Player != not && t.member(m.Player).Presence == flow.Online {
			next = i
			break
		}
	}
	p.Members[next].Leader = true
	p.LeaderBy = 0
}

// removeParty drops a party with its invites. Its last member has left, or leaves in the same transaction.
func (t *Tx) removeParty(r flow.PartyRef) {
	id := t.Flow.Parties.Get(r).ID
	for _, x := range slices.Clone(t.Flow.InvitesOf(id)) {
		t.endInvite(x, flow.PartyGone)
	}
	t.Emit(&PartyRemoved{id})
}

// shutDownParty ends a party for all its members.
func (t *Tx) shutDownParty(r flow.PartyRef, reason flow.Reason) {
	if t.Flow.Parties.Get(r).Search != nil {
		t.endSearch(r, flow.OnLeftMatchmaking, flow.PartyShutDown, "")
	}
	p := t.Flow.Parties.Get(r)
	id, players := p.ID, p.Players()
	for _, player := range players {
		m, _ := t.Flow.Player(player)
		t.setKeys(m, func(k *flow.Keys) { k.Party = domain.UUID{} })
	}
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, players...)
	t.removeParty(r)
}

// ownParty finds the party of a player.
func (t *Tx) ownParty(r flow.PlayerRef) (flow.PartyRef, error) {
	p := t.Flow.Players.Get(r)
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotInParty}, "player %s is in no party", p.ID)
	}
	return party, nil
}

// ledParty finds the party that a player leads.
func (t *Tx) ledParty(r flow.PlayerRef) (flow.PartyRef, error) {
	party, err := t.ownParty(r)
	if err != nil {
		return 0, err
	}
	if p := t.Flow.Players.Get(r); !t.Flow.Parties.Get(party).Leads(p.ID) {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "player %s does not lead party pty-%s", p.ID, p.Keys.Party)
	}
	return party, nil
}

// partyCaller finds the player who wishes something of a party, and the party; see caller. Find is ownParty, ledParty or
// ledWith.
func (t *Tx) partyCaller(by *Caller, cause string, find func(r flow.PlayerRef) (flow.PartyRef, error)) (r flow.PlayerRef, party flow.PartyRef, done bool, err error) {
	r, done, err = t.caller(by, cause)
	if err == nil && !done {
		party, err = find(r)
	}
	return r, party, done, err
}

// ledWith finds the party that a player leads and checks that another player is in it.
func (t *Tx) ledWith(target string) func(r flow.PlayerRef) (flow.PartyRef, error) {
	return func(r flow.PlayerRef) (flow.PartyRef, error) {
		party, err := t.ledParty(r)
		if err != nil {
			return 0, err
		}
		_, ok := t.Flow.Parties.Get(party).Member(target)
		switch {
		case !ok:
			return 0, flow.Refuse(flow.Refusal{Code: flow.TargetNotInParty, Players: []string{target}}, "player %s is not in the party", target)
		case target == t.Flow.Players.Get(r).ID:
			return 0, flow.Refuse(flow.Refusal{Code: flow.CannotTargetSelf}, "player_id: %s is the caller", target)
		}
		return party, nil
	}
}
