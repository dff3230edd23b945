package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

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
