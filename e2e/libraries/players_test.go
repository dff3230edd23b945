package libraries

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/mustertest"
)

// patience is how long one event may take on a slow machine.
const patience = 30 * time.Second

// Two players go through everything with the real service: party, invite, search, acceptance, game, a restart of the
// service in the middle, a lost connection to the game server, the return, and the end.
func TestPlayersAgainstMuster(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"))
	fleet := srv.NewFleet()
	server, queue, api := fleet.StartGameServer(), fleet.NewQueue(600), srv.GameLift()
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":2,"maxPlayers":2}]}`
	_, err := api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duo"), RuleSetBody: &rules})
	must(t, err)
	_, err = api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("duo"), RuleSetName: aws.String("duo"), AcceptanceRequired: aws.Bool(true), AcceptanceTimeoutSeconds: aws.Int32(60),
		RequestTimeoutSeconds: aws.Int32(600), GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/" + queue},
	})
	must(t, err)

	login := func(name string) *gameclient.Player {
		t.Helper()
		p, err := gameclient.Login(t.Context(), gameclient.PlayerOptions{
			Endpoint: srv.Endpoint(), Provider: gameclient.ProviderDev, Token: gameclient.DevToken(name), DeviceLabel: name + "'s computer",
		})
		must(t, err)
		t.Cleanup(p.Close)
		return p
	}
	await := func(p *gameclient.Player, kind gameclient.EventType) gameclient.Event {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		e, err := p.Await(ctx, kind)
		if err != nil {
			t.Fatalf("%s waits for %s: %v", p, kind, err)
		}
		return e
	}
	ann, bob := login("ann"), login("bob")
	_, err = ann.CreateParty(t.Context(), gameclient.CreatePartyRequest{Attributes: []byte(`{"mode":"duo"}`)})
	must(t, err)
	await(ann, gameclient.OnAddedToParty)
	_, err = ann.Invite(t.Context(), "bob")
	must(t, err)
	party, err := bob.Respond(t.Context(), await(bob, gameclient.OnPartyInviteReceived).Invite.ID, true)
	if err != nil || len(party.Members) != 2 || string(party.Attributes) != `{"mode":"duo"}` {
		t.Fatalf("%+v, %v", party, err)
	}
	if _, err := bob.Kick(t.Context(), "ann"); !errors.Is(err, gameclient.ErrUnauthorized) {
		t.Errorf("bob, who does not lead, kicks: %v", err)
	}
	for _, p := range []*gameclient.Player{ann, bob} {
		_, err := p.SetReady(t.Context(), true)
		must(t, err)
	}
	queues, err := ann.Queues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].Name != "duo" || !queues[0].AcceptanceRequired {
		t.Errorf("%+v, %v", queues, err)
	}
	srv.Restart() // the streams reconnect automatically, after the last received event

	_, err = ann.EnterMatchmaking(t.Context(), "duo")
	must(t, err)
	for _, p := range []*gameclient.Player{ann, bob} {
		found := await(p, gameclient.OnMatchFound)
		must(t, p.AnswerMatch(t.Context(), found.SearchID, true))
	}
	server.GameSession()
	host := await(ann, gameclient.OnHostConnectionDetailsReceived).Host
	must(t, server.AcceptPlayer(host.PlayerSessionID))
	must(t, server.AcceptPlayer(await(bob, gameclient.OnHostConnectionDetailsReceived).Host.PlayerSessionID))

	ann.Close() // the game is gone from her screen, and the connection with it
	must(t, server.RemovePlayer(host.PlayerSessionID))
	ann = login("ann")
	if g := ann.AtLogin.Game; g == nil || g.Membership.Status != gameclient.MembershipDisconnected || !g.Membership.CanDecline {
		t.Fatalf("at the login: %+v", ann.AtLogin)
	}
	_, err = ann.EnterMatchmaking(t.Context(), "duo")
	if e, ok := errors.AsType[*gameclient.FlowError](err); !ok || e.Code != "PLAYER_IN_GAME" || len(e.Details.Players) != 2 || e.Flow.Phase != gameclient.PhaseInGame {
		t.Errorf("a player whose seat is kept begins a search: %v", err)
	}
	again, err := ann.Reconnect(t.Context())
	if err != nil || again.Attempt != 2 || again.PlayerSessionID == host.PlayerSessionID {
		t.Fatalf("%+v, %v", again, err)
	}
	must(t, server.AcceptPlayer(again.PlayerSessionID))
	for await(ann, gameclient.OnGameMembershipChanged).New != gameclient.MembershipActive {
	}

	other := login("ann") // on another device
	for err == nil {
		_, err = ann.Next(t.Context())
	}
	if !errors.Is(err, gameclient.ErrReplaced) {
		t.Errorf("the first device: %v", err)
	}
	must(t, other.LeaveGame(t.Context()))
	must(t, other.Logout(t.Context()))
	if _, err := other.Next(t.Context()); err != nil && !errors.Is(err, gameclient.ErrLoggedOut) && !errors.Is(err, gameclient.ErrClosed) {
		t.Errorf("after the logout: %v", err)
	}
	must(t, server.End())
	if e := await(bob, gameclient.OnRemovedFromGame); e.Reason == "" || bob.Flow().Phase != gameclient.PhaseInParty && bob.Flow().Phase != gameclient.PhaseIdle {
		t.Errorf("%+v, %+v", e, bob.Flow())
	}
}

// Login begins to follow the events and returns; the service counts the player as online a moment later.
func TestSearchDirectlyAfterLogin(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"), mustertest.Setting("player-logins-per-address", "0"))
	api, queue := srv.GameLift(), srv.NewFleet().NewQueue(600)
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":40,"maxPlayers":40}]}`
	_, err := api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("many"), RuleSetBody: &rules})
	must(t, err)
	_, err = api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("many"), RuleSetName: aws.String("many"), AcceptanceRequired: aws.Bool(false),
		RequestTimeoutSeconds: aws.Int32(600), GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/" + queue},
	})
	must(t, err)
	for i := range 8 {
		name := fmt.Sprintf("player-%d", i)
		p, err := gameclient.Login(t.Context(), gameclient.PlayerOptions{
			Endpoint: srv.Endpoint(), Provider: gameclient.ProviderDev, Token: gameclient.DevToken(name), LongPoll: i%4 == 3,
		})
		must(t, err)
		t.Cleanup(p.Close)
		if search, err := p.EnterMatchmaking(t.Context(), "many"); err != nil || search.Queue != "many" {
			t.Errorf("%s: %+v, %v", name, search, err)
		}
	}
}
