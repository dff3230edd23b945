package gamelift

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/waittest"
)

// place starts a placement for two players.
func (h *hall) place(queue, id string, change func(*gamelift.StartGameSessionPlacementInput)) (*gamelift.StartGameSessionPlacementOutput, error) {
	h.Helper()
	in := &gamelift.StartGameSessionPlacementInput{
		PlacementId: &id, GameSessionQueueName: &queue, MaximumPlayerSessionCount: aws.Int32(2),
		DesiredPlayerSessions: []types.DesiredPlayerSession{{PlayerId: aws.String("ann"), PlayerData: aws.String("{}")}, {PlayerId: aws.String("bob")}},
	}
	if change != nil {
		change(in)
	}
	return h.sdk.StartGameSessionPlacement(h.Context(), in)
}

func (h *hall) placed(id string) types.GameSessionPlacement {
	h.Helper()
	return *must(h.sdk.DescribeGameSessionPlacement(h.Context(), &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id}))(h.T).GameSessionPlacement
}

// The examples are those of the API's notes, with this hall's fleet.
func TestPlacementFromPendingToFulfilled(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	h.queue("eu-queue", id, nil)
	started := h.json.call(t, "StartGameSessionPlacement", `{"PlacementId":"p-1","GameSessionQueueName":"eu-queue","MaximumPlayerSessionCount":2,`+
		`"GameProperties":[{"Key":"gameMode","Value":"duel"}],"GameSessionName":"duel 42","GameSessionData":"{}",`+
		`"PlayerLatencies":[{"PlayerId":"p1","RegionIdentifier":"custom-home","LatencyInMilliseconds":18.5}],`+
		`"DesiredPlayerSessions":[{"PlayerId":"p1","PlayerData":"x"},{"PlayerId":"p2"}]}`)
	p := started.body["GameSessionPlacement"].(map[string]any)
	delete(p, "StartTime")
	head := `{"GameSessionPlacement":{"GameProperties":[{"Key":"gameMode","Value":"duel"}],"GameSessionData":"{}","GameSessionName":"duel 42",` +
		`"GameSessionQueueName":"eu-queue","MaximumPlayerSessionCount":2,"PlacementId":"p-1",` +
		`"PlayerLatencies":[{"LatencyInMilliseconds":18.5,"PlayerId":"p1","RegionIdentifier":"custom-home"}],"Status":"PENDING"}}`
	if text := rewritten(t, started.body); text != head {
		t.Errorf("got  %s\nwant %s", text, head)
	}

	key := h.serverReady(id, "s1")
	arn := "arn:aws:gamelift:eu-central-1::gamesession/" + id + "/custom-home/p-1"
	got := h.placed("p-1")
	if got.Status != types.GameSessionPlacementStatePending || *got.GameSessionArn != arn || *got.GameSessionId != arn ||
		*got.GameSessionRegion != "custom-home" || *got.IpAddress != "127.0.0.1" || *got.Port != 7777 || got.PlacedPlayerSessions != nil || got.EndTime != nil {
		t.Errorf("while the server starts it: got %+v", got)
	}
	_, err := h.sdk.StopGameSessionPlacement(t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: aws.String("p-1")})
	refused(t, err, codeInvalidRequest)

	h.do(&hosting.ActivateGameSession{Process: key, Game: h.gameID(arn)})
	got = h.placed("p-1")
	if got.Status != types.GameSessionPlacementStateFulfilled || got.EndTime == nil || len(got.PlacedPlayerSessions) != 2 || *got.PlacedPlayerSessions[1].PlayerId != "p2" {
		t.Fatalf("got %+v", got)
	}
	players := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: got.PlacedPlayerSessions[0].PlayerSessionId}))(t).PlayerSessions
	if len(players) != 1 || *players[0].PlayerId != "p1" || *players[0].PlayerData != "x" || *players[0].GameSessionId != arn || players[0].Status != types.PlayerSessionStatusReserved {
		t.Errorf("the seat: got %+v", players)
	}
	games := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: &arn}))(t).GameSessions
	if *games[0].Name != "duel 42" || *games[0].GameSessionData != "{}" || *games[0].CurrentPlayerSessionCount != 2 {
		t.Errorf("the game session: got %+v", games[0])
	}
	_, err = h.sdk.StopGameSessionPlacement(t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: aws.String("p-1")})
	refused(t, err, codeInvalidRequest)
}

// The region of a game session's ARN is its fleet's, for every caller and region of the placement.
func TestPlacementNamesTheFleetsRegion(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	elsewhere := h.json
	elsewhere.region = "us-east-1"
	elsewhere.call(t, "CreateGameSessionQueue", `{"Name":"q","Destinations":[{"DestinationArn":"arn:aws:gamelift:eu-central-1::fleet/`+id+`"}]}`)
	h.serverReady(id, "s1")
	got := elsewhere.call(t, "StartGameSessionPlacement", `{"PlacementId":"p-1","GameSessionQueueName":"arn:aws:gamelift:us-east-1:123456789012:gamesessionqueue/q","MaximumPlayerSessionCount":2}`)
	want := "arn:aws:gamelift:eu-central-1::gamesession/" + id + "/custom-home/p-1"
	if p := h.placed("p-1"); *p.GameSessionArn != want || *p.GameSessionQueueName != "q" {
		t.Errorf("got %s in queue %s, want %s; it began as %s", *p.GameSessionArn, *p.GameSessionQueueName, want, got.raw)
	}
	if game := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &id}))(t).GameSessions[0]; *game.GameSessionId != want {
		t.Errorf("got %s, want %s", *game.GameSessionId, want)
	}
}

func TestPlacementChecks(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	h.queue("q", id, nil)
	h.queue("by-location", id, func(in *gamelift.CreateGameSessionQueueInput) {
		in.PriorityConfiguration = &types.PriorityConfiguration{PriorityOrder: []types.PriorityType{types.PriorityTypeLocation}, LocationOrder: []string{"custom-home"}}
	})
	must(h.place("q", "taken", nil))(t)
	head := `{"PlacementId":"p","GameSessionQueueName":"q","MaximumPlayerSessionCount":2`
	located := strings.Replace(head, `"q"`, `"by-location"`, 1)
	for _, each := range []struct{ name, body, code, text string }{
		{"no queue", `{"PlacementId":"p","GameSessionQueueName":"none","MaximumPlayerSessionCount":2}`, "NotFoundException", "none"},
		{"id taken", strings.Replace(head, `"p"`, `"taken"`, 1) + `}`, codeInvalidRequest, "taken was used before"},
		{"id", strings.Replace(head, `"p"`, `"a_b"`, 1) + `}`, codeInvalidRequest, "PlacementId"},
		{"maximum", strings.Replace(head, `Count":2`, `Count":201`, 1) + `}`, codeInvalidRequest, "200"},
		{"more players than seats", head + `,"DesiredPlayerSessions":[{"PlayerId":"a"},{"PlayerId":"b"},{"PlayerId":"c"}]}`, codeInvalidRequest, "DesiredPlayerSessions"},
		{"a player twice", head + `,"DesiredPlayerSessions":[{"PlayerId":"a"},{"PlayerId":"a"}]}`, codeInvalidRequest, "DesiredPlayerSessions[1]"},
		{"a nameless player", head + `,"DesiredPlayerSessions":[{}]}`, codeInvalidRequest, "DesiredPlayerSessions[0].PlayerId: required"},
		{"negative latency", head + `,"PlayerLatencies":[{"PlayerId":"a","RegionIdentifier":"x","LatencyInMilliseconds":-1}]}`, codeInvalidRequest, "LatencyInMilliseconds"},
		{"override of a queue without locations", head + `,"PriorityConfigurationOverride":{"LocationOrder":["custom-home"]}}`, codeInvalidRequest, "LOCATION first"},
		{"override and latencies", located + `,"PlayerLatencies":[{"PlayerId":"a","RegionIdentifier":"x","LatencyInMilliseconds":1}],"PriorityConfigurationOverride":{"LocationOrder":["custom-home"]}}`, codeInvalidRequest, "together with PlayerLatencies"},
		{"empty override", located + `,"PriorityConfigurationOverride":{"LocationOrder":[]}}`, codeInvalidRequest, "LocationOrder"},
		{"override twice the same", located + `,"PriorityConfigurationOverride":{"LocationOrder":["custom-home","custom-home"]}}`, codeInvalidRequest, "LocationOrder[1]"},
	} {
		got := h.json.call(t, "StartGameSessionPlacement", each.body)
		if got.body["__type"] != each.code || !strings.Contains(got.raw, each.text) {
			t.Errorf("%s: got %s, want %s with %q", each.name, got.raw, each.code, each.text)
		}
	}
	for _, operation := range []string{"DescribeGameSessionPlacement", "StopGameSessionPlacement"} {
		if got := h.json.call(t, operation, `{"PlacementId":"none"}`); got.body["__type"] != "NotFoundException" {
			t.Errorf("%s: got %s", operation, got.raw)
		}
	}
	strict := must(h.place("by-location", "strict", func(in *gamelift.StartGameSessionPlacementInput) {
		in.PriorityConfigurationOverride = &types.PriorityConfigurationOverride{LocationOrder: []string{"custom-x"}, PlacementFallbackStrategy: types.PlacementFallbackStrategyNone}
	}))(t).GameSessionPlacement
	if o := strict.PriorityConfigurationOverride; o == nil || o.PlacementFallbackStrategy != types.PlacementFallbackStrategyNone || len(o.LocationOrder) != 1 {
		t.Errorf("the override is not echoed: %+v", o)
	}
}

// The ways in which placements end without a game session, each also after the placement was archived.
func TestPlacementThatEndsWithoutSuccess(t *testing.T) {
	h := newHall(t, time.Millisecond)
	id := h.anywhere()
	h.queue("q", id, func(in *gamelift.CreateGameSessionQueueInput) { in.TimeoutInSeconds = aws.Int32(30) })

	must(h.place("q", "stopped", nil))(t)
	stopped := must(h.sdk.StopGameSessionPlacement(t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: aws.String("stopped")}))(t).GameSessionPlacement
	if stopped.Status != types.GameSessionPlacementStateCancelled || stopped.EndTime == nil {
		t.Errorf("got %+v", stopped)
	}
	must(h.place("q", "late", nil))(t)
	h.later(31 * time.Second)
	waittest.Until(h, "the placement times out", func() bool { return h.placed("late").Status == types.GameSessionPlacementStateTimedOut })

	h.serverReady(id, "s1")
	must(h.place("q", "failed", nil))(t)
	must(h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: h.placed("failed").GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	}))(t)
	if p := h.placed("failed"); p.Status != types.GameSessionPlacementStateFailed || p.GameSessionArn != nil || p.IpAddress != nil || p.Port != nil {
		t.Errorf("got %+v", p)
	}

	for name, status := range map[string]types.GameSessionPlacementState{
		"stopped": types.GameSessionPlacementStateCancelled, "late": types.GameSessionPlacementStateTimedOut, "failed": types.GameSessionPlacementStateFailed,
	} {
		waittest.Until(h, "placement "+name+" leaves memory", func() bool {
			live := false
			err := h.engine.Read(t.Context(), func(v *cell.View) error { _, live = v.Placement(name); return nil })
			return err == nil && !live
		})
		if p := h.placed(name); p.Status != status || len(p.PlacedPlayerSessions) != 0 {
			t.Errorf("from the archive: got %+v", p)
		}
		_, err := h.sdk.StopGameSessionPlacement(t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: &name})
		refused(t, err, codeInvalidRequest)
		_, err = h.place("q", name, nil)
		refused(t, err, codeInvalidRequest)
	}
}

// In lists, a game session replaces an archived one with the same id.
func TestGameSessionOfAPlacementTakesAnArchivedID(t *testing.T) {
	h := newHall(t, time.Millisecond)
	id := h.anywhere()
	h.queue("q", id, nil)
	first := h.serverReady(id, "s1")
	old := must(h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2), IdempotencyToken: aws.String("m-1"),
	}))(t).GameSession
	h.do(&hosting.ActivateGameSession{Process: first, Game: h.gameID(*old.GameSessionId)})
	must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: old.GameSessionId, PlayerId: aws.String("cy")}))(t)
	h.do(&hosting.EndProcess{Process: first, Request: 1})
	h.archived(*old.GameSessionId)
	h.later(time.Second)

	second := h.serverReady(id, "s2")
	must(h.place("q", "m-1", nil))(t)
	arn := *h.placed("m-1").GameSessionArn
	h.do(&hosting.ActivateGameSession{Process: second, Game: h.gameID(arn)})
	listed := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &id}))(t).GameSessions
	if len(listed) != 1 || *listed[0].GameSessionId != arn || listed[0].Status != types.GameSessionStatusActive {
		t.Errorf("got %+v, want the ACTIVE one", listed)
	}
	players := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{GameSessionId: &arn}))(t).PlayerSessions
	if len(players) != 2 || *players[0].PlayerId == "cy" || *players[1].PlayerId == "cy" {
		t.Errorf("got %+v, want ann and bob", players)
	}
}
