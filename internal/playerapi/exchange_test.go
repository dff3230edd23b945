package playerapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/mustertest"
)

// A game server gets a token for its own game and no other, with an auth token in force or the one that its process was
// started with.
func TestExchange(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"), mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	queue, first := fleet.NewQueue(600), fleet.ServerParameters().AuthToken
	server := fleet.StartGameServer()
	renewed := func() string {
		t.Helper()
		answer, err := srv.GameLift().GetComputeAuthToken(t.Context(), &gamelift.GetComputeAuthTokenInput{FleetId: &fleet.ID, ComputeName: &fleet.Compute})
		if err != nil {
			t.Fatal(err)
		}
		return *answer.AuthToken
	}
	tokens := []string{first}
	for len(tokens) < 4 { // a process may wait for its game for hours
		srv.Advance(time.Hour)
		if token := renewed(); token != tokens[len(tokens)-1] {
			tokens = append(tokens, token)
		}
	}
	partner := func(want int, call, token, body string) map[string]any {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.Endpoint()+"/playerflow/v1/"+call, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != want {
			t.Fatalf("%s %s: status %d, want %d: %v", call, body, response.StatusCode, want, answer)
		}
		return answer
	}
	for _, player := range []string{"ann", "bob"} {
		partner(200, "player/Session.Login", "", loginBody(player))
	}
	made := func(player string) string {
		return partner(200, "partner/Flow.CreateGameInstance", "", `{"queue":"`+queue+`","players":[{"player_id":"`+player+`"}],"max_players":2}`)["game_instance_id"].(string)
	}
	id := made("ann")
	game := server.GameSession()
	ask := func(token, process, game string) string {
		return fmt.Sprintf(`{"auth_token":%q,"process_id":%q,"game_session_id":%q}`, token, process, game)
	}
	const call = "partner/Server.Exchange"
	for at, token := range tokens {
		body := ask(token, server.ProcessID, game.ID)
		if at == 1 { // neither the one it was started with nor one of the last two
			partner(401, call, "", body)
			continue
		}
		got := partner(200, call, "", body)
		if got["game_instance_id"] != id {
			t.Fatalf("%v, want game instance %s", got, id)
		}
		start := partner(200, "partner/Game.GetStartData", got["partner_token"].(string), `{}`)
		if start["game_instance_id"] != id || len(start["players"].([]any)) != 1 {
			t.Errorf("%v", start)
		}
	}
	partner(401, call, "", ask("at-made-up", server.ProcessID, game.ID))
	partner(401, call, "", ask(first, "process-99", game.ID))
	partner(401, call, "", ask(first, server.ProcessID, game.ID+"x"))

	// The token of one game is valid only for that game, and the token that a later process was started with is valid only for that process.
	later := fleet.StartGameServer()
	other := made("bob")
	token := partner(200, call, "", ask(first, server.ProcessID, game.ID))["partner_token"].(string)
	partner(403, "partner/Game.GetStartData", token, `{"game_instance_id":"`+other+`"}`)
	partner(401, call, "", ask(first, server.ProcessID, later.GameSession().ID))

	// When the game is over, no more tokens are issued for it, and the existing one is refused.
	partner(200, "partner/Game.EndGame", token, `{}`)
	partner(410, call, "", ask(first, server.ProcessID, game.ID))
	partner(410, "partner/Game.GetStartData", token, `{}`)
}
