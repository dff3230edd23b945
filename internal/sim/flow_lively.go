package sim

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// Random commands alone hardly ever bring a game instance to a host that accepts players, because too many conditions must hold at the same
// time. In a lively world, most commands are those that a host, a game server or a player would send next, or sometimes their faults,
// so that games are really played.

// makeLively makes the world of some seeds lively: time passes in seconds, and a restart may come between any two steps.
func (w *World) makeLively() {
	if w.cell.PlayerFlow.Flow == nil || w.seed%2 != 0 {
		return
	}
	w.lively, w.wishes.lively = true, true
	w.habits.leaps, w.habits.repeats = true, true
	w.habits.crash, w.habits.takeover = 150+w.chance.IntN(400), 400+w.chance.IntN(600)
	w.habits.lazyTicks = min(w.habits.lazyTicks, time.Second)
	games := &w.cell.PlayerFlow.Flow.Games
	games.Reconnect, games.DisconnectsMax = flow.Reconnect(1+w.chance.IntN(3)), int32(w.chance.IntN(2))
	games.DenyTakeover, games.NoHold, games.ManualReady = w.oneIn(8), w.oneIn(3), w.oneIn(3)
	games.LaxPlayers, games.Requeue = w.oneIn(4), w.oneIn(3)
	games.Completed = flow.CompletedMeans(1 + w.chance.IntN(3))
	if games.KeepAlive = 0; w.oneIn(3) {
		games.KeepAlive = 15 * time.Second
	}
}

// leap returns by how much time advances in a step, in milliseconds.
func (w *World) leap() int {
	if w.lively {
		return []int{2_000, 10_000, 40_000}[w.chance.IntN(3)]
	}
	return []int{2_000, 60_000, 400_000}[w.chance.IntN(3)]
}

// next returns the next command of a lively world.
func (w *Wishes) next(v *cell.View) kernel.Command {
	switch w.chance.IntN(5) {
	case 0, 1:
		return w.serve(v)
	case 2:
		if cmd := w.furnish(v); cmd != nil {
			return cmd
		}
	}
	return w.live(v)
}

// furnish creates what games need: hosts, queues and matchmakers.
func (w *Wishes) furnish(v *cell.View) kernel.Command {
	if name := w.queueName(); !w.oneIn(3) {
		var arns []string
		for _, f := range v.Fleets(0, "", 100) {
			arns = append(arns, "arn:aws:gamelift:us-east-1:1:fleet/"+f.ID)
		}
		if q, ok := v.Queue(name); !ok {
			return &hosting.CreateQueue{Queue: placement.Queue{Name: name, Region: "us-east-1", Account: "1", Destinations: arns, Timeout: time.Minute}}
		} else if !slices.Equal(q.Destinations, arns) {
			return &hosting.UpdateQueue{Name: name, Destinations: &arns}
		}
	}
	if name := w.matchmakerName(); !w.oneIn(3) {
		if _, ok := v.Configuration(name); !ok {
			if w.oneIn(2) {
				return createRuleSet(w, v)
			}
			cmd := createMatchmaker(w, v).(*matchmaking.CreateConfiguration)
			if x := &cmd.Configuration; x.Standalone && !w.oneIn(4) && (!w.wide || w.oneIn(2)) {
				x.Standalone, x.Queues = false, []string{w.queueName()}
			}
			return cmd
		}
	}
	if w.oneIn(8) {
		return registerCompute(w, v)
	}
	return w.match(v)
}

// match proposes a match with one of the waiting tickets, about half of the time with that ticket alone.
func (w *Wishes) match(v *cell.View) kernel.Command {
	waiting := w.waitingTickets(v)
	if len(waiting) == 0 || w.oneIn(3) {
		return proposeMatches(w, v)
	}
	if cmd := proposeBackfill(w, v, waiting); cmd != nil && w.oneIn(2) {
		return cmd
	}
	c, ok := v.Configuration(waiting[0].Configuration)
	if !ok || waiting[0].Backfill {
		return nil
	}
	return &matchmaking.ProposeMatches{Configuration: c.Name, Version: c.Version, Proposals: []matchmaking.Proposal{{
		ID: w.uuid(), PlayersMax: int32(2 + w.chance.IntN(6)), Tickets: []matchmaking.ProposedTicket{{TicketKey: w.ticketKey(&waiting[0]), Team: "red"}},
	}}}
}

// serve returns the next command of a game server.
func (w *Wishes) serve(v *cell.View) kernel.Command {
	key, ok := w.process(v)
	if !ok {
		return registerCompute(w, v)
	}
	hosted := !w.oneIn(3)
	for range 6 { // one that hosts a game, or that is free for one
		p, ok := v.Process(key)
		if hosted && p.Session != 0 || !hosted && (!ok || p.Session == 0 && !p.Eligible()) {
			break
		}
		key, _ = w.process(v)
	}
	p, ok := v.Process(key)
	switch {
	case !ok:
		return &hosting.ConnectProcess{Process: key, Link: w.number(), SDK: "Go 5.5.0"}
	case p.State == fleet.Ended, p.HadSession && p.Session == 0: // a process hosts one game; a new one takes its name
		return &hosting.ActivateProcess{Process: key, Link: w.number(), Port: uint16(7000 + w.chance.IntN(9)), Request: w.request(), SDK: "Go 5.5.0"}
	case !p.Linked && w.oneIn(3):
		return nil // it may never come back
	case !p.Linked:
		return &hosting.ConnectProcess{Process: key, Link: w.number(), SDK: "Go 5.5.0"}
	case p.TerminateBy != 0 && !w.oneIn(4):
		return &hosting.EndProcess{Process: key, Request: w.request()}
	case p.State != fleet.ProcessReady:
		return &hosting.ActivateProcess{Process: key, Link: p.Link, Port: uint16(7000 + w.chance.IntN(9)), Request: w.request(), SDK: "Go 5.5.0"}
	case p.Health != fleet.Healthy && !w.oneIn(3):
		return &hosting.ReportHealth{Process: key, Healthy: true, LastHealthy: w.now}
	}
	g, ok := v.Hosting(key)
	if !ok {
		return &hosting.ReportHealth{Process: key, Healthy: !w.oneIn(20), LastHealthy: w.now}
	}
	switch {
	case g.Status == session.Activating && !g.Prompted:
		return &hosting.PromptGameSession{Process: key, Game: g.ID}
	case g.Status == session.Activating:
		return &hosting.ActivateGameSession{Process: key, Game: g.ID}
	}
	if id, ok := v.GameInstanceOf(g.ID); ok && !w.oneIn(8) {
		return w.referee(v, &p, &g, id)
	}
	switch {
	case w.oneIn(10): // the host is lost, temporarily or permanently
		return &hosting.LoseLink{Process: key, Link: p.Link}
	case g.Status == session.Terminating || !w.plays(v, g.ID) || w.oneIn(30):
		return &hosting.EndProcess{Process: key, Request: w.request()}
	}
	return &hosting.ReportHealth{Process: key, Healthy: !w.oneIn(10), LastHealthy: w.now}
}

// plays reports whether a game session hosts a game instance that has not ended.
func (w *Wishes) plays(v *cell.View, id session.ID) bool {
	_, ok := v.GameInstanceOf(id)
	return ok
}

// referee returns a game server's command about the players of a game instance.
func (w *Wishes) referee(v *cell.View, p *fleet.Process, g *session.GameSession, id flow.InstanceID) kernel.Command {
	x, members, _ := v.GameInstance(id)
	if !x.Ready && x.Status == flow.InstanceActive && !w.oneIn(3) {
		return &playerflow.ReadyGame{Instance: id}
	}
	draw := w.chance.IntN(100)
	if len(members) == 0 && draw < 60 {
		draw = 60 + w.chance.IntN(40)
	}
	switch {
	case draw < 40:
		for range 4 {
			m := members[w.chance.IntN(len(members))]
			if m.Status == flow.MemberReserved {
				return w.accept(p, g, id, m.Session)
			}
			if !m.Next.IsZero() && !w.oneIn(3) {
				return w.accept(p, g, id, m.Next)
			}
		}
		return nil
	case draw < 60:
		m := members[w.chance.IntN(len(members))]
		lost := m.Session
		if !m.Next.IsZero() && w.oneIn(4) {
			lost = m.Next
		}
		if w.oneIn(2) {
			return &hosting.RemovePlayer{Process: p.Key, Game: g.ID, Player: lost}
		}
		return &playerflow.DisconnectMember{Instance: id, PlayerSession: lost, Quit: w.oneIn(10)}
	case draw < 66:
		return &playerflow.AddMembers{Instance: id, Players: []playerflow.PlannedPlayer{{Player: w.playerName(), Team: "blue"}, {Player: w.playerName(), Team: "red"}}}
	case draw < 74:
		cmd := &playerflow.EnterBackfill{Instance: id, Ticket: domain.BackfillID(w.uuid()), Slots: int32(w.chance.IntN(2))}
		if x.Queue == "" || w.oneIn(8) {
			cmd.Queue, cmd.Teams = w.matchmakerName(), map[string]string{}
			for _, m := range members {
				if w.oneIn(2) {
					cmd.Teams[m.Player] = matchTeams[w.chance.IntN(len(matchTeams))]
				}
			}
		}
		return cmd
	case draw < 77:
		return &playerflow.LeaveBackfill{Instance: id}
	case draw < 80:
		own := map[string]string{w.playerName(): `{"lives":2}`}
		return &playerflow.UpdateGame{Instance: id, Attributes: new(`{"round":2}`), PlayerAttributes: own, Unranked: new(w.oneIn(4))}
	case draw < 86:
		return &playerflow.KeepGameAlive{Instance: id}
	case draw < 88:
		return &playerflow.RemoveMembers{Instance: id, Players: []playerflow.RemovedMember{{Player: w.memberName(members), Reason: flow.RemovedAFK, Penalise: w.oneIn(2)}}}
	case draw < 93:
		return &playerflow.ReleaseMembers{Instance: id, Players: []string{w.memberName(members)}, Result: `{"place":4}`}
	case draw < 95:
		return &playerflow.EndGame{Instance: id, Result: `{"won":"red"}`, Results: map[string]string{w.memberName(members): `{"place":1}`}}
	case draw < 97:
		return &hosting.TerminateGameSession{ID: g.ID, Force: w.oneIn(3), Agent: w.oneIn(2)}
	case draw < 98:
		return &hosting.SetPlayerPolicy{Process: p.Key, Game: g.ID, Deny: w.oneIn(2), Request: w.request()}
	}
	return &hosting.ReportHealth{Process: p.Key, Healthy: w.oneIn(2), LastHealthy: w.now}
}

func (w *Wishes) memberName(members []flow.Membership) string {
	if len(members) == 0 || w.oneIn(10) {
		return w.playerName()
	}
	return members[w.chance.IntN(len(members))].Player
}

// accept accepts a player in one of the two ways of game servers.
func (w *Wishes) accept(p *fleet.Process, g *session.GameSession, instance flow.InstanceID, id domain.PlayerSessionID) kernel.Command {
	if w.oneIn(2) {
		return &hosting.AcceptPlayer{Process: p.Key, Game: g.ID, Player: id, Request: w.request()}
	}
	return &playerflow.ConnectMember{Instance: instance, PlayerSession: id}
}

// live returns the next command of a player.
func (w *Wishes) live(v *cell.View) kernel.Command {
	s, by := w.someone(v)
	by.Request = ""
	if w.oneIn(2) { // it may be repeated; see repetitionOf
		by.Request = onceOnly + w.uuid().String()
	}
	switch {
	case s.Login.ID.IsZero():
		name := w.playerName()
		if s.Player != "" {
			name = s.Player
		}
		return &playerflow.Login{Player: name, LoginSessionID: flow.LoginSessionID(w.uuid()), Token: w.uuid(), Device: "phone", AutoReconnect: w.oneIn(4)}
	case s.Presence != flow.Online && !w.oneIn(4):
		return &playerflow.AttachStream{Player: by.Player, LoginSessionID: by.LoginSessionID, Stream: w.number()}
	case s.Game == nil:
		return w.lookForGame(v, &s, by)
	}
	return w.play(&s, by)
}

// play returns the command of a player in a game.
func (w *Wishes) play(s *playerflow.FlowSnapshot, by playerflow.Caller) kernel.Command {
	m, id := &s.Game.Membership, s.Game.ID
	details := &playerflow.GetHostConnectionDetails{Caller: by, Instance: id}
	if w.oneIn(4) {
		details.Data = new("said anew")
	}
	draw := w.chance.IntN(100)
	switch {
	case s.Game.Status == flow.InstanceEnding && draw < 40:
		return details
	case draw < 3:
		return &playerflow.LeaveGame{Caller: by, Instance: id}
	case draw < 6:
		return &playerflow.DeclineReconnect{Caller: by, Instance: id}
	case draw < 14:
		return &playerflow.LoseStream{Player: s.Player, Stream: s.Stream}
	case draw < 24: // another device
		return &playerflow.Login{Player: s.Player, LoginSessionID: flow.LoginSessionID(w.uuid()), Token: w.uuid(), Device: "console", AutoReconnect: w.oneIn(2)}
	case draw < 26:
		return &playerflow.UpdateOwnGame{Caller: by, Attributes: `{"map":"harbour"}`}
	case m.Status == flow.MemberPending && draw < 80, m.Status == flow.MemberActive && draw < 70, draw > 90:
		return nil
	}
	return details
}

// lookForGame returns the command of a player without a game.
func (w *Wishes) lookForGame(v *cell.View, s *playerflow.FlowSnapshot, by playerflow.Caller) kernel.Command {
	_, _, g := w.played(v)
	switch draw := w.chance.IntN(100); {
	case draw < 20:
		return w.gameOfIdle(v, s.Player)
	case draw < 50:
		return &playerflow.JoinGameInstance{Caller: by, Instance: g, Team: "red", Data: "data of a joiner"}
	case draw < 54:
		plan := w.plan()
		plan.PlayersMax = int32(1 + w.chance.IntN(6))
		return &playerflow.CreateGameInstance{Caller: by, Plan: plan}
	case draw < 62 && s.Party == nil:
		return joinParty(w, v)
	case draw < 70:
		return &playerflow.SetReady{Caller: by, Ready: true}
	case draw < 88:
		return &playerflow.EnterMatchmaking{Caller: by, Ticket: domain.TicketID(w.uuid()), Party: flow.PartyID(w.uuid()), Queue: w.matchmakerName()}
	case draw < 95:
		return answerMatch(w, v)
	}
	return &playerflow.LoseStream{Player: s.Player, Stream: s.Stream}
}

// gameOfIdle creates a game for idle players, most of the time with room for more.
func (w *Wishes) gameOfIdle(v *cell.View, first string) kernel.Command {
	plan := w.plan()
	plan.Players = []playerflow.PlannedPlayer{{Player: first, Team: "red", Data: "planned"}}
	for range w.chance.IntN(5) {
		s, ok := v.FlowOf(w.playerName(), w.now)
		if !ok || s.Player == first || s.Game != nil || s.Search != nil && !w.oneIn(8) {
			continue
		}
		first = s.Player
		plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: s.Player, Team: "red"})
	}
	plan.PlayersMax = int32(len(plan.Players) + w.chance.IntN(4))
	return &playerflow.MakeGame{Plan: plan}
}
