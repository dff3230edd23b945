// A client of the player API whose calls oapi-codegen generated from the OpenAPI 3.0 document: a login, a party and a search.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func want(what string, ok bool) {
	if !ok {
		fmt.Fprintln(os.Stderr, "not so:", what)
		os.Exit(1)
	}
}

func done(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, token := context.Background(), ""
	client, err := NewClientWithResponses(os.Getenv("MUSTER_URL"), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}))
	done(err)

	name, _ := json.Marshal(map[string]string{"player_id": "gus"})
	login, err := client.SessionLoginWithResponse(ctx, nil, LoginRequest{Provider: "dev", Token: string(name)})
	done(err)
	want("a new player is idle", login.JSON200 != nil && login.JSON200.Flow.Phase == "IDLE")
	token = login.JSON200.AccessToken

	after := int64(0)
	polled, err := client.SessionPollEventsWithResponse(ctx, nil, PollRequest{AfterSeq: &after})
	done(err)
	want("polls bring events", polled.JSON200 != nil)

	made, err := client.PartyCreatePartyWithResponse(ctx, nil, CreatePartyRequest{})
	done(err)
	want("the player leads the party", made.JSON200 != nil && made.JSON200.Party != nil && made.JSON200.Party.LeaderIds[0] == "gus")

	queue := "duel"
	search, err := client.MatchmakingEnterMatchmakingWithResponse(ctx, nil, EnterMatchmakingRequest{Queue: &queue})
	done(err)
	want("the player searches", search.JSON200 != nil && search.JSON200.Ticket != nil && search.JSON200.Ticket.Queue == queue && search.JSON200.Flow.Phase == "MATCHMAKING")

	refused, err := client.PartyKickPlayerWithResponse(ctx, nil, PlayerRequest{PlayerId: "nobody"})
	done(err)
	want("a refusal has a code", refused.JSONDefault != nil && refused.JSONDefault.Code == "TARGET_NOT_IN_PARTY" && refused.StatusCode() == http.StatusNotFound)
	want("an answer says what is left of the rate", refused.HTTPResponse.Header.Get("RateLimit") != "")

	left, err := client.MatchmakingLeaveMatchmakingWithResponse(ctx, nil, None{})
	done(err)
	want("the search has ended", left.JSON200 != nil && left.JSON200.Flow.Phase == "IN_PARTY")
	fmt.Println("ok")
}
