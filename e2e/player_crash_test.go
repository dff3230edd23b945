package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
)

// One story, from the party to the end of the game. The service is killed before the first step and after each one; acknowledged changes
// exist after the restart, and the story continues. The game server uses the official SDK, which reconnects automatically.
func TestStoryOverKills(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	p.queue("duo")
	p.matchOf("duo", "2")
	n := startNetwork(t, p.address)
	server := p.ready(sdkOptions{url: "ws://" + n.address})
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	var instance, seat string
	var last object // the latest snapshot
	restart := func() {
		before, release := server.connections(), n.hold()
		p.kill()
		p.start()
		release()
		server.untilConnected(before)
	}
	game := func() object { return object{"game_instance_id": instance} }

	for _, step := range []struct {
		name, phase, membership string
		do                      func()
	}{
		{"they are logged in", "IDLE", "", func() {}},
		{"a party", "IN_PARTY", "", func() { gather(ann, bob) }},
		{"a search", "MATCHMAKING", "", func() {
			last = ann.call("Matchmaking.EnterMatchmaking", object{"queue": "duo"})
			for _, player := range all {
				last = player.until("OnMatchFound")
			}
		}},
		{"one has accepted", "MATCHMAKING", "", func() {
			last = ann.call("Matchmaking.AcceptMatch", object{"matchmaking_id": last.text("data", "matchmaking_id"), "accept": true})
		}},
		{"all have accepted", "IN_GAME", "PENDING", func() {
			bob.call("Matchmaking.AcceptMatch", object{"matchmaking_id": last.text("ticket", "matchmaking_id"), "accept": true})
			server.untilEvent("start", 1)
			instance = ann.until("OnAddedToGame").text("data", "game_instance_id")
			bob.until("OnAddedToGame")
		}},
		{"the server is there", "IN_GAME", "RESERVED", func() {
			server.must("activate")
			for _, player := range all {
				seat = player.until("OnHostConnectionDetailsReceived").text("data", "player_session_id")
			}
		}},
		{"both play", "IN_GAME", "ACTIVE", func() {
			for _, player := range all {
				seat = player.snapshot().text("game_instance", "host", "player_session_id")
				server.must("accept", seat)
				player.hears("OnGameMembershipChanged", "new", "ACTIVE")
			}
		}},
		{"bob is lost", "IN_GAME", "DISCONNECTED", func() {
			server.must("remove", seat)
			bob.hears("OnGameMembershipChanged", "new", "DISCONNECTED")
		}},
		{"bob has a seat again", "IN_GAME", "RESERVED", func() {
			ask := func() object {
				_, o, err := p.answerOf("player", "GameInstance.GetHostConnectionDetails", bob.token, game(), "X-Request-Id", "return-1")
				must(t, err)
				return o
			}
			o := ask()
			if seat = o.text("host", "player_session_id"); o.at("host", "attempt") != 2.0 {
				t.Errorf("the details of the return: %v", o)
			}
			restart() // the answer may have been lost with it
			if again := ask(); again.text("host", "player_session_id") != seat || seat == "" {
				t.Errorf("asked again with the same request id after a kill: %v, first %s", again, seat)
			}
		}},
		{"bob is back", "IN_GAME", "ACTIVE", func() {
			server.must("accept", seat)
			bob.hears("OnGameMembershipChanged", "new", "ACTIVE")
		}},
		{"the end", "IN_PARTY", "", func() {
			p.partner(t, "Game.EndGame", object{"game_instance_id": instance, "result": object{"winner": "all"}})
			for _, player := range all {
				player.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
			}
		}},
	} {
		step.do()
		told := bob.stands(step.phase, step.membership)
		restart()
		if now := bob.stands(step.phase, step.membership); now.remembered() != told.remembered() {
			t.Errorf("%s: before the kill there was\n%s\nand after it\n%s", step.name, told.remembered(), now.remembered())
		}
		for _, player := range all {
			if hello := player.attach(); player.last > 0 && hello.text("resume") != "REPLAY" {
				t.Errorf("%s: %s comes back with %v", step.name, player.name, hello)
			}
		}
		p.noViolations(t)
	}
	if bob.snapshot().text("last_game", "result", "winner") != "all" {
		t.Errorf("the last game: %v", bob.snapshot())
	}
	bob.fails("GameInstance.LeaveGame", http.StatusGone, "GAME_ENDED", game())
}

// remembered returns what a restart must not change in a snapshot: everything except the clock, presence, and deadlines, which move by
// the downtime.
func (o object) remembered() string {
	kept := object{"rev": o["rev"], "keys": o["keys"], "phase": o["phase"], "epoch": o.at("session", "epoch"), "party": o.at("party", "party_id"),
		"code": o.at("party", "invite_code"), "search": o.at("ticket", "matchmaking_id"), "entered": o.at("ticket", "entered_at"),
		"accepted": o.at("ticket", "acceptance", "accepted"), "host": o.at("game_instance", "host", "player_session_id"),
		"attempt": o.at("game_instance", "membership", "attempt"), "disconnects": o.at("game_instance", "membership", "disconnects"),
		"last": o["last_game"]}
	text, _ := json.MarshalIndent(kept, "", " ") // it came as JSON
	return string(text)
}
