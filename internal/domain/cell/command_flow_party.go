package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// CreateParty makes a party of one. Made is its id.
type CreateParty struct {
	Caller
	ID             domain.UUID // of the party to be
	Attributes     string      // a JSON object; empty for none
	Joinability    flow.Joinability
	MembersMax     int32 // 0: the default
	FailOnExisting bool  // on_existing FAIL: not when the caller is in a party
}

func (cmd *CreateParty) decide(t *tx) error {
	r, done, err := t.caller(&cmd.Caller, "CreateParty")
	if err != nil || done {
		return err
	}
	config := &t.c.flowConfig.Parties
	p := t.c.flow.Players.Get(r)
	if err := t.mayChangeParty(p); err != nil {
		return err
	}
	if cmd.FailOnExisting && !p.Keys.Party.IsZero() {
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	}
	if cmd.MembersMax < 0 || cmd.MembersMax > config.MembersMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "max_members: %d, want 1 to %d", cmd.MembersMax, config.MembersMax)
	}
	if cmd.Joinability > flow.Closed {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: not known")
	}
	if cmd.looks() {
		return nil
	}
	t.leaveParty(r, flow.Switched)
	t.createParty(r, flow.Party{ID: cmd.ID, Attributes: cmd.Attributes, Joinability: cmd.Joinability, MembersMax: cmd.MembersMax})
	cmd.Made = cmd.ID
	return nil
}

// notInMatchmaking refuses what would change what the matchmaker was told.
func notInMatchmaking(p *flow.Player) error {
	if p.Keys.Phase() == flow.Matchmaking {
		return flow.Refuse(flow.Refusal{Code: flow.InMatchmaking}, "player %s is in matchmaking", p.ID)
	}
	return nil
}

// mayChangeParty checks that a player may go to another party now.
func (t *tx) mayChangeParty(p *flow.Player) error {
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	if !p.Keys.Game.IsZero() && t.c.flowConfig.Parties.NoChangeInGame {
		return flow.Refuse(flow.Refusal{Code: flow.PartyChangeLocked}, "player %s is in a game, and parties are not changed in a game", p.ID)
	}
	return nil
}

// createParty makes a party with one member, who leads it.
func (t *tx) createParty(r flow.Ref, party flow.Party) flow.Ref {
	config := &t.c.flowConfig.Parties
	p := t.c.flow.Players.Get(r)
	if party.MembersMax == 0 {
		party.MembersMax = config.MembersMax
	}
	if party.Joinability == 0 {
		party.Joinability = config.Joinability
	}
	party.Created, party.Code = t.now, t.newPartyCode()
	party.Members = []flow.Member{{Player: p.ID, Joined: t.now, Leader: true}}
	id := party.ID
	t.emit(&PartyChanged{party})
	t.setKeys(r, func(k *flow.Keys) { k.Party = id })
	t.tellPlayers(flow.OnAddedToParty, flow.Message{PartyID: id}, t.c.flow.Players.Get(r).ID)
	made, _ := t.c.flow.Party(id)
	t.changeParty(made, flow.PartyCreated, t.c.flow.Players.Get(r).ID, func(*flow.Party) {})
	return made
}

// newPartyCode makes a code that people can read to each other: no letter or digit looks like another one.
func (t *tx) newPartyCode() string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	for {
		id := t.newID()
		code := make([]byte, 8)
		for i := range code {
			code[i] = alphabet[id[i]%32]
		}
		// Bytes 6 and 8 of an id have fixed bits.
		code[6] = alphabet[id[9]%32]
		if _, taken := t.c.flow.PartyByCode(string(code)); !taken {
			return string(code)
		}
	}
}

// changeParty lets f change a copy of a party, raises its revision, and tells its members.
func (t *tx) changeParty(r flow.Ref, change flow.PartyChange, player string, f func(*flow.Party)) {
	p := *t.c.flow.Parties.Get(r)
	p.Members = slices.Clone(p.Members)
	f(&p)
	p.Rev++
	t.emit(&PartyChanged{p})
	t.touchParty(p.ID)
	view := t.c.partyView(r)
	t.tellPlayers(flow.OnPartyChanged, flow.Message{Party: &view, Change: change, Player: player}, partyPlayers(&view.Party)...)
}

// JoinParty goes to a party: by its id, by its code, or by an invite that is accepted. Made is the party's id.
type JoinParty struct {
	Caller
	Party          domain.UUID
	Code           string
	Invite         domain.UUID
	FailOnExisting bool
}

func (cmd *JoinParty) decide(t *tx) error {
	r, done, err := t.caller(&cmd.Caller, "JoinParty")
	if err != nil || done {
		return err
	}
	p := t.c.flow.Players.Get(r)
	if err := t.mayChangeParty(p); err != nil {
		return err
	}
	target, err := t.partyToJoin(cmd, p)
	if err != nil {
		return err
	}
	if err := t.mayJoin(target, p); err != nil {
		return err
	}
	party := t.c.flow.Parties.Get(target)
	id := party.ID
	cmd.Made = id
	if cmd.looks() {
		return nil
	}
	if party.Search != nil {
		t.endSearch(target, flow.OnLeftMatchmaking, flow.Requested, p.ID)
	}
	t.leaveParty(r, flow.Switched)
	t.joinParty(r, target)
	return nil
}

// partyToJoin finds the party and checks that it lets this player in this way.
func (t *tx) partyToJoin(cmd *JoinParty, p *flow.Player) (flow.Ref, error) {
	var target flow.Ref
	var invite *flow.Invite
	var ok bool
	switch {
	case !cmd.Invite.IsZero():
		x, err := t.inviteTo(p.ID, cmd.Invite)
		if err != nil {
			return 0, err
		}
		invite = x
		target, ok = t.c.flow.Party(x.Party)
	case cmd.Code != "":
		target, ok = t.c.flow.PartyByCode(cmd.Code)
	default:
		target, ok = t.c.flow.Party(cmd.Party)
	}
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party not found")
	}
	party := t.c.flow.Parties.Get(target)
	switch {
	case p.Keys.Party == party.ID:
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in party pty-%s already", p.ID, party.ID)
	case cmd.FailOnExisting && !p.Keys.Party.IsZero():
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	case party.Joinability == flow.Closed:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party pty-%s is closed", party.ID)
	case party.Joinability == flow.InviteOnly && cmd.Code == "" && invite == nil && t.pendingInvite(party.ID, p.ID) == 0:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party pty-%s can be joined by code or invite", party.ID)
	}
	return target, nil
}

// mayJoin checks the rest, in the order of the specification.
func (t *tx) mayJoin(target flow.Ref, p *flow.Player) error {
	party := t.c.flow.Parties.Get(target)
	for _, k := range party.Kicked {
		if k.Player == p.ID && t.pendingInvite(party.ID, p.ID) == 0 {
			return flow.Refuse(flow.Refusal{Code: flow.KickedNeedsInvite}, "player %s was kicked from party pty-%s and needs a new invite", p.ID, party.ID)
		}
	}
	for _, m := range party.Members {
		if x := t.member(m.Player); slices.Contains(x.Blocked, p.ID) || slices.Contains(p.Blocked, x.ID) {
			return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "player %s may not be in a party with one of its members", p.ID)
		}
	}
	switch {
	case party.Search != nil && (!t.c.flowConfig.Parties.JoinCancelsMatchmaking || party.Search.Status >= flow.Placing):
		return flow.Refuse(flow.Refusal{Code: flow.PartyInMatchmaking}, "party pty-%s is in matchmaking", party.ID)
	case int32(len(party.Members)) >= party.MembersMax:
		return flow.Refuse(flow.Refusal{Code: flow.PartyFull}, "party pty-%s: %d of %d members", party.ID, len(party.Members), party.MembersMax)
	}
	mine := versionOf(p)
	for _, m := range party.Members {
		if v := versionOf(t.member(m.Player)); v != "" && mine != "" && v != mine {
			return flow.Refuse(flow.Refusal{Code: flow.PartyVersionMismatch, Players: []string{m.Player}}, "client version %s, %s has %s", mine, m.Player, v)
		}
	}
	return nil
}

func versionOf(p *flow.Player) string {
	if p.Profile == nil {
		return ""
	}
	return p.Profile.ClientVersion
}

// joinParty adds a player who is in no party.
func (t *tx) joinParty(r, target flow.Ref) {
	player := t.c.flow.Players.Get(r).ID
	id := t.c.flow.Parties.Get(target).ID
	if x := t.pendingInvite(id, player); x != 0 {
		invite := *t.c.flow.Invites.Get(x)
		t.emit(&InviteRemoved{invite.ID})
		t.tellPlayers(flow.OnPartyInviteResponse, flow.Message{Invite: t.c.inviteView(&invite), Player: player, Accepted: true}, invite.From)
	}
	t.setKeys(r, func(k *flow.Keys) { k.Party = id })
	t.tellPlayers(flow.OnAddedToParty, flow.Message{PartyID: id}, player)
	t.changeParty(target, flow.MemberJoined, player, func(p *flow.Party) {
		p.Members = append(p.Members, flow.Member{Player: player, Joined: t.now})
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
func (t *tx) leaveParty(r flow.Ref, reason flow.Reason) {
	player := t.c.flow.Players.Get(r)
	id, who := player.Keys.Party, player.ID
	party, ok := t.c.flow.Party(id)
	if !ok {
		return
	}
	if t.c.flow.Parties.Get(party).Search != nil {
		why, ok := searchReasons[reason]
		if !ok {
			why = flow.MemberRemoved
		}
		t.endSearch(party, flow.OnLeftMatchmaking, why, who)
	}
	if player.RemoveBy != 0 { // the clock is this party's
		e := presenceOf(player)
		e.RemoveBy = 0
		t.emit(e)
	}
	t.touch(r)
	t.setKeys(r, func(k *flow.Keys) { k.Party = domain.UUID{} })
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, who)
	if len(t.c.flow.Parties.Get(party).Members) == 1 {
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
func (t *tx) succeed(p *flow.Party, not string) {
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
func (t *tx) removeParty(r flow.Ref) {
	id := t.c.flow.Parties.Get(r).ID
	for _, x := range slices.Clone(t.c.flow.InvitesOf(id)) {
		t.endInvite(x, flow.PartyGone)
	}
	t.emit(&PartyRemoved{id})
}

// shutDownParty ends a party for all its members.
func (t *tx) shutDownParty(r flow.Ref, reason flow.Reason) {
	if t.c.flow.Parties.Get(r).Search != nil {
		t.endSearch(r, flow.OnLeftMatchmaking, flow.PartyShutDown, "")
	}
	p := t.c.flow.Parties.Get(r)
	id, players := p.ID, partyPlayers(p)
	for _, player := range players {
		m, _ := t.c.flow.Player(player)
		t.setKeys(m, func(k *flow.Keys) { k.Party = domain.UUID{} })
	}
	t.tellPlayers(flow.OnRemovedFromParty, flow.Message{PartyID: id, Reason: reason}, players...)
	t.removeParty(r)
}

// ownParty finds the party of a player.
func (t *tx) ownParty(r flow.Ref) (flow.Ref, error) {
	p := t.c.flow.Players.Get(r)
	party, ok := t.c.flow.Party(p.Keys.Party)
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotInParty}, "player %s is in no party", p.ID)
	}
	return party, nil
}

// ledParty finds the party that a player leads.
func (t *tx) ledParty(r flow.Ref) (flow.Ref, error) {
	party, err := t.ownParty(r)
	if err != nil {
		return 0, err
	}
	if p := t.c.flow.Players.Get(r); !t.c.flow.Parties.Get(party).Leads(p.ID) {
		return 0, flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "player %s does not lead party pty-%s", p.ID, p.Keys.Party)
	}
	return party, nil
}

// partyCaller finds the player who wishes something of a party, and the party; see caller. Find is ownParty, ledParty or
// ledWith.
func (t *tx) partyCaller(by *Caller, cause string, find func(r flow.Ref) (flow.Ref, error)) (r, party flow.Ref, done bool, err error) {
	r, done, err = t.caller(by, cause)
	if err == nil && !done {
		party, err = find(r)
	}
	return r, party, done, err
}

// LeaveParty goes out of the party.
type LeaveParty struct{ Caller }

func (cmd *LeaveParty) decide(t *tx) error {
	r, _, done, err := t.partyCaller(&cmd.Caller, "LeaveParty", t.ownParty)
	if err != nil || done {
		return err
	}
	t.leaveParty(r, flow.Left)
	return nil
}

// KickPlayer takes another member out of the party. Whoever is kicked needs a newer invite to come back.
type KickPlayer struct {
	Caller
	Target string
}

// kickedMax bounds how many players a party remembers to have kicked.
const kickedMax = 100

func (cmd *KickPlayer) decide(t *tx) error {
	_, party, done, err := t.partyCaller(&cmd.Caller, "KickPlayer", t.ledWith(cmd.Target))
	if err != nil || done {
		return err
	}
	id := t.c.flow.Parties.Get(party).ID
	for _, x := range slices.Clone(t.c.flow.InvitesOf(id)) {
		if t.c.flow.Invites.Get(x).To == cmd.Target {
			t.endInvite(x, flow.Cancelled)
		}
	}
	target, _ := t.c.flow.Player(cmd.Target)
	t.leaveParty(target, flow.WasKicked)
	p := *t.c.flow.Parties.Get(party)
	p.Kicked = append(slices.Clip(p.Kicked), flow.Kicked{Player: cmd.Target, At: t.now})
	p.Kicked = p.Kicked[max(0, len(p.Kicked)-kickedMax):]
	t.emit(&PartyChanged{p})
	return nil
}

// ledWith finds the party that a player leads and checks that another player is in it.
func (t *tx) ledWith(target string) func(r flow.Ref) (flow.Ref, error) {
	return func(r flow.Ref) (flow.Ref, error) {
		party, err := t.ledParty(r)
		if err != nil {
			return 0, err
		}
		_, ok := t.c.flow.Parties.Get(party).Member(target)
		switch {
		case !ok:
			return 0, flow.Refuse(flow.Refusal{Code: flow.TargetNotInParty, Players: []string{target}}, "player %s is not in the party", target)
		case target == t.c.flow.Players.Get(r).ID:
			return 0, flow.Refuse(flow.Refusal{Code: flow.CannotTargetSelf}, "player_id: %s is the caller", target)
		}
		return party, nil
	}
}

// PromoteLeader makes another member the leader, or with several leaders one more.
type PromoteLeader struct {
	Caller
	Target string
}

func (cmd *PromoteLeader) decide(t *tx) error {
	_, party, done, err := t.partyCaller(&cmd.Caller, "PromoteLeader", t.ledWith(cmd.Target))
	if err != nil || done {
		return err
	}
	if t.c.flow.Parties.Get(party).Leads(cmd.Target) {
		return nil
	}
	t.changeParty(party, flow.LeaderChanged, cmd.Target, func(p *flow.Party) {
		for i := range p.Members {
			p.Members[i].Leader = p.Members[i].Player == cmd.Target || p.Members[i].Leader && t.c.flowConfig.Parties.MultipleLeaders
		}
		p.LeaderBy = 0
	})
	return nil
}

// SetReady says whether a member is ready for a search. To be not ready ends a search.
type SetReady struct {
	Caller
	Ready bool
}

func (cmd *SetReady) decide(t *tx) error {
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetReady", t.ownParty)
	if err != nil || done {
		return err
	}
	p := t.c.flow.Players.Get(r)
	x := t.c.flow.Parties.Get(party)
	i, _ := x.Member(p.ID)
	switch {
	case !p.Keys.Game.IsZero():
		return t.inGame(r)
	case x.Search != nil && !cmd.Ready:
		return t.leaveSearch(r, flow.NotReady)
	case x.Search != nil || x.Members[i].Ready == cmd.Ready:
		return nil
	}
	t.changeParty(party, flow.ReadyChanged, p.ID, func(p *flow.Party) { p.Members[i].Ready = cmd.Ready })
	return nil
}

// SetPartyPreferences changes what is given; nobody is ready for it any more.
type SetPartyPreferences struct {
	Caller
	Queue       *string
	Regions     *[]string
	Joinability flow.Joinability // 0: as it is
	Attributes  *string
}

func (cmd *SetPartyPreferences) decide(t *tx) error {
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetPartyPreferences", t.ledParty)
	if err != nil || done {
		return err
	}
	p := t.c.flow.Players.Get(r)
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	if cmd.Queue != nil && *cmd.Queue != "" {
		if _, ok := t.c.flowConfig.Queue(*cmd.Queue); !ok {
			return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %s not found", *cmd.Queue)
		}
	}
	if cmd.Joinability > flow.Closed {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: not known")
	}
	change := flow.PreferencesChanged
	if cmd.Attributes != nil && cmd.Queue == nil && cmd.Regions == nil && cmd.Joinability == 0 {
		change = flow.AttributesChanged
	}
	t.changeParty(party, change, p.ID, func(x *flow.Party) {
		set(&x.Queue, cmd.Queue)
		set(&x.Attributes, cmd.Attributes)
		if cmd.Regions != nil {
			x.Regions = *cmd.Regions
		}
		if cmd.Joinability != 0 {
			x.Joinability = cmd.Joinability
		}
		for i := range x.Members {
			x.Members[i].Ready = false
		}
	})
	return nil
}

// SetPlayerPreferences changes what a member says about the own client.
type SetPlayerPreferences struct {
	Caller
	Latencies     *[]flow.Latency
	Attributes    *string
	ClientVersion *string
}

func (cmd *SetPlayerPreferences) decide(t *tx) error {
	r, party, done, err := t.partyCaller(&cmd.Caller, "SetPlayerPreferences", t.ownParty)
	if err != nil || done {
		return err
	}
	p := t.c.flow.Players.Get(r)
	if err := notInMatchmaking(p); err != nil {
		return err
	}
	profile := profileOf(p)
	if cmd.Latencies != nil {
		profile.Latencies = *cmd.Latencies
	}
	set(&profile.Attributes, cmd.Attributes)
	set(&profile.ClientVersion, cmd.ClientVersion)
	id := p.ID
	t.changePlayer(r, func(e *PlayerChanged) { e.Profile = &profile })
	t.changeParty(party, flow.PreferencesChanged, id, func(*flow.Party) {})
	return nil
}

func profileOf(p *flow.Player) flow.Profile {
	if p.Profile == nil {
		return flow.Profile{}
	}
	return *p.Profile
}

// changePlayer lets f change what is known about a player beside keys and presence.
func (t *tx) changePlayer(r flow.Ref, f func(*PlayerChanged)) {
	p := t.c.flow.Players.Get(r)
	e := &PlayerChanged{
		Player: p.ID, Banned: p.Banned, Leaves: p.Leaves, LeavesSince: p.LeavesSince, RequeueLevel: p.RequeueLevel, RequeueUntil: p.RequeueUntil,
		Profile: p.Profile, LastGame: p.LastGame, Penalties: p.Penalties, Blocked: p.Blocked,
	}
	f(e)
	t.emit(e)
}

// RotateInviteCode makes the party's code void and gives it another one.
type RotateInviteCode struct{ Caller }

func (cmd *RotateInviteCode) decide(t *tx) error {
	_, party, done, err := t.partyCaller(&cmd.Caller, "RotateInviteCode", t.ledParty)
	if err != nil || done {
		return err
	}
	code := t.newPartyCode()
	t.changeParty(party, flow.CodeChanged, cmd.Player, func(p *flow.Party) { p.Code = code })
	return nil
}

// DisbandParty ends the party for all its members.
type DisbandParty struct{ Caller }

func (cmd *DisbandParty) decide(t *tx) error {
	_, party, done, err := t.partyCaller(&cmd.Caller, "DisbandParty", t.ledParty)
	if err != nil || done {
		return err
	}
	t.shutDownParty(party, flow.Disbanded)
	return nil
}

// ShutDownParty ends a party from outside: for the studio's backend, or an operator.
type ShutDownParty struct{ Party domain.UUID }

func (cmd *ShutDownParty) decide(t *tx) error {
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.c.flow.Party(cmd.Party)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party pty-%s not found", cmd.Party)
	}
	t.flow.cause = "ShutDownParty"
	t.shutDownParty(r, flow.ShutDown)
	return nil
}
