package gamelift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/hosting"
)

func TestGameSessionFromBirthToEnd(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	key := h.serverReady(id, "p1")
	created := must(h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2), Name: aws.String("Debug"),
		GameProperties:  []types.GameProperty{{Key: aws.String("mode"), Value: aws.String("duel")}},
		GameSessionData: aws.String("{}"), CreatorId: aws.String("ann"),
	}))(t).GameSession
	prefix := "arn:aws:gamelift:eu-central-1::gamesession/" + id + "/custom-home/gsess-"
	if !strings.HasPrefix(*created.GameSessionId, prefix) || len(*created.GameSessionId) != len(prefix)+36 {
		t.Errorf("got the id %s", *created.GameSessionId)
	}
	got := h.json.call(t, "DescribeGameSessions", `{"GameSessionId":"`+*created.GameSessionId+`"}`)
	delete(got.body["GameSessions"].([]any)[0].(map[string]any), "CreationTime")
	want := `{"GameSessions":[{"ComputeName":"DesktopPC","CreatorId":"ann","CurrentPlayerSessionCount":0,` +
		`"FleetArn":"arn:aws:gamelift:eu-central-1:123456789012:fleet/` + id + `","FleetId":"` + id + `","GameProperties":[{"Key":"mode","Value":"duel"}],` +
		`"GameSessionData":"{}","GameSessionId":"` + *created.GameSessionId + `","IpAddress":"127.0.0.1","Location":"custom-home",` +
		`"MaximumPlayerSessionCount":2,"Name":"Debug","PlayerSessionCreationPolicy":"ACCEPT_ALL","Port":7777,"Status":"ACTIVATING"}]}`
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}

	status := func() types.GameSessionStatus {
		out := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: created.GameSessionId}))(t)
		return out.GameSessions[0].Status
	}
	_, err := h.sdk.UpdateGameSession(t.Context(), &gamelift.UpdateGameSessionInput{GameSessionId: created.GameSessionId, Name: aws.String("x")})
	refused(t, err, "NotReadyException")
	h.do(&hosting.ActivateGameSession{Process: key, Game: h.gameID(*created.GameSessionId)})
	if s := status(); s != types.GameSessionStatusActive {
		t.Errorf("got %s", s)
	}
	ending := must(h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: created.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	}))(t).GameSession
	if ending.Status != types.GameSessionStatusTerminating {
		t.Errorf("got %s", ending.Status)
	}
	h.do(&hosting.EndProcess{Process: key, Request: 99})
	ended := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: created.GameSessionId}))(t).GameSessions[0]
	if ended.Status != types.GameSessionStatusTerminated || ended.StatusReason != types.GameSessionStatusReasonTriggeredOnProcessTerminate || ended.TerminationTime == nil {
		t.Errorf("got %+v", ended)
	}
}

func TestCreateGameSessionRefusesInOrder(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	fleet, home := `"FleetId":"`+id+`"`, `"Location":"custom-home"`
	for _, each := range []struct{ name, body, code, text string }{
		{"no maximum", `{` + fleet + `}`, codeInvalidRequest, "MaximumPlayerSessionCount"},
		{"neither fleet nor alias", `{"MaximumPlayerSessionCount":1}`, codeInvalidRequest, "FleetId or AliasId"},
		{"both", `{` + fleet + `,"AliasId":"alias-1","MaximumPlayerSessionCount":1}`, codeInvalidRequest, "exactly one"},
		{"unknown alias", `{"AliasId":"alias-1","MaximumPlayerSessionCount":1}`, "NotFoundException", "alias-1"},
		{"unknown fleet before a wrong maximum", `{"FleetId":"` + nowhere + `","MaximumPlayerSessionCount":999}`, "NotFoundException", nowhere},
		{"too many players", `{` + fleet + `,"MaximumPlayerSessionCount":201}`, codeInvalidRequest, "200"},
		{"two tokens", `{` + fleet + `,"MaximumPlayerSessionCount":1,"IdempotencyToken":"a","GameSessionId":"b"}`, codeInvalidRequest, "IdempotencyToken"},
		{"a property twice", `{` + fleet + `,"MaximumPlayerSessionCount":1,"GameProperties":[{"Key":"a","Value":"1"},{"Key":"a","Value":"2"}]}`, codeInvalidRequest, "twice"},
		{"no location", `{` + fleet + `,"MaximumPlayerSessionCount":1}`, codeInvalidRequest, "Location: required"},
		{"unknown location", `{` + fleet + `,"MaximumPlayerSessionCount":1,"Location":"custom-x"}`, codeInvalidRequest, "custom-x"},
		{"no server process", `{` + fleet + `,` + home + `,"MaximumPlayerSessionCount":1}`, "FleetCapacityExceededException", "Unable to reserve a process on fleet " + id},
	} {
		got := h.json.call(t, "CreateGameSession", each.body)
		if got.body["__type"] != each.code || !strings.Contains(got.raw, each.text) {
			t.Errorf("%s: got %s, want %s with %q", each.name, got.raw, each.code, each.text)
		}
	}
}

func TestIdempotencyTokenGivesTheSameSession(t *testing.T) {
	for _, archived := range []bool{false, true} {
		t.Run(fmt.Sprintf("archived=%t", archived), func(t *testing.T) {
			h := newHall(t, time.Millisecond)
			id := h.anywhere()
			key := h.serverReady(id, "p1")
			create := func(change func(*gamelift.CreateGameSessionInput)) (*gamelift.CreateGameSessionOutput, error) {
				in := &gamelift.CreateGameSessionInput{
					FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2), IdempotencyToken: aws.String("my-token"),
					GameProperties: []types.GameProperty{{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("2")}},
				}
				change(in)
				return h.sdk.CreateGameSession(t.Context(), in)
			}
			first := must(create(func(*gamelift.CreateGameSessionInput) {}))(t).GameSession
			if !strings.HasSuffix(*first.GameSessionId, "/custom-home/my-token") {
				t.Errorf("got %s", *first.GameSessionId)
			}
			want := types.GameSessionStatusActivating
			if archived {
				h.do(&hosting.EndProcess{Process: key, Request: 99})
				h.archived(*first.GameSessionId)
				want = types.GameSessionStatusTerminated
			}
			again := must(create(func(in *gamelift.CreateGameSessionInput) {
				in.FleetId = aws.String("arn:aws:gamelift:eu-central-1:123456789012:fleet/" + id) // another way to say the same
				slices.Reverse(in.GameProperties)
				in.GameSessionId, in.IdempotencyToken = in.IdempotencyToken, nil
			}))(t).GameSession
			if *again.GameSessionId != *first.GameSessionId || again.Status != want {
				t.Errorf("got %s %s, want %s %s", *again.GameSessionId, again.Status, *first.GameSessionId, want)
			}
			for name, change := range map[string]func(*gamelift.CreateGameSessionInput){
				"maximum":  func(in *gamelift.CreateGameSessionInput) { in.MaximumPlayerSessionCount = aws.Int32(3) },
				"name":     func(in *gamelift.CreateGameSessionInput) { in.Name = aws.String("other") },
				"property": func(in *gamelift.CreateGameSessionInput) { in.GameProperties[0].Value = aws.String("x") },
			} {
				_, err := create(change)
				t.Run(name, func(t *testing.T) { refused(t, err, "IdempotentParameterMismatchException") })
			}
		})
	}
}

func TestUpdateGameSession(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	game, _ := h.activeGame(id, "p1")
	update := func(in gamelift.UpdateGameSessionInput) (*gamelift.UpdateGameSessionOutput, error) {
		in.GameSessionId = game.GameSessionId
		return h.sdk.UpdateGameSession(t.Context(), &in)
	}
	must(update(gamelift.UpdateGameSessionInput{
		Name: aws.String("new"), MaximumPlayerSessionCount: aws.Int32(7), ProtectionPolicy: types.ProtectionPolicyFullProtection,
		GameProperties: []types.GameProperty{{Key: aws.String("a"), Value: aws.String("1")}},
	}))(t)
	out := must(update(gamelift.UpdateGameSessionInput{
		PlayerSessionCreationPolicy: types.PlayerSessionCreationPolicyDenyAll,
		GameProperties:              []types.GameProperty{{Key: aws.String("a"), Value: aws.String("2")}, {Key: aws.String("b"), Value: aws.String("3")}},
	}))(t).GameSession
	if *out.Name != "new" || *out.MaximumPlayerSessionCount != 7 || out.PlayerSessionCreationPolicy != types.PlayerSessionCreationPolicyDenyAll ||
		len(out.GameProperties) != 2 || *out.GameProperties[0].Value != "2" || *out.GameProperties[1].Value != "3" {
		t.Errorf("got %+v", out)
	}
	details := must(h.sdk.DescribeGameSessionDetails(t.Context(), &gamelift.DescribeGameSessionDetailsInput{FleetId: &id}))(t).GameSessionDetails
	if len(details) != 1 || details[0].ProtectionPolicy != types.ProtectionPolicyFullProtection || *details[0].GameSession.Name != "new" {
		t.Errorf("got %+v", details)
	}
	_, err := update(gamelift.UpdateGameSessionInput{MaximumPlayerSessionCount: aws.Int32(201)})
	refused(t, err, codeInvalidRequest)
}

func TestEndedGameSessionIsNotNotFound(t *testing.T) {
	h := newHall(t, time.Millisecond)
	id := h.anywhere()
	game, key := h.activeGame(id, "p1")
	h.do(&hosting.EndProcess{Process: key, Request: 99})
	h.archived(*game.GameSessionId)
	got := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: game.GameSessionId}))(t)
	if got.GameSessions[0].Status != types.GameSessionStatusTerminated {
		t.Errorf("got %s", got.GameSessions[0].Status)
	}
	_, err := h.sdk.UpdateGameSession(t.Context(), &gamelift.UpdateGameSessionInput{GameSessionId: game.GameSessionId, Name: aws.String("x")})
	refused(t, err, "InvalidGameSessionStatusException")
	_, err = h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	})
	refused(t, err, "InvalidGameSessionStatusException")
	_, err = h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")})
	refused(t, err, "InvalidGameSessionStatusException")

	unknown := aws.String("arn:aws:gamelift:eu-central-1::gamesession/" + id + "/custom-home/gsess-x")
	_, err = h.sdk.UpdateGameSession(t.Context(), &gamelift.UpdateGameSessionInput{GameSessionId: unknown, Name: aws.String("x")})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: aws.String("no-arn")})
	refused(t, err, "NotFoundException")
	if !strings.Contains(err.Error(), "game session no-arn not found: want its ARN") {
		t.Errorf("%v does not say what was not found", err)
	}
}

func TestForceTerminateNeedsAnAgent(t *testing.T) {
	h := newHall(t, time.Hour)
	game, _ := h.activeGame(h.anywhere(), "p1")
	_, err := h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeForceTerminate,
	})
	refused(t, err, codeInvalidRequest)
	h.service.Agents = agentsOn{"elsewhere"}
	_, err = h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeForceTerminate,
	})
	refused(t, err, codeInvalidRequest)
	h.service.Agents = agentsOn{*game.ComputeName}
	ended := must(h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeForceTerminate,
	}))(t).GameSession
	if ended.Status != types.GameSessionStatusTerminated || ended.StatusReason != types.GameSessionStatusReasonForceTerminated {
		t.Errorf("got %s, %s", ended.Status, ended.StatusReason)
	}
}

// agentsOn has agents on some computes.
type agentsOn []string

func (a agentsOn) Has(_, compute string) bool { return slices.Contains(a, compute) }

func TestOldFormOfGameSessionARN(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	game, _ := h.activeGame(id, "p1")
	name := lastPart(*game.GameSessionId)
	for _, region := range []string{"custom-home", "eu-central-1", "elsewhere"} {
		old := "arn:aws:gamelift:" + region + "::gamesession/" + id + "/" + name
		got := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: &old}))(t)
		if *got.GameSessions[0].GameSessionId != *game.GameSessionId {
			t.Errorf("%s: got %s", old, *got.GameSessions[0].GameSessionId)
		}
	}
}

// The pages of a fleet's game sessions are one list, whether they live, have just ended or lie in the archive.
func TestGameSessionsArePagedOverMemoryAndArchive(t *testing.T) {
	h := newHall(t, time.Millisecond)
	id := h.anywhere()
	var made, ended []string
	for i := range 7 {
		game, key := h.activeGame(id, fmt.Sprint("p", i))
		made = append(made, *game.GameSessionId)
		if i%2 == 0 {
			h.do(&hosting.EndProcess{Process: key, Request: 99})
			h.archived(*game.GameSessionId)
			ended = append(ended, *game.GameSessionId)
		}
		h.later(time.Millisecond)
	}
	list := func(in gamelift.DescribeGameSessionsInput) (ids []string) {
		in.FleetId, in.Limit = &id, aws.Int32(2)
		pages := gamelift.NewDescribeGameSessionsPaginator(h.sdk, &in)
		for pages.HasMorePages() {
			page := must(pages.NextPage(t.Context()))(t)
			if len(page.GameSessions) > 2 {
				t.Errorf("a page of %d", len(page.GameSessions))
			}
			for _, g := range page.GameSessions {
				ids = append(ids, *g.GameSessionId)
			}
		}
		return ids
	}
	if got := list(gamelift.DescribeGameSessionsInput{}); !slices.Equal(got, made) {
		t.Errorf("got %v, want %v", got, made)
	}
	if got := list(gamelift.DescribeGameSessionsInput{StatusFilter: aws.String("TERMINATED")}); !slices.Equal(got, ended) {
		t.Errorf("got %v, want %v", got, ended)
	}
	if got := list(gamelift.DescribeGameSessionsInput{StatusFilter: aws.String("ACTIVE"), Location: aws.String("custom-home")}); len(got) != 3 {
		t.Errorf("got %v, want 3", got)
	}
	if got := list(gamelift.DescribeGameSessionsInput{StatusFilter: aws.String("ERROR")}); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
	if got := list(gamelift.DescribeGameSessionsInput{Location: aws.String("custom-x")}); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
	_, err := h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &id, StatusFilter: aws.String("active")})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: aws.String(nowhere)})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{})
	refused(t, err, codeInvalidRequest)
}

func TestCreationLimits(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	_, err := h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{
		FleetId:                     &id,
		ResourceCreationLimitPolicy: &types.ResourceCreationLimitPolicy{NewGameSessionsPerCreator: aws.Int32(1), PolicyPeriodInMinutes: aws.Int32(2_000_000_000)},
	})
	refused(t, err, codeInvalidRequest)
	must(h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{
		FleetId:                     &id,
		ResourceCreationLimitPolicy: &types.ResourceCreationLimitPolicy{NewGameSessionsPerCreator: aws.Int32(1), PolicyPeriodInMinutes: aws.Int32(2)},
	}))(t)
	h.serverReady(id, "p1")
	h.serverReady(id, "p2")
	create := func(creator *string) error {
		_, err := h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
			FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(1), CreatorId: creator,
		})
		return err
	}
	refused(t, create(nil), codeInvalidRequest)
	if err := create(aws.String("ann")); err != nil {
		t.Fatal(err)
	}
	refused(t, create(aws.String("ann")), "LimitExceededException")
	h.later(2*time.Minute + time.Second)
	if err := create(aws.String("ann")); err != nil {
		t.Error(err)
	}
}
