package e2e

import "testing"

// gameToken returns the token that a game server gets for its game from Server.Exchange.
func (g *flowGame) gameToken() string {
	g.place.t.Helper()
	return g.place.partner(g.place.t, "Server.Exchange", object{
		"auth_token": g.place.token, "process_id": g.server.process, "game_session_id": g.session,
	}).text("partner_token")
}

// A compromised game server makes every call that its token allows, and tries others. It can neither seat, remove, penalize nor report
// players of other games and players who never asked for this game.
func TestAttackGameTokenAgainstOtherPlayers(t *testing.T) {
	t.Parallel()
	p := startFlow(t, "--player-penalties", "ENFORCE")
	players := p.come("mine", "theirs", "idle", "mate", "leader")
	mine, theirs, idle, mate, leader := players[0], players[1], players[2], players[3], players[4]
	party := gather(leader, mate)
	evil := p.game("OPTIONAL", mine)
	other := p.game("OPTIONAL", theirs)
	evil.accept(mine)
	other.accept(theirs)
	token := evil.gameToken()
	call := func(call string, want int, body object) object {
		t.Helper()
		return p.flowCall(t, "partner", call, token, want, body)
	}

	named := []object{{"player_id": "theirs"}, {"player_id": "idle"}, {"player_id": "mate"}, {"player_id": "leader"}}
	added := call("Game.AddPlayers", 200, object{"players": named})
	failed, _ := added["failed"].([]any)
	if len(failed) != len(named) {
		t.Errorf("AddPlayers seated strangers: %v", added)
	}
	var blamed []object
	for _, x := range named {
		blamed = append(blamed, object{"player_id": x["player_id"], "reason": "AFK", "penalise": true})
	}
	call("Game.RemovePlayers", 200, object{"players": blamed})
	call("Game.ReleasePlayers", 200, object{"player_ids": []string{"theirs", "idle", "mate"}})
	call("Game.Update", 200, object{"player_attributes": object{"theirs": object{"x": 1}, "idle": object{"x": 1}}})
	call("Game.PlayerConnected", 409, object{"player_session_id": other.seats["theirs"]})
	call("Game.PlayerDisconnected", 409, object{"player_session_id": other.seats["theirs"], "reason": "QUIT"})
	for _, name := range []string{"Game.GetStartData", "Game.Ready", "Game.KeepAlive", "Game.EndGame", "Game.LeaveMatchmaking", "Game.EnterMatchmaking", "Game.Update"} {
		call(name, 403, object{"game_instance_id": other.instance})
	}
	call("Game.AddPlayers", 403, object{"game_instance_id": other.instance, "players": named})
	call("Game.RemovePlayers", 403, object{"game_instance_id": other.instance, "players": blamed})
	call("Game.ReleasePlayers", 403, object{"game_instance_id": other.instance, "player_ids": []string{"theirs"}})
	call("Game.VerifyPlayer", 403, object{"game_instance_id": other.instance, "player_session_id": other.seats["theirs"], "connection_token": other.tokens["theirs"]})
	call("Game.VerifyPlayer", 409, object{"player_session_id": other.seats["theirs"], "connection_token": other.tokens["theirs"]})
	call("Flow.GetPlayers", 403, object{"player_ids": []string{"theirs"}})
	call("Flow.CreateGameInstance", 403, object{"players": named, "queue": "cup", "max_players": 4})
	call("Flow.ShutDownParty", 403, object{"party_id": party})
	call("Flow.SetPlayerAttributes", 403, object{"player_id": "idle", "attributes": object{"skill": 1}})
	call("Flow.SetBlocks", 403, object{"player_id": "idle", "blocked": []string{"mine"}})
	call("Identity.IssueLoginTicket", 403, object{"player_id": "idle"})
	call("Events.List", 403, object{})

	theirs.stands("IN_GAME", "ACTIVE")
	for _, x := range []*flowPlayer{theirs, idle, mate, leader} {
		if locks := x.snapshot()["locks"]; locks != nil && len(locks.([]any)) != 0 {
			t.Errorf("%s was penalised: %v", x.name, locks)
		}
	}
	p.noViolations(t)
}
