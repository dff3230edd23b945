package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// A server that has only the server SDK ends its process when the game is over: its players are told that the game has ended, not that
// it was terminated. After that, every call about the game gets the same answer, except a repeat of Game.EndGame.
func TestGameEndsWithItsServer(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	ann := p.come("ann")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.server.must("ending")
	ended := ann.until("OnGameEnded")
	if ended.text("data", "end_reason") != "FINISHED" {
		t.Errorf("the end: %v", ended)
	}
	ann.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	if last := ann.snapshot(); last.text("last_game", "end_reason") != "FINISHED" || last.count("locks") != 0 {
		t.Errorf("afterwards: %v", last)
	}

	about := func(more object) object {
		more["game_instance_id"] = g.instance
		return more
	}
	seat := object{"player_session_id": g.seats["ann"], "connection_token": g.tokens["ann"], "reason": "QUIT"}
	for call, body := range map[string]object{
		"Ready": {}, "KeepAlive": {}, "GetStartData": {}, "Update": {"attributes": object{}}, "EnterMatchmaking": {}, "LeaveMatchmaking": {},
		"VerifyPlayer": seat.only("player_session_id", "connection_token"), "PlayerConnected": seat.only("player_session_id"),
		"PlayerDisconnected": seat.only("player_session_id", "reason"), "ReleasePlayers": {"player_ids": []string{"ann"}},
		"RemovePlayers": {"players": []object{{"player_id": "ann", "reason": "OTHER"}}}, "AddPlayers": {"players": []object{{"player_id": "ann"}}},
	} {
		if o := p.flowCall(t, "partner", "Game."+call, "", http.StatusGone, about(body)); o.text("code") != "GAME_ENDED" {
			t.Errorf("Game.%s: %v", call, o)
		}
	}
	p.partner(t, "Game.EndGame", about(object{}))
	p.noViolations(t)
}

// only returns some members of an object.
func (o object) only(names ...string) object {
	few := object{}
	for _, name := range names {
		few[name] = o[name]
	}
	return few
}

// Allowed actions change without a change of the keys: because of a member who becomes ready, a held seat, or a lock. A user interface only needs
// to follow the stream.
func TestAllowedActionsAreTold(t *testing.T) {
	t.Parallel()
	p := startFlow(t, "--player-rates", "get-flow=off")
	p.duels("duel")
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	party := ann.call("Party.CreateParty", object{})
	bob.call("Party.JoinPartyByInviteCode", object{"code": party.text("party", "invite_code")})
	ann.hearsAction("KickPlayer", true)
	rev := ann.snapshot().at("rev")
	ann.call("Party.SetReady", object{"ready": true})
	bob.call("Party.SetReady", object{"ready": true})
	ann.hearsAction("EnterMatchmaking", true)
	bob.call("Party.SetReady", object{"ready": false})
	ann.hearsAction("EnterMatchmaking", false)
	if after := ann.snapshot().at("rev"); after != rev {
		t.Errorf("the revision went from %v to %v, and no key has changed", rev, after)
	}
	ann.call("Party.PromoteLeader", object{"player_id": "bob"})
	ann.hearsAction("DisbandParty", false)
	bob.hearsAction("DisbandParty", true)
	ann.call("Party.LeaveParty", object{})
	bob.call("Party.LeaveParty", object{})

	// A player who enters and leaves again and again is locked for a while, and gets events about the lock and its end.
	for range 3 {
		ann.call("Matchmaking.EnterMatchmaking", object{"queue": "duel"})
		ann.call("Matchmaking.LeaveMatchmaking", object{})
	}
	lock := ann.until("OnPenaltyApplied")
	if lock.text("data", "lock", "kind") != "REQUEUE" || lock.at("data", "lock", "level") != 0.0 || lock.text("data", "lock", "until") == "" {
		t.Errorf("the lock: %v", lock)
	}
	if now, _ := ann.snapshot().at("allowed_actions").([]any); slices.Contains(now, any("EnterMatchmaking")) {
		t.Errorf("a player who is locked may do %v", now)
	}
	p.advance(16 * time.Second)
	ann.hearsAction("EnterMatchmaking", true)
	p.noViolations(t)
}

// hearsAction reads events until one reports that an action is allowed, or not.
func (p *flowPlayer) hearsAction(action string, want bool) {
	p.t.Helper()
	p.untilOne(fmt.Sprintf("allowed_actions with %s: %v", action, want), func(o object) bool {
		told, ok := o.at("data", "allowed_actions").([]any)
		return ok && o.text("type") != "OnSync" && slices.Contains(told, any(action)) == want
	})
	if now, _ := p.snapshot().at("allowed_actions").([]any); slices.Contains(now, any(action)) != want {
		p.t.Errorf("%s is told that %s is allowed: %v, and may do %v", p.name, action, want, now)
	}
}
