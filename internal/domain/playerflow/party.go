package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
)

// notInMatchmaking refuses to change data that the matchmaker already has.
func notInMatchmaking(p *flow.Player) error {
	if p.Keys.Phase() == flow.Matchmaking {
		return flow.Refuse(flow.Refusal{Code: flow.InMatchmaking}, "player %s is in matchmaking", p.ID)
	}
	return nil
}

// mayChange checks that a player may change parties now.
func (t *parties) mayChange(p *flow.Player) error {
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	if !p.Keys.Game.IsZero() && t.Config.Parties.NoChangeInGame {
		return flow.Refuse(flow.Refusal{Code: flow.PartyChangeLocked}, "player %s is in a game, and parties are not changed in a game", p.ID)
	}
	return nil
}

// create makes a party with one member, who leads it.
func (t *parties) create(r flow.PlayerRef, party flow.Party) flow.PartyRef {
	config := &t.Config.Parties
	p := t.Flow.Players.Get(r)
	if party.MembersMax == 0 {
		party.MembersMax = config.MembersMax
	}
	if party.Joinability == 0 {
		party.Joinability = config.Joinability
	}
	party.Created, party.Code = t.Now, t.newCode()
	party.Members = []flow.Member{{Player: p.ID, Joined: t.Now, Leader: true}}
	id := party.ID
	t.Emit(&PartyChanged{party})
	t.setKeys(r, func(k *flow.Keys) { k.Party = id })
	t.tellPlayers(flow.OnAddedToParty, flow.Message{PartyID: id}, t.Flow.Players.Get(r).ID)
	made, _ := t.Flow.Party(id)
	t.changeParty(made, flow.PartyCreated, t.Flow.Players.Get(r).ID, func(*flow.Party) {})
	return made
}

// newCode makes an invite code without easily confused letters and digits.
func (t *parties) newCode() string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	for {
		id := t.NewID()
		code := make([]byte, 8)
		for i := range code {
			code[i] = alphabet[id[i]%32]
		}
		// Bytes 6 and 8 of a UUID have fixed bits.
		code[6] = alphabet[id[9]%32]
		if _, taken := t.Flow.PartyByCode(string(code)); !taken {
			return string(code)
		}
	}
}

// join adds a player who is not in a party.
func (t *parties) join(r flow.PlayerRef, target flow.PartyRef) {
	player := t.Flow.Players.Get(r).ID
	id := t.Flow.Parties.Get(target).ID
	if x := t.invites.pending(id, player); x != 0 {
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

// searchReasons maps the reason for which a member leaves to the reason for the end of the search.
var searchReasons = map[flow.Reason]flow.Reason{
	flow.Left: flow.MemberLeft, flow.Switched: flow.MemberLeft, flow.WasKicked: flow.MemberKicked,
}

// leave removes a player from their party, if any. Any change of the members ends the search, because the ticket is for all of them.
func (t *parties) leave(r flow.PlayerRef, reason flow.Reason) {
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
		t.searches.end(party, flow.OnLeftMatchmaking, why, who)
	}
	if player.RemoveBy != 0 { // the deadline belongs to this party
		e := presenceOf(player)
		e.RemoveBy = 0
		t.Emit(e)
	}
	t.touch(r)
	t.setKeys(r, func(k *flow.Keys) { k.Party = flow.PartyID{} })
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, who)
	if len(t.Flow.Parties.Get(party).Members) == 1 {
		t.remove(party)
		return
	}
	change := flow.MemberHasLeft
	if reason == flow.WasKicked {
		change = flow.MemberWasKicked
	}
	t.changeParty(party, change, who, func(p *flow.Party) {
		p.Members = slices.DeleteFunc(p.Members, func(m flow.Member) bool { return m.Player == who })
		t.appointLeader(p, "")
	})
}

// appointLeader gives a party without a leader a new one: the longest-standing member who is online, else the longest-standing one. It
// chooses `not` only if no other member is online.
func (t *parties) appointLeader(p *flow.Party, not string) {
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

// remove removes a party and its invites. Its last member has left or leaves in the same transaction.
func (t *parties) remove(r flow.PartyRef) {
	id := t.Flow.Parties.Get(r).ID
	for _, x := range slices.Clone(t.Flow.InvitesOf(id)) {
		t.invites.end(x, flow.PartyGone)
	}
	t.Emit(&PartyRemoved{id})
}

// shutDown ends a party for all its members.
func (t *parties) shutDown(r flow.PartyRef, reason flow.Reason) {
	if t.Flow.Parties.Get(r).Search != nil {
		t.searches.end(r, flow.OnLeftMatchmaking, flow.PartyShutDown, "")
	}
	p := t.Flow.Parties.Get(r)
	id, players := p.ID, p.Players()
	for _, player := range players {
		m, _ := t.Flow.Player(player)
		t.setKeys(m, func(k *flow.Keys) { k.Party = flow.PartyID{} })
	}
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, players...)
	t.remove(r)
}

// of finds the party of a player.
func (t *parties) of(r flow.PlayerRef) (flow.PartyRef, error) {
	p := t.Flow.Players.Get(r)
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotInParty}, "player %s is in no party", p.ID)
	}
	return party, nil
}

// ledBy finds the party that a player leads.
func (t *parties) ledBy(r flow.PlayerRef) (flow.PartyRef, error) {
	party, err := t.of(r)
	if err != nil {
		return 0, err
	}
	if p := t.Flow.Players.Get(r); !t.Flow.Parties.Get(party).Leads(p.ID) {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "player %s does not lead party %s", p.ID, p.Keys.Party)
	}
	return party, nil
}

// partyCaller finds the player who makes a call about a party, and the party; see caller. find is of, ledBy or ledWith.
func (t *parties) partyCaller(by *Caller, cause string, find func(r flow.PlayerRef) (flow.PartyRef, error)) (r flow.PlayerRef, party flow.PartyRef, done bool, err error) {
	r, done, err = t.caller(by, cause)
	if err == nil && !done {
		party, err = find(r)
	}
	return r, party, done, err
}

// ledWith finds the party that a player leads and checks that another player is in it.
func (t *parties) ledWith(target string) func(r flow.PlayerRef) (flow.PartyRef, error) {
	return func(r flow.PlayerRef) (flow.PartyRef, error) {
		party, err := t.ledBy(r)
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

// toJoin finds the party and checks that it admits this player in this way.
func (t *parties) toJoin(cmd *JoinParty, p *flow.Player) (flow.PartyRef, error) {
	var target flow.PartyRef
	var invite *flow.Invite
	var ok bool
	switch {
	case !cmd.Invite.IsZero():
		x, err := t.invites.answerable(p.ID, cmd.Invite)
		if err != nil {
			return 0, err
		}
		invite = x
		target, ok = t.Flow.Party(x.Party)
	case cmd.Code != "":
		target, ok = t.Flow.PartyByCode(cmd.Code)
	default:
		target, ok = t.Flow.Party(cmd.Party)
	}
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party not found")
	}
	party := t.Flow.Parties.Get(target)
	switch {
	case p.Keys.Party == party.ID:
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in party %s already", p.ID, party.ID)
	case cmd.FailOnExisting && !p.Keys.Party.IsZero():
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	case party.Joinability == flow.Closed:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party %s is closed", party.ID)
	case party.Joinability == flow.InviteOnly && cmd.Code == "" && invite == nil && t.invites.pending(party.ID, p.ID) == 0:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party %s can be joined by code or invite", party.ID)
	}
	return target, nil
}

// mayJoin makes the remaining checks, in the order of docs/spec/player-flow.md#t1-note-3.
func (t *parties) mayJoin(target flow.PartyRef, p *flow.Player) error {
	party := t.Flow.Parties.Get(target)
	for _, k := range party.Kicked {
		if k.Player == p.ID && t.invites.pending(party.ID, p.ID) == 0 {
			return flow.Refuse(flow.Refusal{Code: flow.KickedNeedsInvite}, "player %s was kicked from party %s and needs a new invite", p.ID, party.ID)
		}
	}
	for _, m := range party.Members {
		if x := t.member(m.Player); slices.Contains(x.Blocked, p.ID) || slices.Contains(p.Blocked, x.ID) {
			return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "player %s may not be in a party with one of its members", p.ID)
		}
	}
	switch {
	case party.Search != nil && (!t.Config.Parties.JoinCancelsMatchmaking || party.Search.Status >= flow.Placing):
		return flow.Refuse(flow.Refusal{Code: flow.PartyInMatchmaking}, "party %s is in matchmaking", party.ID)
	case int32(len(party.Members)) >= party.MembersMax:
		return flow.Refuse(flow.Refusal{Code: flow.PartyFull}, "party %s: %d of %d members", party.ID, len(party.Members), party.MembersMax)
	}
	mine := versionOf(p)
	for _, m := range party.Members {
		if v := versionOf(t.member(m.Player)); v != "" && mine != "" && v != mine {
			return flow.Refuse(flow.Refusal{Code: flow.PartyVersionMismatch, Players: []string{m.Player}}, "client version %s, %s has %s", mine, m.Player, v)
		}
	}
	return nil
}

// leaderDue makes an online member the leader. The previous leader does not become leader again on returning.
func (t *parties) leaderDue(r flow.PartyRef) {
	next := *t.Flow.Parties.Get(r)
	next.Members = slices.Clone(next.Members)
	var old string
	for i, m := range next.Members {
		if m.Leader {
			old, next.Members[i].Leader = m.Player, false
		}
	}
	t.appointLeader(&next, old)
	leader := next.Members[slices.IndexFunc(next.Members, func(m flow.Member) bool { return m.Leader })].Player
	t.changeParty(r, flow.LeaderChanged, leader, func(p *flow.Party) { *p = next })
}

// readyDue marks members as not ready whose deadline has passed.
func (t *parties) readyDue(r flow.PartyRef) {
	for i, m := range t.Flow.Parties.Get(r).Members {
		if m.ReadyBy != 0 && m.ReadyBy <= t.Contact {
			t.changeParty(r, flow.ReadyChanged, m.Player, func(p *flow.Party) { p.Members[i].Ready, p.Members[i].ReadyBy = false, 0 })
		}
	}
}
