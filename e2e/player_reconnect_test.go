package e2e

import (
	"net/http"
	"testing"
	"time"
)

// A lost connection in each mode, with a game server that uses only the server SDK.

// OPTIONAL: the seat is kept for a while; the player may decline it, or be too late.
func TestReconnectIsOptional(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	all := p.come("ann", "bob", "cyd")
	ann, bob, cyd := all[0], all[1], all[2]
	g := p.game("OPTIONAL", all...)
	g.accept(all...)
	ann.fails("GameInstance.DeclineReconnect", http.StatusConflict, "NOT_DISCONNECTED", g.object())
	for _, player := range all {
		g.loses(player)
		offer := player.until("OnReconnectAvailable")
		if offer.at("data", "can_decline") != true || offer.text("data", "deadline") == "" {
			t.Errorf("%s is offered %v", player.name, offer)
		}
		busy := player.fails("Matchmaking.EnterMatchmaking", http.StatusConflict, "PLAYER_IN_GAME", object{"queue": "any"})
		if busy.at("details", "can_decline") != true || busy.text("details", "players") == "" && busy.count("details", "players") != 1 {
			t.Errorf("%s is told %v", player.name, busy)
		}
	}
	ann.call("GameInstance.DeclineReconnect", g.object())
	ann.hears("OnRemovedFromGame", "reason", "DECLINED")
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "NOT_IN_GAME", g.object())
	ann.stands("IDLE", "")

	p.advance(179 * time.Second)
	bob.stands("IN_GAME", "DISCONNECTED")
	g.details(cyd) // loads, when the window closes
	p.advance(time.Second)
	bob.hears("OnRemovedFromGame", "reason", "RECONNECT_EXPIRED")
	bob.stands("IDLE", "")
	cyd.stands("IN_GAME", "RESERVED")
	g.accept(cyd)
	g.ends()
	cyd.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	p.noViolations(t)
}

// OFF: a player who loses the connection is out of the game, and free.
func TestReconnectIsOff(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	ann := p.come("ann")[0]
	g := p.game("OFF", ann)
	g.accept(ann)
	ann.fails("GameInstance.DeclineReconnect", http.StatusConflict, "CANNOT_DECLINE_RECONNECT", g.object())
	g.server.must("remove", g.seats["ann"])
	ann.hears("OnRemovedFromGame", "reason", "DISCONNECTED")
	ann.stands("IDLE", "")
	ann.fails("Matchmaking.EnterMatchmaking", http.StatusNotFound, "QUEUE_NOT_FOUND", object{"queue": "any"}) // free to search
	p.noViolations(t)
}

// REQUIRED: no player can leave before the game ends, unless its server releases the player.
func TestReconnectIsRequired(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	g := p.game("REQUIRED", all...)
	g.accept(all...)
	g.loses(ann)
	p.advance(time.Hour) // the seat is kept to the end of the game
	ann.fails("GameInstance.LeaveGame", http.StatusConflict, "LEAVE_NOT_ALLOWED", g.object())
	ann.fails("GameInstance.DeclineReconnect", http.StatusConflict, "CANNOT_DECLINE_RECONNECT", g.object())
	busy := ann.fails("Matchmaking.EnterMatchmaking", http.StatusConflict, "PLAYER_IN_GAME", object{"queue": "any"})
	if can, _ := busy.at("details", "can_decline").(bool); can {
		t.Errorf("a player who must come back is told %v", busy)
	}
	again := ann.comeBack()
	if g := again.at("flow_snapshot", "game_instance", "membership", "can_decline"); g != false {
		t.Errorf("at the login: %v", again)
	}
	g.details(ann)
	g.accept(ann)
	bob.fails("GameInstance.LeaveGame", http.StatusConflict, "LEAVE_NOT_ALLOWED", g.object())
	g.tells("ReleasePlayers", object{"player_ids": []string{"ann"}}) // eliminated
	ann.hears("OnRemovedFromGame", "reason", "RELEASED")
	ann.stands("IDLE", "")
	bob.stands("IN_GAME", "ACTIVE")
	g.ends()
	bob.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	p.noViolations(t)
}

// A second device takes over: the stream of the first is closed with 4409, and it continues to play until the server admits the second.
func TestTakeover(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	first := p.come("ann")[0]
	g := p.game("OPTIONAL", first)
	g.accept(first)
	old := g.seats["ann"]

	second := p.come("ann")[0]
	if code := first.untilClosed(); code != 4409 {
		t.Errorf("the first device is closed with %d", code)
	}
	first.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "SESSION_REPLACED", g.object())
	second.stands("IN_GAME", "ACTIVE") // only to look at the party, perhaps

	second.call("GameInstance.GetHostConnectionDetails", g.object())
	g.reserved(second, "TAKEOVER")
	if got := p.gameSession(g.session); *got.CurrentPlayerSessionCount > 2 {
		t.Errorf("the takeover takes %d seats", *got.CurrentPlayerSessionCount)
	}
	second.stands("IN_GAME", "ACTIVE")
	p.untilPlayer(old, "ACTIVE")
	g.server.must("accept", g.seats["ann"])
	p.untilPlayer(old, "COMPLETED")
	p.untilPlayer(g.seats["ann"], "ACTIVE")
	if s := second.stands("IN_GAME", "ACTIVE"); s.at("game_instance", "membership", "disconnects") != 0.0 {
		t.Errorf("the takeover counts as a lost connection: %v", s)
	}

	// An unused one changes nothing.
	third := p.come("ann")[0]
	third.call("GameInstance.GetHostConnectionDetails", g.object())
	g.reserved(third, "TAKEOVER")
	p.advance(61 * time.Second)
	p.untilPlayer(g.seats["ann"], "TIMEDOUT")
	third.stands("IN_GAME", "ACTIVE")
	p.noViolations(t)
}
