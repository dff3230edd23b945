package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/operator"
)

// events runs muster events, and returns the entries, the earliest first.
func (s *service) events(t *testing.T, kind, id string, flags ...string) (all []operator.FeedEntry) {
	t.Helper()
	out := s.command(append([]string{"events", "--data", s.data, "--listen", s.address, "--json", "--limit", "0", kind, id}, flags...)...)
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var e operator.FeedEntry
		must(t, json.Unmarshal(lines.Bytes(), &e))
		all = append(all, e)
	}
	slices.Reverse(all)
	return all
}

// wantInOrder checks that the wanted entries occur in this order, possibly with others in between. Each is the kind of the object and the event.
func wantInOrder(t *testing.T, of string, all []operator.FeedEntry, want ...string) {
	t.Helper()
	var lines []string
	next := 0
	for _, e := range all {
		line := e.Kind + " " + e.What
		lines = append(lines, line+" ("+e.Detail+")")
		if next < len(want) && line == want[next] {
			next++
		}
	}
	if next < len(want) {
		t.Errorf("the events of %s have no %q at its place in\n%s", of, want[next], strings.Join(lines, "\n"))
	}
}

// One timeline follows a player from login to party, ticket, match, placement, server process, the return after a lost connection, and the end, including an operator's
// intervention. It is the same from memory, after a kill, and from the archive. The objects on the way have their own feeds.
func TestEventsFollowAPlayer(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	p.queue("duo")
	p.matchOf("duo", "2")
	server := p.ready(sdkOptions{})
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	then := func() { p.advance(time.Second) } // otherwise everything happens in one millisecond
	then()
	party := gather(ann, bob)
	then()
	ann.call("Matchmaking.EnterMatchmaking", object{"queue": "duo"})
	ticket := ""
	for _, player := range all {
		found := player.until("OnMatchFound")
		ticket = found.text("data", "matchmaking_id")
		then()
		player.call("Matchmaking.AcceptMatch", object{"matchmaking_id": ticket, "accept": true})
	}
	game := server.untilEvent("start", 1).Session.GameSessionId
	then()
	server.must("activate")
	instance, seats := "", map[string]string{}
	for _, player := range all {
		details := player.until("OnHostConnectionDetailsReceived")
		instance, seats[player.name] = details.text("data", "game_instance_id"), details.text("data", "player_session_id")
		server.must("accept", seats[player.name])
		player.hears("OnGameMembershipChanged", "new", "ACTIVE")
	}
	then()
	server.must("remove", seats[bob.name])
	bob.hears("OnGameMembershipChanged", "new", "DISCONNECTED")
	then()
	again := bob.call("GameInstance.GetHostConnectionDetails", object{"game_instance_id": instance})
	then()
	server.must("accept", again.text("host", "player_session_id"))
	bob.hears("OnGameMembershipChanged", "new", "ACTIVE")
	wantInOrder(t, "the game instance", p.events(t, "game-instance", instance), "game-instance MatchCommitted", "game-session GAME_SESSION_ACTIVATED")
	wantInOrder(t, "the party", p.events(t, "party", party), "party CREATED", "party JoinParty", "ticket EnterMatchmaking", "game-instance MatchCommitted", "game-session GAME_SESSION_ACTIVATED")
	then()
	p.partner(t, "Game.EndGame", object{"game_instance_id": instance})
	for _, player := range all {
		player.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	}
	then()
	p.flowCall(t, "operator", "Operator.ForceRelease", "", http.StatusOK, object{"reason": "asked by mail", "player_id": "bob", "keys": []string{"PARTY_ID"}})

	for _, when := range []string{"at once", "after a kill", "from the archive"} {
		switch when {
		case "after a kill":
			p.kill()
			p.start()
		case "from the archive":
			p.advance(time.Minute) // what is past leaves memory
		}
		story := p.events(t, "player", "bob")
		wantInOrder(t, "the player "+when, story, "player LOGGED_IN", "party JoinParty", "ticket EnterMatchmaking", "placement STARTED", "game-session GAME_SESSION_CREATED",
			"game-instance MatchCommitted", "game-session GAME_SESSION_ACTIVATED", "game-session PLAYER_CONNECTED", "game-session PLAYER_COMPLETED", "game-session PLAYER_RESERVED",
			"game-session PLAYER_CONNECTED", "party Game.EndGame", "player ForceRelease")
		again := slices.IndexFunc(story, func(e operator.FeedEntry) bool {
			return strings.Contains(e.Detail, "had a player session in it before")
		})
		helped := slices.IndexFunc(story, func(e operator.FeedEntry) bool {
			return e.Audit != 0 && e.Kind == "player" && e.Reason == "asked by mail"
		})
		if again < 0 || helped < 0 {
			t.Errorf("%s: the return of the player is at %d, the operator's help at %d", when, again, helped)
		}
		if first := p.events(t, "player", "bob", "--of", "party", "--what", "joinparty"); len(first) != 1 {
			t.Errorf("%s: --of party --what joinparty finds %+v", when, first)
		}
	}
	wantInOrder(t, "the ticket", p.events(t, "ticket", ticket), "ticket STARTED", "game-session GAME_SESSION_CREATED", "player PLAYER_CONNECTED")
	wantInOrder(t, "the game session", p.events(t, "game-session", game), "placement STARTED", "game-session GAME_SESSION_CREATED", "player PLAYER_RESERVED")
	wantInOrder(t, "the fleet", p.events(t, "fleet", p.fleet), "fleet FLEET_CREATED", "game-session GAME_SESSION_CREATED")
	wantAll(t, p.command("events", "--data", p.data, "--listen", p.address, "player", "bob", "--limit", "3"), "TIME", "ForceRelease", "reason: asked by mail")
}
