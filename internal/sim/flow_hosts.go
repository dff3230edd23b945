package sim

import (
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

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
