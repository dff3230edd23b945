package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// Players with a flow record log in, lose their streams, form parties, search, play, crash and come back. Backends without player flow
// seat some of them, too, because the names are those of other players in the simulator.

// drawFlow enables player flow for some seeds. It draws from the seed itself, so that the runs of other seeds stay the same.
func (w *World) drawFlow() {
	if w.seed%3 != 1 {
		return
	}
	bit := func(n int) bool { return w.seed>>(8+n)&1 == 1 }
	config := flow.DefaultConfig()
	config.Games.LaxPlayers, config.Games.Requeue, config.Games.NoHold = bit(0), bit(1), bit(2)
	config.Games.DirectCreate, config.Games.DirectJoin, config.Games.ManualReady = true, true, bit(3)
	config.Parties.MultipleLeaders, config.Parties.NoReadyRequired = bit(4), bit(5)
	config.Parties.JoinCancelsMatchmaking = bit(6)
	config.Games.AllocationTimeout = 20 * time.Second
	config.Games.EmptyTimeout, config.Games.Reservation = time.Minute, 15*time.Second
	config.Games.ReconnectWindow, config.Games.NoShowHold = 20*time.Second, 10*time.Second
	config.Parties.OfflineRemoval, config.Parties.LeaderGrace = 10*time.Second, 3*time.Second
	config.Search.OfflineGrace, config.Parties.ReadyTimeout = 4*time.Second, 20*time.Second
	config.Sessions.EventsKept, config.Sessions.EventsKeptFor = 30, time.Minute
	config.Sessions.ReplacesMax = 1000
	config.Penalties.Mode = flow.PenaltiesEnforced
	if bit(7) {
		config.Games.KeepAlive = 15 * time.Second
	}
	config.Games.WrapData = bit(8)
	w.drawWide(&config)
	w.cell.PlayerFlow.Tokens = hashes{}
	w.cell.PlayerFlow.Flow = &config
	w.wishes.AddFlow()
	w.told = told{rev: map[string]uint64{}, seq: map[string]uint64{}, announced: map[string]uint64{}}
}

// drawWide gives half of the seeds above 1023 options that the others leave as they are, and commands that change them.
func (w *World) drawWide(c *flow.Config) {
	if w.seed>>10&1 == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(w.seed, 10))
	oneIn := func(n int) bool { return chance.IntN(n) == 0 }
	w.wishes.AddWide()
	if !oneIn(3) {
		c.Search.PlacementQueue = "queue-0"
	}
	if oneIn(3) {
		c.Search.TicketTimeout = time.Duration(1+chance.IntN(90)) * time.Second
	}
	if oneIn(3) {
		c.Search.AcceptanceTimeout = time.Duration(1+chance.IntN(20)) * time.Second
	}
	c.Search.LeaderCancels, c.Search.NoSoloParty = oneIn(3), oneIn(4)
	c.Parties.LogoutKeepsParty, c.Parties.NoChangeInGame = oneIn(3), oneIn(3)
	c.Penalties.Mode = flow.PenaltyMode(chance.IntN(3))
	if oneIn(3) {
		c.Games.AbsoluteTimeout = time.Duration(30+chance.IntN(300)) * time.Second
	}
	if oneIn(3) {
		c.Games.EndingGrace = 3 * time.Second
	}
	if oneIn(2) {
		c.Games.DirectQueue, c.Games.DirectPlayersMax = "queue-1", int32(1+chance.IntN(4))
	}
}

// hashes replaces the hashes of connection tokens.
type hashes struct{}

// TokenHash depends on all claims of a token.
func (hashes) TokenHash(player string, h *flow.Host) string {
	return fmt.Sprint(player, h.Session, h.Attempt, h.Epoch, h.TokenUntil)
}

var flowMakers = []maker{
	{30, logIn}, {40, attachStream}, {10, loseStream}, {5, pollEvents}, {2, logOut}, {3, refreshLogin}, {2, ackEvents},
	{15, createParty}, {30, joinParty}, {3, leaveParty}, {2, kickPlayer}, {2, promoteLeader}, {30, setReady}, {3, setPreferences}, {1, disbandParty},
	{10, sendInvite}, {2, cancelInvite}, {3, declineInvite}, {40, enterMatchmaking}, {4, leaveMatchmaking}, {30, answerMatch},
	{25, hostDetails}, {2, declineReconnect}, {2, leaveGame}, {4, createInstance}, {8, joinInstance}, {3, updateInstance}, {3, decidePenalty}, {30, makeGame},
	{8, readyGame}, {80, connectMember}, {15, disconnectMember}, {1, removeMembers}, {1, releaseMembers}, {3, addMembers}, {6, keepGameAlive}, {1, endGame},
	{4, operate}, {1, configure},
}

// AddFlow adds the commands of players with a flow record. Some kinds of them are switched off.
func (w *Wishes) AddFlow() {
	for _, m := range slices.Concat(flowMakers, feedMakers) {
		if w.chance.IntN(100) < 8 {
			continue
		}
		w.players = append(w.players, m)
		w.playersWeights += m.weight
	}
	w.makers = append(w.makers, w.players...)
	w.weights += w.playersWeights
}

// playersMax is how many players have a flow record at most.
const playersMax = 12

func playerNamed(i int) string { return fmt.Sprint("player-", i) }

func (w *Wishes) playerName() string { return playerNamed(w.chance.IntN(playersMax)) }

// someone returns a player's client that is logged in, or now and then one that pretends to be.
func (w *Wishes) someone(v *cell.View) (playerflow.FlowSnapshot, playerflow.Caller) {
	s, _ := v.FlowOf(w.playerName(), w.now)
	by := playerflow.Caller{Player: s.Player, LoginSessionID: s.Login.ID}
	if w.oneIn(20) {
		by.LoginSessionID = flow.LoginSessionID(w.uuid())
	}
	if w.oneIn(4) {
		by.Request = fmt.Sprint("request-", w.chance.IntN(40))
	}
	return s, by
}

func logIn(w *Wishes, v *cell.View) kernel.Command {
	name := w.playerName()
	if s, ok := v.FlowOf(name, w.now); ok && !s.Login.ID.IsZero() && !w.oneIn(4) {
		return nil
	}
	return &playerflow.Login{Player: name, LoginSessionID: flow.LoginSessionID(w.uuid()), Token: w.uuid(), Device: "phone", AutoReconnect: w.oneIn(3)}
}

func attachStream(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	if s.Presence == flow.Online && !w.oneIn(5) {
		return nil
	}
	return &playerflow.AttachStream{Player: by.Player, LoginSessionID: by.LoginSessionID, Stream: w.number()}
}

func loseStream(w *Wishes, v *cell.View) kernel.Command {
	s, _ := w.someone(v)
	return &playerflow.LoseStream{Player: s.Player, Stream: s.Stream}
}

func pollEvents(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.PollEvents{Player: by.Player, LoginSessionID: by.LoginSessionID}
}

func logOut(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.Logout{Caller: by}
}

func refreshLogin(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.RefreshLogin{Caller: by, Token: w.uuid()}
}

func ackEvents(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	return &playerflow.AckEvents{Player: by.Player, LoginSessionID: by.LoginSessionID, Seq: s.Record.Seq + uint64(w.chance.IntN(3))}
}

func createParty(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.CreateParty{Caller: by, ID: flow.PartyID(w.uuid()), Joinability: flow.Joinability(w.chance.IntN(4)), FailOnExisting: w.oneIn(3), MembersMax: int32(w.chance.IntN(5))}
}

func joinParty(w *Wishes, v *cell.View) kernel.Command {
	other, _ := v.FlowOf(w.playerName(), w.now)
	s, by := w.someone(v)
	cmd := &playerflow.JoinParty{Caller: by, Party: other.Record.Keys.Party, FailOnExisting: w.oneIn(5)}
	switch {
	case len(s.Invites) > 0 && w.oneIn(2):
		cmd.Invite = s.Invites[w.chance.IntN(len(s.Invites))].ID
	case other.Party != nil && w.oneIn(2):
		cmd.Code = other.Party.Code
	}
	return cmd
}

func leaveParty(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.LeaveParty{Caller: by}
}

func disbandParty(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.DisbandParty{Caller: by}
}

// mate returns another member of a player's party, or any player.
func (w *Wishes) mate(s *playerflow.FlowSnapshot) string {
	if s.Party == nil || w.oneIn(8) {
		return w.playerName()
	}
	return s.Party.Members[w.chance.IntN(len(s.Party.Members))].Player
}

func kickPlayer(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	return &playerflow.KickPlayer{Caller: by, Target: w.mate(&s)}
}

func promoteLeader(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	return &playerflow.PromoteLeader{Caller: by, Target: w.mate(&s)}
}

func setReady(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.SetReady{Caller: by, Ready: !w.oneIn(12)}
}

func setPreferences(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	if w.oneIn(2) {
		return &playerflow.SetPlayerPreferences{Caller: by, Latencies: &[]flow.Latency{{Region: "us-east-1", Milliseconds: int32(w.chance.IntN(100))}}}
	}
	return &playerflow.SetPartyPreferences{Caller: by, Joinability: flow.Joinability(w.chance.IntN(4))}
}

func sendInvite(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.SendInvite{Caller: by, ID: flow.InviteID(w.uuid()), Target: w.playerName()}
}

func cancelInvite(w *Wishes, v *cell.View) kernel.Command {
	other, _ := v.FlowOf(w.playerName(), w.now)
	_, by := w.someone(v)
	if len(other.Invites) == 0 {
		return nil
	}
	return &playerflow.CancelInvite{Caller: by, Invite: other.Invites[0].ID}
}

func declineInvite(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	if len(s.Invites) == 0 {
		return nil
	}
	return &playerflow.DeclineInvite{Caller: by, Invite: s.Invites[0].ID}
}

func enterMatchmaking(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	cmd := &playerflow.EnterMatchmaking{Caller: by, Ticket: domain.TicketID(w.uuid()), Party: flow.PartyID(w.uuid()), Queue: w.matchmakerName()}
	if w.oneIn(3) { // with the answer of a hook
		cmd.Advice = flow.Advice{Trusted: `{"skill":10}`, Regions: []string{"us-east-1"}, Players: []flow.PlayerAdvice{{Player: by.Player, Data: "data of " + by.Player}}}
	}
	cmd.Look = w.oneIn(10)
	return cmd
}

func leaveMatchmaking(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.LeaveMatchmaking{Caller: by}
}

func answerMatch(w *Wishes, v *cell.View) kernel.Command {
	s, by := w.someone(v)
	if s.Search == nil {
		return nil
	}
	return &playerflow.AnswerMatch{Caller: by, Ticket: s.Search.Ticket, Accept: !w.oneIn(8)}
}

// played returns the game instance of a player; most of the time an active one.
func (w *Wishes) played(v *cell.View) (s playerflow.FlowSnapshot, by playerflow.Caller, instance flow.InstanceID) {
	for i := range 10 {
		if s, by = w.someone(v); s.Game != nil && (s.Game.Status == flow.InstanceActive || i > 7) {
			return s, by, s.Game.ID
		}
	}
	return s, by, flow.InstanceID(w.uuid())
}

func hostDetails(w *Wishes, v *cell.View) kernel.Command {
	_, by, g := w.played(v)
	by.Look = w.oneIn(10)
	cmd := &playerflow.GetHostConnectionDetails{Caller: by, Instance: g}
	if w.oneIn(3) {
		cmd.Data = new("said anew")
	}
	return cmd
}

func declineReconnect(w *Wishes, v *cell.View) kernel.Command {
	_, by, g := w.played(v)
	return &playerflow.DeclineReconnect{Caller: by, Instance: g}
}

func leaveGame(w *Wishes, v *cell.View) kernel.Command {
	_, by, g := w.played(v)
	return &playerflow.LeaveGame{Caller: by, Instance: g}
}

func (w *Wishes) plan() playerflow.GamePlan {
	return playerflow.GamePlan{ID: flow.InstanceID(w.uuid()), Queue: w.queueName(), PlayersMax: int32(1 + w.chance.IntN(5)), Reconnect: flow.Reconnect(w.chance.IntN(4))}
}

func createInstance(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.CreateGameInstance{Caller: by, Plan: w.plan()}
}

func joinInstance(w *Wishes, v *cell.View) kernel.Command {
	_, _, g := w.played(v)
	_, by := w.someone(v)
	return &playerflow.JoinGameInstance{Caller: by, Instance: g, Data: "data of a joiner"}
}

func updateInstance(w *Wishes, v *cell.View) kernel.Command {
	_, by, _ := w.played(v)
	return &playerflow.UpdateOwnGame{Caller: by, Attributes: `{"map":"harbour"}`}
}

// decidePenalty is the studio's decision about the latest penalty of a player.
func decidePenalty(w *Wishes, v *cell.View) kernel.Command {
	for range 10 {
		player := w.playerName()
		for _, p := range v.Penalties(player) {
			return &playerflow.DecidePenalty{Player: player, Kind: p.Kind, Since: p.Since, Given: p.Level, Until: p.Until, Clear: w.oneIn(2), Level: int32(w.chance.IntN(4)), Lock: time.Minute}
		}
	}
	return nil
}

func makeGame(w *Wishes, v *cell.View) kernel.Command {
	plan := w.plan()
	for range 1 + w.chance.IntN(4) {
		plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: w.playerName(), Team: "red"})
	}
	return &playerflow.MakeGame{Plan: plan}
}

func readyGame(w *Wishes, v *cell.View) kernel.Command {
	_, _, g := w.played(v)
	return &playerflow.ReadyGame{Instance: g}
}

func connectMember(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	if s.Game == nil {
		return nil
	}
	id := s.Game.Membership.Session
	if next := s.Game.Membership.Next; !next.IsZero() && !w.oneIn(4) {
		id = next
	}
	return &playerflow.ConnectMember{Instance: g, PlayerSession: id}
}

func disconnectMember(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	if s.Game == nil {
		return nil
	}
	id := s.Game.Membership.Session
	if w.oneIn(6) {
		id = s.Game.Membership.Next
	}
	return &playerflow.DisconnectMember{Instance: g, PlayerSession: id, Quit: w.oneIn(4)}
}

func removeMembers(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	return &playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: s.Player, Reason: flow.RemovedAFK, Penalise: w.oneIn(2)}}}
}

func releaseMembers(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	return &playerflow.ReleaseMembers{Instance: g, Players: []string{s.Player}}
}

func addMembers(w *Wishes, v *cell.View) kernel.Command {
	_, _, g := w.played(v)
	return &playerflow.AddMembers{Instance: g, Players: []playerflow.PlannedPlayer{{Player: w.playerName()}, {Player: w.playerName()}}}
}

func keepGameAlive(w *Wishes, v *cell.View) kernel.Command {
	_, _, g := w.played(v)
	return &playerflow.KeepGameAlive{Instance: g}
}

func endGame(w *Wishes, v *cell.View) kernel.Command {
	_, _, g := w.played(v)
	return &playerflow.EndGame{Instance: g, Result: "{}"}
}

// operate makes the rarer commands of operators and backends.
func operate(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	switch w.chance.IntN(9) {
	case 0:
		return &playerflow.ForceLogout{Player: s.Player}
	case 1:
		return &playerflow.ForceRelease{Player: s.Player, Party: w.oneIn(2), Ticket: w.oneIn(2), Game: w.oneIn(2)}
	case 2:
		return &playerflow.ForceEnd{Instance: g}
	case 3:
		return &playerflow.ShutDownParty{Party: s.Record.Keys.Party}
	case 4:
		return &playerflow.BanPlayer{Player: w.playerName(), Banned: w.oneIn(4)}
	case 5:
		return &playerflow.SetQueue{Name: w.matchmakerName(), Closed: w.oneIn(3)}
	case 6:
		return &playerflow.SetPlayerAttributes{Player: w.playerName(), Attributes: `{"skill":3}`}
	case 7:
		return &playerflow.SetBlocks{Player: w.playerName(), Blocked: []string{w.playerName()}}
	}
	return &playerflow.SetPenalty{Player: w.playerName(), Penalty: flow.Penalty{Kind: flow.ByOperator, Level: int32(w.chance.IntN(2)), Until: w.now.Add(5 * time.Second)}}
}

// wideMakers are commands that only wide worlds have.
var wideMakers = []maker{{2, rotateInviteCode}, {3, issueLoginTicket}, {3, logInByTicket}, {4, setPenalty}, {1, interruptCompute}}

// AddWide adds them, and further options to those that change.
func (w *Wishes) AddWide() {
	w.wide = true
	w.add(wideMakers)
}

func rotateInviteCode(w *Wishes, v *cell.View) kernel.Command {
	_, by := w.someone(v)
	return &playerflow.RotateInviteCode{Caller: by}
}

// loginTicket returns the hash of one of a few login tickets.
func (w *Wishes) loginTicket() (hash domain.UUID) {
	hash[0] = byte(1 + w.chance.IntN(6))
	return hash
}

func issueLoginTicket(w *Wishes, _ *cell.View) kernel.Command {
	return &playerflow.IssueLoginTicket{Hash: w.loginTicket(), Player: w.playerName(), Life: time.Duration(1+w.chance.IntN(60)) * time.Second, Once: w.oneIn(2)}
}

func logInByTicket(w *Wishes, _ *cell.View) kernel.Command {
	cmd := &playerflow.Login{LoginSessionID: flow.LoginSessionID(w.uuid()), Token: w.uuid(), Device: "phone", Ticket: w.loginTicket()}
	if w.oneIn(3) {
		cmd.Ticket, cmd.Once, cmd.Player, cmd.Until = domain.UUID{}, w.loginTicket(), w.playerName(), w.now.Add(time.Duration(w.chance.IntN(90))*time.Second)
	}
	return cmd
}

func setPenalty(w *Wishes, _ *cell.View) kernel.Command {
	p := flow.Penalty{Kind: flow.PenaltyKind(1 + w.chance.IntN(5)), Level: int32(w.chance.IntN(3)), Reason: flow.ByTheOperator}
	if w.oneIn(2) {
		p.Until = w.now.Add(time.Duration(w.chance.IntN(120)-20) * time.Second)
	}
	return &playerflow.SetPenalty{Player: w.playerName(), Penalty: p}
}

func interruptCompute(w *Wishes, v *cell.View) kernel.Command {
	x, ok := w.compute(v)
	if !ok {
		return nil
	}
	return &hosting.InterruptCompute{Fleet: x.FleetID, Compute: x.Name}
}

// wideOptions are further documents of options.
var wideOptions = []string{
	`{"MatchmakingServiceConfig":{"placementQueue":"queue-1","ticketTimeout":"20s"}}`, `{"MatchmakingServiceConfig":{"placementQueue":"","onAllocationFailure":"REQUEUE"}}`,
	`{"MatchmakingServiceConfig":{"placementQueue":"queue-0","acceptanceTimeout":"8s","autoSoloParty":false}}`,
	`{"PartyServiceConfig":{"logoutLeavesParty":false,"changeInGame":false,"leaderGrace":"1s"}}`, `{"PartyServiceConfig":{"joinCancelsMatchmaking":true,"readyTimeout":"2s"}}`,
	`{"GameInstanceServiceConfig":{"enableAbsoluteTimeout":true,"absoluteTimeout":"60s","endingGrace":"1s"}}`, `{"GameInstanceServiceConfig":{"allocationTimeout":"5s","manualReady":true}}`,
	`{"GameInstanceServiceConfig":{"reconnect":"OFF","strictPlayers":false,"takeover":"DENY"}}`, `{"GameInstanceServiceConfig":{"reconnectWindow":"0s","noShowHold":"0s","emptyTimeout":"2s"}}`,
	`{"queues":[{"name":"matchmaker-0","maxParty":2,"reconnect":"REQUIRED","ticketTimeout":"15s"},{"name":"matchmaker-1","placementQueue":"queue-0","onAllocationFailure":"REQUEUE","allocationTimeout":"6s"}]}`,
	`{"queues":[]}`, `{"queues":null}`, `{"PenaltyServiceConfig":{"mode":"REPORT_ONLY","dodgeSteps":["1s"],"requeueLock":"0s"}}`, `{"GameInstanceServiceConfig":null,"MatchmakingServiceConfig":null,"queues":null}`,
}

// configure makes operators' commands for the whole service: they change and revert options, drain clients, and notify players.
func configure(w *Wishes, _ *cell.View) kernel.Command {
	options := []string{
		`"PartyServiceConfig":{"maxMembers":%d,"leaderMode":"MULTIPLE"}`, `"PartyServiceConfig":{"requireReady":false,"offlineRemoval":"%ds"}`,
		`"GameInstanceServiceConfig":{"reconnect":"REQUIRED","reservationTimeout":"%ds"}`, `"GameInstanceServiceConfig":{"holdSlots":false,"maxDisconnectsPerGame":%d}`,
		`"MatchmakingServiceConfig":{"cancelPolicy":"LEADER_ONLY","offlineGrace":"%ds"}`, `"PenaltyServiceConfig":{"mode":"OFF","requeueCount":%d}`,
		`"GameInstanceServiceConfig":null,"LoginServiceConfig":{"targetCcu":%d}`,
	}
	if w.wide && w.oneIn(2) {
		return &playerflow.SetFlowConfig{Document: wideOptions[w.chance.IntN(len(wideOptions))], By: "op", Reason: "a try"}
	}
	switch w.chance.IntN(6) {
	case 0:
		return &playerflow.AwaitPlayers{For: time.Duration(w.chance.IntN(60)) * time.Second}
	case 1:
		return &playerflow.AnnounceMaintenance{StartsAt: w.now.Add(time.Minute), Text: "soon", Limit: 1 + w.chance.IntN(8), After: flow.PlayerRef(w.chance.IntN(8))}
	case 2:
		return &playerflow.SetFlowConfig{Document: `{"PartyServiceConfig":null,"MatchmakingServiceConfig":null,"PenaltyServiceConfig":null}`, By: "op", Reason: "back"}
	}
	document := "{" + fmt.Sprintf(options[w.chance.IntN(len(options))], 3+w.chance.IntN(10)) + "}"
	return &playerflow.SetFlowConfig{Document: document, By: "op", Reason: "a try"}
}

// told has what the journal says that players received.
type told struct {
	rev, seq, announced map[string]uint64
}

// flowDurable reads a durable entry like a follower: the numbers of each player's events have no gaps, and each revision is sent exactly
// once.
func (w *World) flowDurable(batch []byte) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	err := w.history.cell.EachEvent(batch, func(_ domain.Time, e kernel.Event) {
		w.feedDurable(e)
		w.games.event(w, e)
		switch e := e.(type) {
		case *playerflow.PlayerKeysChanged:
			if old := w.told.rev[e.Player]; e.Rev != old && e.Rev != old+1 {
				w.violated("I9 %s: revision %d follows %d", e.Player, e.Rev, old)
			}
			w.told.rev[e.Player] = e.Rev
		case *playerflow.PlayersTold:
			w.playersTold(e)
		case *playerflow.PlayerForgotten:
			delete(w.told.rev, e.Player)
			delete(w.told.seq, e.Player)
			delete(w.told.announced, e.Player)
		}
	})
	if err != nil {
		w.violated("%v", err)
	}
	v := w.history.cell.View()
	w.games.reservations(w, &v)
}

func (w *World) playersTold(e *playerflow.PlayersTold) {
	m, err := flow.DecodeMessage(e.Body)
	if err != nil {
		w.violated("%s: %v", e.Type, err)
	}
	for _, to := range e.To {
		if to.Seq == 0 { // for the studio only
			continue
		}
		if to.Seq != w.told.seq[to.Player]+1 {
			w.violated("%s: event %d follows %d", to.Player, to.Seq, w.told.seq[to.Player])
		}
		w.told.seq[to.Player] = to.Seq
		if e.Type != flow.OnGameSessionChanged {
			continue
		}
		if w.told.announced[to.Player]++; m.Record.Rev != w.told.rev[to.Player] || m.Record.Rev != w.told.announced[to.Player] {
			w.violated("I9 %s: revision %d is announced as the %d. one, as %d", to.Player, w.told.rev[to.Player], w.told.announced[to.Player], m.Record.Rev)
		}
	}
}

// checkFlow checks the invariants of player flow after every step.
func (w *World) checkFlow(v *cell.View) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	for _, broken := range v.Audit() {
		w.violated("%s", broken)
	}
	w.checkFeeds(v)
}

// settleFlow logs all players out and lets time pass until all records are gone.
func (w *World) settleFlow() {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	n := w.node
	for i := range 12 {
		n.submit(&playerflow.BanPlayer{Player: fmt.Sprint("player-", i)}, func(error) {})
		n.submit(&playerflow.ForceLogout{Player: fmt.Sprint("player-", i)}, func(error) {})
	}
	n.drain()
}

// forgetFlow lets days pass until the records of absent players are gone. The service ticks late: while a contact deadline is set it would
// tick every second of these days.
func (w *World) forgetFlow() {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	n := w.node
	w.habits.lazyTicks = time.Minute
	for range 80 {
		w.pass(12 * time.Hour)
		n.drain()
		n.move()
		n.drain()
		w.invariants()
	}
	v := n.seq.Cell().View()
	if t := v.FlowTotals(); t.Logins+t.Parties+t.Invites+t.Instances+t.Memberships != 0 {
		w.violated("after everything has settled there are %+v", t)
	}
}
