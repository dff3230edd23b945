package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// The races of a return to a game, as far as they can be caused from outside, against the binary and a server with the
// official SDK. The numbers are from docs/spec/reconnect.md#races.
func TestReconnectRaces(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	for _, race := range []struct {
		name string
		run  func(t *testing.T, p *place)
	}{
		{"R1 the game ends first", raceEndFirst},
		{"R1 the details come first", raceDetailsFirst},
		{"R2 and R3 two devices want to return", raceTwoDevices},
		{"R4 the reservation is over before the server sees it", raceReservationOver},
		{"R6 the game server dies", raceServerDies},
		{"R7 a late word about a player session that was taken over", raceLateWord},
		{"R8 declined first", raceDeclineFirst},
		{"R8 declined with a reservation", raceDeclineReserved},
		{"R10 another player wants the seat", raceSeatWanted},
		{"R11 kicked from the party meanwhile", raceKicked},
		{"R12 the leader searches meanwhile", raceLeaderSearches},
		{"R13 the host comes too late", raceLateHost},
		{"R15 the game ends twice", raceEndTwice},
		{"R16 the game ends while the stream is lost", raceStreamLost},
		{"R17 removed while returning", raceRemoved},
		{"R18 the login ends while returning", raceLoginEnds},
		{"R19 accepted twice, and by another server", raceAcceptedTwice},
		{"R20 a crash before the first connection", raceCrashBefore},
		{"R21 the details are lost with the stream", raceDetailsLost},
	} {
		t.Run(race.name, func(t *testing.T) {
			q := p.within(t)
			race.run(t, q)
			q.noViolations(t)
		})
	}
}

func raceEndFirst(t *testing.T, p *place) {
	ann := p.come("r1-ann")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.loses(ann)
	g.ends()
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusGone, "GAME_ENDED", g.object())
	removed := ann.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	if later := ann.stands("IDLE", ""); later.at("seq").(float64) < removed["seq"].(float64) {
		t.Errorf("the snapshot is at %v, before the end", later.at("seq"))
	}
}

func raceDetailsFirst(t *testing.T, p *place) {
	ann := p.come("r1-amy")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.loses(ann)
	g.details(ann)
	g.tells("EndGame", object{})
	ann.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	g.refusesSeat(g.seats[ann.name], "the game has ended")
	p.untilPlayer(g.seats[ann.name], types.PlayerSessionStatusTimedout)
	g.server.kill()
}

func raceTwoDevices(t *testing.T, p *place) {
	first := p.come("r2-ann")[0]
	g := p.game("OPTIONAL", first)
	g.accept(first)
	g.loses(first)
	g.details(first)
	seat, token := g.seats[first.name], g.tokens[first.name]
	shown := object{"game_instance_id": g.instance, "player_session_id": seat, "connection_token": token}

	second := p.come(first.name)[0]
	first.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "SESSION_REPLACED", g.object())
	p.flowCall(t, "partner", "Game.VerifyPlayer", "", http.StatusOK, shown) // the same player, and the second device may never ask
	g.details(second)
	p.flowCall(t, "partner", "Game.VerifyPlayer", "", http.StatusConflict, shown)
	g.refusesSeat(seat, "the second device has asked")
	var open []string
	for _, seat := range p.seats(g.session) {
		if seat == first.name+" RESERVED" || seat == first.name+" ACTIVE" {
			open = append(open, seat)
		}
	}
	if len(open) != 1 {
		t.Errorf("open are %v, want one", open)
	}
	g.accept(second)
	g.ends()
}

func raceReservationOver(t *testing.T, p *place) {
	all := p.come("r4-ann", "r4-bob")
	ann, bob := all[0], all[1]
	g := p.game("OPTIONAL", all...)
	g.accept(ann)
	g.loses(ann)
	g.details(ann)
	p.advance(61 * time.Second)
	for player, want := range map[*flowPlayer]string{ann: "DISCONNECTED", bob: "NO_SHOW"} {
		g.refusesSeat(g.seats[player.name], "the reservation is over")
		player.stands("IN_GAME", want)
		g.details(player)
		g.accept(player)
	}
	g.ends()
}

func raceServerDies(t *testing.T, p *place) {
	all := p.come("r6-ann", "r6-bob")
	ann, bob := all[0], all[1]
	g := p.game("OPTIONAL", all...)
	g.accept(all...)
	g.loses(bob)
	p.advance(150 * time.Second)
	g.server.kill()
	waittest.Until(t, "the host to be suspect", func() bool {
		o := p.partner(t, "Flow.GetPlayers", object{"player_ids": []string{ann.name}})
		return o.at("players", "game_instance", "host_suspect") == true
	})
	p.advance(60 * time.Second) // his window is over, but no player is removed while it is not known
	bob.stands("IN_GAME", "DISCONNECTED")
	p.advance(40 * time.Second) // the grace for lost connections is over
	for _, player := range all {
		player.hears("OnRemovedFromGame", "reason", "HOST_LOST")
		player.stands("IDLE", "")
	}
	if locks := ann.snapshot().count("locks"); locks != 0 {
		t.Errorf("a host that is lost costs %d locks", locks)
	}
}

func raceLateWord(t *testing.T, p *place) {
	first := p.come("r7-ann")[0]
	g := p.game("OPTIONAL", first)
	g.accept(first)
	old := g.seats[first.name]
	second := p.come(first.name)[0]
	g.details(second)
	g.server.must("accept", g.seats[first.name])
	if said := g.tells("PlayerDisconnected", object{"player_session_id": old, "reason": "CONNECTION_LOST"}); said.at("stale") != true {
		t.Errorf("the late word: %v", said)
	}
	g.server.do("remove", old) // the server SDK tells it, too; it may be refused
	second.stands("IN_GAME", "ACTIVE")
	g.ends()
}

func raceDeclineFirst(t *testing.T, p *place) {
	ann := p.come("r8-ann")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.loses(ann)
	ann.call("GameInstance.DeclineReconnect", g.object())
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "NOT_IN_GAME", g.object())
	g.ends()
}

func raceDeclineReserved(t *testing.T, p *place) {
	ann := p.come("r8-amy")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.loses(ann)
	g.details(ann)
	ann.call("GameInstance.DeclineReconnect", g.object())
	g.refusesSeat(g.seats[ann.name], "the player has declined")
	ann.stands("IDLE", "")
	g.ends()
}

func raceSeatWanted(t *testing.T, p *place) {
	all := p.come("r10-ann", "r10-bob", "r10-cyd", "r10-dan")
	g := p.game("OPTIONAL", all...) // all four seats
	g.accept(all...)
	g.loses(all[0])
	if _, err := p.reserve(g.session, "r10-stranger"); !isError[*types.GameSessionFullException](err) {
		t.Errorf("a stranger gets the seat that is kept: %v", err)
	}
	all[0].call("GameInstance.DeclineReconnect", g.object())
	if _, err := p.reserve(g.session, "r10-stranger"); err != nil {
		t.Errorf("a stranger and the seat that is free: %v", err)
	}
	g.ends()
}

func raceKicked(t *testing.T, p *place) {
	all := p.come("r11-ann", "r11-bob")
	ann, bob := all[0], all[1]
	gather(ann, bob)
	g := p.game("OPTIONAL", all...)
	g.accept(all...)
	g.loses(bob)
	ann.call("Party.KickPlayer", object{"player_id": bob.name})
	bob.hears("OnRemovedFromParty", "reason", "KICKED")
	if keys := bob.stands("IN_GAME", "DISCONNECTED"); keys.text("keys", "PARTY_ID") != "" || keys.text("keys", "GAME_INSTANCE_ID") != g.instance {
		t.Errorf("the keys of one who was kicked: %v", keys)
	}
	g.details(bob)
	g.accept(bob)
	g.ends()
}

func raceLeaderSearches(t *testing.T, p *place) {
	all := p.come("r12-ann", "r12-bob")
	ann, bob := all[0], all[1]
	gather(ann, bob)
	g := p.game("OPTIONAL", bob)
	g.accept(bob)
	g.loses(bob)
	before := []any{ann.snapshot().at("rev"), bob.snapshot().at("rev")}
	refused := ann.fails("Matchmaking.EnterMatchmaking", http.StatusConflict, "PLAYER_IN_GAME", object{"queue": "any"})
	if names, _ := refused.at("details", "players").([]any); !slices.Equal(names, []any{bob.name}) {
		t.Errorf("the leader is told of %v", names)
	}
	if after := []any{ann.snapshot().at("rev"), bob.snapshot().at("rev")}; !slices.Equal(before, after) {
		t.Errorf("revisions %v became %v", before, after)
	}
	g.ends()
}

func raceLateHost(t *testing.T, p *place) {
	ann := p.come("r13-ann")[0]
	g := p.wish("OPTIONAL", ann)
	p.advance(121 * time.Second)
	ann.hears("OnFailedToAllocateGameInstance", "reason", "TIMEOUT")
	ann.stands("IDLE", "")
	seq := ann.snapshot().at("seq")
	g.server.do("activate") // late; it may be refused already
	p.untilGameSession(g.session, types.GameSessionStatusTerminating, types.GameSessionStatusTerminated)
	if now := ann.stands("IDLE", ""); now.at("seq") != seq {
		t.Errorf("a player who is free was told something: event %v, then %v", seq, now.at("seq"))
	}
	g.server.kill()
}

func raceEndTwice(t *testing.T, p *place) {
	ann := p.come("r15-ann")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.tells("EndGame", object{"result": object{"winner": "red"}})
	seq := ann.snapshot().at("seq")
	g.tells("EndGame", object{"result": object{"winner": "blue"}})
	if now := ann.snapshot(); now.at("seq") != seq || now.text("last_game", "result", "winner") != "red" {
		t.Errorf("after the second end: %v, want event %v", now, seq)
	}
	g.server.kill()
}

func raceStreamLost(t *testing.T, p *place) {
	all := p.come("r16-ann", "r16-bob")
	g := p.game("OPTIONAL", all...)
	g.accept(all...)
	for _, player := range all {
		player.crash()
	}
	g.tells("EndGame", object{"result": object{"winner": "red"}})
	ann, bob := all[0], all[1]
	ann.attach() // after the events that it has
	ann.hears("OnGameEnded", "result.winner", "red")
	ann.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	if last := bob.comeBack(); last.text("flow_snapshot", "last_game", "result", "winner") != "red" || last.text("flow_snapshot", "last_game", "membership_end_reason") != "GAME_ENDED" {
		t.Errorf("at the login there is %v", last)
	}
	g.server.kill()
}

func raceRemoved(t *testing.T, p *place) {
	ann := p.come("r17-ann")[0]
	g := p.game("OPTIONAL", ann)
	g.accept(ann)
	g.loses(ann)
	g.details(ann)
	g.tells("RemovePlayers", object{"players": []object{{"player_id": ann.name, "reason": "KICKED"}}})
	ann.hears("OnRemovedFromGame", "reason", "REMOVED")
	g.refusesSeat(g.seats[ann.name], "the player was removed")
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "NOT_IN_GAME", g.object())
	if s := ann.snapshot(); s.text("last_game", "game_instance_id") != g.instance {
		t.Errorf("the last game: %v", s)
	}
	g.ends()
}

func raceLoginEnds(t *testing.T, p *place) {
	ann := p.come("r18-ann")[0]
	g := p.game("REQUIRED", ann)
	g.accept(ann)
	g.loses(ann)
	g.details(ann)
	p.flowCall(t, "operator", "Operator.ForceLogout", "", http.StatusOK, object{"player_id": ann.name, "reason": "test"})
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusUnauthorized, "SESSION_NOT_FOUND", g.object())
	ann.comeBack()
	g.details(ann)
	g.accept(ann)
	g.ends()
}

func raceAcceptedTwice(t *testing.T, p *place) {
	ann := p.come("r19-ann")[0]
	g := p.game("OPTIONAL", ann)
	other, _ := p.hosting(sdkOptions{}, 2)
	if l := other.do("accept", g.seats[ann.name]); l.Error == "" {
		t.Error("the server of another game accepts the player")
	}
	g.accept(ann)
	g.refusesSeat(g.seats[ann.name], "it is accepted already")
	ann.stands("IN_GAME", "ACTIVE")
	g.ends()
	other.kill()
}

func raceCrashBefore(t *testing.T, p *place) {
	all := p.come("r20-ann", "r20-bob")
	ann, bob := all[0], all[1]
	g := p.game("OPTIONAL", all...)
	for _, player := range all {
		player.crash()
	}
	p.advance(61 * time.Second)
	if o := ann.comeBack(); o.text("flow_snapshot", "game_instance", "membership", "status") != "NO_SHOW" {
		t.Errorf("at the login: %v", o)
	}
	if again := g.details(ann); again.at("host", "attempt") != 2.0 {
		t.Errorf("the second attempt: %v", again)
	}
	g.accept(ann)
	p.advance(121 * time.Second) // he does not come
	if o := bob.comeBack(); o.text("flow_snapshot", "last_game", "membership_end_reason") != "NO_SHOW" {
		t.Errorf("at the login: %v", o)
	}
	g.ends()
}

func raceDetailsLost(t *testing.T, p *place) {
	ann := p.come("r21-ann")[0]
	g := p.wish("OPTIONAL", ann)
	ann.until("OnAddedToGame")
	ann.crash()
	g.server.must("activate")
	ann.attach() // the replay has them
	g.reserved(ann, "ALLOCATED")
	first := g.seats[ann.name]
	p.advance(20 * time.Second)
	if g.details(ann); g.seats[ann.name] != first {
		t.Error("with 40 s left there is another reservation")
	}
	p.advance(35 * time.Second)
	if g.details(ann); g.seats[ann.name] == first {
		t.Error("with 5 s left there is no other reservation")
	}
	g.refusesSeat(first, "it was replaced")
	g.accept(ann)
	g.ends()
}
