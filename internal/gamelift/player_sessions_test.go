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

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/waittest"
)

func TestPlayerSessionFromReservationToEnd(t *testing.T) {
	h := newHall(t, time.Hour)
	game, key := h.activeGame(h.anywhere(), "p1")
	got := h.json.call(t, "CreatePlayerSession", `{"GameSessionId":"`+*game.GameSessionId+`","PlayerId":"PlayerOne","PlayerData":"{}"}`)
	p := got.body["PlayerSession"].(map[string]any)
	id := p["PlayerSessionId"].(string)
	delete(p, "CreationTime")
	delete(p, "PlayerSessionId")
	want := `{"PlayerSession":{"FleetArn":"` + *game.FleetArn + `","FleetId":"` + *game.FleetId + `","GameSessionId":"` + *game.GameSessionId +
		`","IpAddress":"127.0.0.1","PlayerData":"{}","PlayerId":"PlayerOne","Port":7777,"Status":"RESERVED"}}`
	if text := rewritten(t, got.body); text != want || !strings.HasPrefix(id, "psess-") || len(id) != 42 {
		t.Errorf("got  %s %s\nwant %s", id, text, want)
	}
	seat, _ := domain.ParseID[domain.PlayerSessionID](id)
	status := func() types.PlayerSessionStatus {
		out := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("PlayerOne")}))(t)
		return out.PlayerSessions[0].Status
	}
	h.do(&hosting.AcceptPlayer{Process: key, Game: h.gameID(*game.GameSessionId), Player: seat, Request: 5})
	if s := status(); s != types.PlayerSessionStatusActive {
		t.Errorf("got %s", s)
	}
	h.do(&hosting.RemovePlayer{Process: key, Game: h.gameID(*game.GameSessionId), Player: seat})
	if s := status(); s != types.PlayerSessionStatusCompleted {
		t.Errorf("got %s", s)
	}
}

func TestReservationTimesOut(t *testing.T) {
	h := newHall(t, time.Hour)
	game, _ := h.activeGame(h.anywhere(), "p1")
	p := must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t).PlayerSession
	h.later(61 * time.Second)
	waittest.Until(h, "the reservation ends", func() bool {
		out := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: p.PlayerSessionId}))(t).PlayerSessions[0]
		return out.Status == types.PlayerSessionStatusTimedout && out.TerminationTime != nil
	})
}

func TestPlayerSessionsAreRefused(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	key := h.serverReady(id, "p1")
	game := must(h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
	}))(t).GameSession
	join := func(players ...string) error {
		_, err := h.sdk.CreatePlayerSessions(t.Context(), &gamelift.CreatePlayerSessionsInput{GameSessionId: game.GameSessionId, PlayerIds: players})
		return err
	}
	refused(t, join("ann"), "InvalidGameSessionStatusException") // ACTIVATING
	h.do(&hosting.ActivateGameSession{Process: key, Game: h.gameID(*game.GameSessionId)})
	refused(t, join("ann", "bob", "cyd"), "GameSessionFullException")
	refused(t, join("ann", "ann"), codeInvalidRequest)
	if err := join("ann"); err != nil {
		t.Error(err)
	}
	must(h.sdk.UpdateGameSession(t.Context(), &gamelift.UpdateGameSessionInput{
		GameSessionId: game.GameSessionId, PlayerSessionCreationPolicy: types.PlayerSessionCreationPolicyDenyAll,
	}))(t)
	refused(t, join("bob"), "InvalidGameSessionStatusException")
	_, err := h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
		GameSessionId: aws.String("arn:aws:gamelift:eu-central-1::gamesession/" + nowhere + "/custom-home/x"), PlayerId: aws.String("ann"),
	})
	refused(t, err, "NotFoundException")
}

func TestPlayerDataGoesToItsPlayer(t *testing.T) {
	h := newHall(t, time.Hour)
	game, _ := h.activeGame(h.anywhere(), "p1")
	out := must(h.sdk.CreatePlayerSessions(t.Context(), &gamelift.CreatePlayerSessionsInput{
		GameSessionId: game.GameSessionId, PlayerIds: []string{"ann", "bob"}, PlayerDataMap: map[string]string{"bob": "b", "stranger": "s"},
	}))(t).PlayerSessions
	if len(out) != 2 || *out[0].PlayerId != "ann" || out[0].PlayerData != nil || *out[1].PlayerId != "bob" || *out[1].PlayerData != "b" {
		t.Errorf("got %+v", out)
	}
}

func TestDescribePlayerSessions(t *testing.T) {
	h := newHall(t, time.Millisecond)
	fleetID := h.anywhere()
	var anns []string
	for i := range 5 { // five games in which ann played one after the other; all but the last have ended
		game, key := h.activeGame(fleetID, fmt.Sprint("p", i))
		out := must(h.sdk.CreatePlayerSessions(t.Context(), &gamelift.CreatePlayerSessionsInput{
			GameSessionId: game.GameSessionId, PlayerIds: []string{"ann", fmt.Sprint("other-", i)},
		}))(t)
		anns = append(anns, *out.PlayerSessions[0].PlayerSessionId)
		if i < 4 {
			h.do(&hosting.EndProcess{Process: key, Request: 99})
			h.archived(*game.GameSessionId)
		} else {
			in := gamelift.DescribePlayerSessionsInput{GameSessionId: game.GameSessionId, PlayerSessionStatusFilter: aws.String("RESERVED")}
			if got := must(h.sdk.DescribePlayerSessions(t.Context(), &in))(t); len(got.PlayerSessions) != 2 {
				t.Errorf("%d reserved, want 2", len(got.PlayerSessions))
			}
			in.PlayerSessionStatusFilter = aws.String("ACTIVE")
			if got := must(h.sdk.DescribePlayerSessions(t.Context(), &in))(t); len(got.PlayerSessions) != 0 {
				t.Errorf("%d active, want none", len(got.PlayerSessions))
			}
		}
		h.later(time.Millisecond)
	}
	var got []string
	pages := gamelift.NewDescribePlayerSessionsPaginator(h.sdk, &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("ann"), Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, p := range must(pages.NextPage(t.Context()))(t).PlayerSessions {
			got = append(got, *p.PlayerSessionId)
		}
	}
	if !slices.Equal(got, anns) {
		t.Errorf("got %v, want %v", got, anns)
	}
	ended := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &anns[0]}))(t).PlayerSessions[0]
	if ended.Status != types.PlayerSessionStatusTimedout || *ended.PlayerId != "ann" || *ended.Port != 7777 {
		t.Errorf("got %+v", ended)
	}
	nobody := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("nobody")}))(t)
	if len(nobody.PlayerSessions) != 0 {
		t.Errorf("got %+v", nobody.PlayerSessions)
	}
	for _, each := range []struct{ body, code string }{
		{`{}`, codeInvalidRequest},
		{`{"PlayerId":"a","GameSessionId":"b"}`, codeInvalidRequest},
		{`{"PlayerId":"a","PlayerSessionStatusFilter":"GONE"}`, codeInvalidRequest},
		{`{"PlayerSessionId":"psess-x"}`, "NotFoundException"},
		{`{"PlayerSessionId":"psess-00000000-0000-4000-8000-000000000000"}`, "NotFoundException"},
		{`{"GameSessionId":"arn:aws:gamelift:eu-central-1::gamesession/fleet-1/custom-home/x"}`, "NotFoundException"},
	} {
		if got := h.json.call(t, "DescribePlayerSessions", each.body); got.body["__type"] != each.code {
			t.Errorf("%s: got %s, want %s", each.body, got.raw, each.code)
		}
	}
}

// The list of a client key has one page, so it shows the newest player sessions: a game looks for its player's present one.
func TestOwnPlayerSessionsAreTheNewest(t *testing.T) {
	h := newHall(t, time.Millisecond)
	fleetID := h.anywhere()
	sdk := sdkClient(h.json.url, keysForTest()["AKCLIENT"])
	var games []string
	for i := range 4 {
		game, key := h.activeGame(fleetID, fmt.Sprint("p", i))
		must(sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t)
		games = append(games, *game.GameSessionId)
		if i < 3 {
			h.do(&hosting.EndProcess{Process: key, Request: 99})
			h.archived(*game.GameSessionId)
		}
		h.later(time.Millisecond)
	}
	var got []string
	out := must(sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("ann"), Limit: aws.Int32(2)}))(t)
	for _, p := range out.PlayerSessions {
		got = append(got, *p.GameSessionId)
	}
	if !slices.Equal(got, games[2:]) || out.NextToken != nil {
		t.Errorf("got %v, want %v without a token", got, games[2:])
	}
}

// Named in the path or the target, with the members of DescribePlayerSessions; the SDK's client calls it that way, too.
func TestReleasePlayerSession(t *testing.T) {
	h := newHall(t, 0)
	game, key := h.activeGame(h.anywhere(), "p1")
	reserve := func(player string) *types.PlayerSession {
		return must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: &player}))(t).PlayerSession
	}
	release := func(member, id string) jsonAnswer {
		return h.json.call(t, "ReleasePlayerSession", `{"`+member+`":"`+id+`"}`)
	}
	ann := *reserve("ann").PlayerSessionId
	for range 2 { // a repeat is no mistake
		got := release("PlayerSessionId", ann)
		if p := got.body["PlayerSessions"].([]any)[0].(map[string]any); p["Status"] != "COMPLETED" || p["PlayerId"] != "ann" {
			t.Errorf("got %v, want ann COMPLETED", p)
		}
	}
	bob := *reserve("bob").PlayerSessionId
	seat, _ := domain.ParseUUID(strings.TrimPrefix(bob, "psess-"))
	h.do(&hosting.AcceptPlayer{Process: key, Game: h.gameID(*game.GameSessionId), Player: domain.PlayerSessionID(seat), Request: 5})
	for _, c := range []struct{ member, id, code, part string }{
		{"PlayerSessionId", bob, "InvalidRequestException", "is ACTIVE"},
		{"PlayerSessionId", "psess-00000000-0000-0000-0000-000000000000", "NotFoundException", "not found"},
		{"GameSessionId", *game.GameSessionId, "InvalidRequestException", "PlayerSessionId"},
	} {
		got := release(c.member, c.id)
		if kind, _ := got.body["__type"].(string); !strings.HasSuffix(kind, c.code) || !strings.Contains(got.raw, c.part) {
			t.Errorf("%s %s: got %v, want %s with %q", c.member, c.id, got, c.code, c.part)
		}
	}
}
