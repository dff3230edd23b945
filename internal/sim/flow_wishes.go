package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

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
