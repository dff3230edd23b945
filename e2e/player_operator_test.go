package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/waittest"
)

// commits returns a player's history for operators, the latest first.
func (s *service) commits(t *testing.T, player string) string {
	t.Helper()
	o := s.flowCall(t, "operator", "Operator.GetPlayer", "", http.StatusOK, object{"reason": "test", "player_id": player})
	var lines []string
	all, _ := o["commits"].([]any)
	for _, x := range all {
		c := object(x.(map[string]any))
		lines = append(lines, fmt.Sprintf("%v %s: %s by %s", c["rev"], c.text("phase"), c.text("cause"), c.text("caller", "kind")))
	}
	return strings.Join(lines, "\n")
}

// explain runs muster explain.
func (s *service) explain(t *testing.T, kind, id string) string {
	t.Helper()
	cmd := exec.Command(musterBinary, "explain", "--data", s.data, "--listen", s.address, kind, id)
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("muster explain %s %s: %v: %s", kind, id, err, out)
	}
	return string(out)
}

func (s *service) metrics(t *testing.T) string {
	t.Helper()
	answer, err := http.Get(s.url() + "/metrics")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(text)
}

func wantAll(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// An operator reads what happened to a player: who did it and why, where the player is now and what ends that. A kill loses
// none of it, neither in memory nor in the archive.
func TestOperatorsReadWhatHappened(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	p.queue("duo")
	p.matchOf("duo", "2")
	server := p.ready(sdkOptions{})
	all := p.come("ann", "bob")
	ann, bob := all[0], all[1]
	gather(ann, bob)
	ann.call("Matchmaking.EnterMatchmaking", object{"queue": "duo"})
	for _, player := range all {
		found := player.until("OnMatchFound")
		wantAll(t, p.explain(t, "player", player.name), "MATCHMAKING", "acceptanceTimeout", "has not answered")
		player.call("Matchmaking.AcceptMatch", object{"matchmaking_id": found.text("data", "matchmaking_id"), "accept": true})
	}
	server.untilEvent("start", 1)
	server.must("activate")
	instance, seats := "", map[string]string{}
	for _, player := range all {
		details := player.until("OnHostConnectionDetailsReceived")
		instance = details.text("data", "game_instance_id")
		seats[player.name] = details.text("data", "player_session_id")
		server.must("accept", seats[player.name])
		player.hears("OnGameMembershipChanged", "new", "ACTIVE")
	}
	server.must("remove", seats[bob.name])
	bob.hears("OnGameMembershipChanged", "new", "DISCONNECTED")
	wantAll(t, p.explain(t, "player", "bob"), "IN_GAME", "ACTIVE, DISCONNECTED", "reconnectWindow", "the player's seat is given up", "MatchCommitted", "JoinParty")
	wantAll(t, p.explain(t, "game-instance", instance), "ann, ACTIVE", "bob, DISCONNECTED", "absoluteTimeout")
	again := bob.call("GameInstance.GetHostConnectionDetails", object{"game_instance_id": instance})
	server.must("accept", again.text("host", "player_session_id"))
	bob.hears("OnGameMembershipChanged", "new", "ACTIVE")
	p.partner(t, "Game.EndGame", object{"game_instance_id": instance})
	for _, player := range all {
		player.hears("OnRemovedFromGame", "reason", "GAME_ENDED")
	}
	wantAll(t, p.explain(t, "party", bob.snapshot().text("party", "party_id")), "2 of at most", "ann, leads", "bob")
	p.flowCall(t, "operator", "Operator.ForceRelease", "", http.StatusOK, object{"reason": "test", "player_id": "bob", "keys": []string{"PARTY_ID"}})

	const last = `muster_flow_commits_total{cause="ForceRelease"} 1` // counted after the commit, so perhaps after the answer
	waittest.Until(t, "the last commit to be counted", func() bool { return strings.Contains(p.metrics(t), last) })
	numbers := p.metrics(t)
	wantAll(t, numbers, last, `muster_flow_game_connections_total{event="lost"} 1`,
		`muster_flow_game_connections_total{event="reconnect_begun"} 1`, `muster_flow_game_connections_total{event="reconnected"} 1`,
		`muster_flow_allocation_seconds_count{queue="duo"} 1`, `muster_flow_memberships_ended_total{reason="GAME_ENDED"} 2`,
		`muster_flow_invariant_violations_total 0`, "muster_flow_streams 2", "muster_flow_commit_seconds_count", "muster_flow_deadline_lag_seconds 0")

	want := strings.TrimSpace(`
5 IDLE: ForceRelease by OPERATOR
4 IN_PARTY: Game.EndGame by PARTNER
3 IN_GAME: MatchCommitted by PLAYER
2 MATCHMAKING: EnterMatchmaking by PLAYER
1 IN_PARTY: JoinParty by PLAYER`)
	for _, when := range []string{"at once", "after a kill", "from the archive", "from the archive after a kill"} {
		switch when {
		case "from the archive":
			p.advance(time.Minute) // what is past leaves memory
		case "after a kill", "from the archive after a kill":
			p.kill()
			p.start()
		}
		if got := p.commits(t, "bob"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", when, got, want)
		}
	}
	p.noViolations(t)
}
