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

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// namedGame makes an ACTIVE game session with the name, for two players.
func (h *hall) namedGame(fleetID, name string, properties ...string) string {
	h.Helper()
	key := h.serverReady(fleetID, "p-"+name)
	in := &gamelift.CreateGameSessionInput{
		FleetId: &fleetID, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2), Name: &name,
	}
	for i := 0; i < len(properties); i += 2 {
		in.GameProperties = append(in.GameProperties, types.GameProperty{Key: &properties[i], Value: &properties[i+1]})
	}
	created := must(h.sdk.CreateGameSession(h.Context(), in))(h.T)
	h.do(&hosting.ActivateGameSession{Process: key, Game: h.gameID(*created.GameSession.GameSessionId)})
	return *created.GameSession.GameSessionId
}

// found returns the names of the game sessions on the first page.
func (h *hall) found(in *gamelift.SearchGameSessionsInput) (names []string) {
	h.Helper()
	out := must(h.sdk.SearchGameSessions(h.Context(), in))(h.T)
	for _, g := range out.GameSessions {
		names = append(names, *g.Name)
	}
	return names
}

func TestSearchFindsWhatWasAnswered(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	search := func(filter, sort string) []string {
		in := &gamelift.SearchGameSessionsInput{FleetId: &fleetID}
		if filter != "" {
			in.FilterExpression = &filter
		}
		if sort != "" {
			in.SortExpression = &sort
		}
		return h.found(in)
	}
	expect := func(filter, sort string, want ...string) {
		t.Helper()
		if got := search(filter, sort); !slices.Equal(got, want) {
			t.Errorf("filter %q sort %q: got %v, want %v", filter, sort, got, want)
		}
	}
	expect("", "")
	duel := h.namedGame(fleetID, "duel", "mode", "1v1", "level", "10")
	race := h.namedGame(fleetID, "race", "mode", "race", "level", "9")
	h.namedGame(fleetID, "tour")
	expect("", "gameSessionName DESC", "tour", "race", "duel")
	expect("", "gameSessionProperties.level ASC", "duel", "race", "tour")
	expect("gameSessionProperties.mode = 'race'", "", "race")
	expect("gameSessionId = '"+duel+"'", "", "duel")

	must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &duel, PlayerId: aws.String("a")}))(t)
	expect("playerSessionCount>=1 AND hasAvailablePlayerSessions=true", "", "duel")
	must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &duel, PlayerId: aws.String("b")}))(t)
	must(h.sdk.UpdateGameSession(t.Context(), &gamelift.UpdateGameSessionInput{
		GameSessionId: &race, PlayerSessionCreationPolicy: types.PlayerSessionCreationPolicyDenyAll,
		Name: aws.String("grand prix"), GameProperties: []types.GameProperty{{Key: aws.String("mode"), Value: aws.String("gp")}},
	}))(t)
	expect("hasAvailablePlayerSessions=true", "", "tour")
	expect("playerSessionCount > 0", "playerSessionCount DESC", "duel")
	expect("gameSessionProperties.mode = 'gp' AND gameSessionProperties.level = '9'", "", "grand prix")
	expect("gameSessionProperties.mode = 'race' OR gameSessionName = 'race'", "")

	must(h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: &duel, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	}))(t)
	expect("", "gameSessionName ASC", "grand prix", "tour")
}

func TestSearchPages(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	for i := range 45 {
		h.namedGame(fleetID, fmt.Sprintf("game-%02d", i), "odd", fmt.Sprint(i%2))
	}
	for _, each := range []struct {
		name  string
		in    gamelift.SearchGameSessionsInput
		pages []int
	}{
		{"at random", gamelift.SearchGameSessionsInput{}, []int{20, 20, 5}},
		{"more than a page holds", gamelift.SearchGameSessionsInput{Limit: aws.Int32(1000)}, []int{20, 20, 5}},
		{"by name", gamelift.SearchGameSessionsInput{SortExpression: aws.String("gameSessionName ASC"), Limit: aws.Int32(15)}, []int{15, 15, 15}},
		{"half", gamelift.SearchGameSessionsInput{FilterExpression: aws.String("gameSessionProperties.odd = '1'"), Limit: aws.Int32(11), Location: aws.String("custom-home")}, []int{11, 11}},
	} {
		t.Run(each.name, func(t *testing.T) {
			each.in.FleetId = &fleetID
			seen, sizes := map[string]bool{}, []int(nil)
			pager := gamelift.NewSearchGameSessionsPaginator(h.sdk, &each.in)
			for pager.HasMorePages() {
				page := must(pager.NextPage(t.Context()))(t)
				sizes = append(sizes, len(page.GameSessions))
				for _, g := range page.GameSessions {
					if seen[*g.Name] {
						t.Errorf("%s is there twice", *g.Name)
					}
					seen[*g.Name] = true
				}
			}
			if !slices.Equal(sizes, each.pages) {
				t.Errorf("got pages of %v, want %v", sizes, each.pages)
			}
		})
	}
	first := h.found(&gamelift.SearchGameSessionsInput{FleetId: &fleetID})
	for range 20 {
		if !slices.Equal(first, h.found(&gamelift.SearchGameSessionsInput{FleetId: &fleetID})) {
			return
		}
	}
	t.Error("without a sort expression all searches give the same game sessions first")
}

// TestSearchPagesOfLongNames: the content of a page token has to fit into it.
func TestSearchPagesOfLongNames(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	for i := range 5 {
		h.namedGame(fleetID, strings.Repeat("😀", 900)+fmt.Sprint(i))
	}
	pager := gamelift.NewSearchGameSessionsPaginator(h.sdk, &gamelift.SearchGameSessionsInput{
		FleetId: &fleetID, Limit: aws.Int32(2), SortExpression: aws.String("gameSessionName DESC"),
	})
	seen := map[string]bool{}
	for pager.HasMorePages() {
		page := must(pager.NextPage(t.Context()))(t)
		for _, g := range page.GameSessions {
			seen[*g.GameSessionId] = true
		}
		if token := value(page.NextToken); len(token) > 1024 {
			t.Errorf("a page token has %d characters", len(token))
		}
	}
	if len(seen) != 5 {
		t.Errorf("got %d game sessions, want 5", len(seen))
	}
}

func TestSearchRefuses(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	for i := range 3 {
		h.namedGame(id, fmt.Sprint(i))
	}
	fleet := `"FleetId":"` + id + `"`
	token := must(h.sdk.SearchGameSessions(t.Context(), &gamelift.SearchGameSessionsInput{FleetId: &id, Limit: aws.Int32(1)}))(t).NextToken
	for _, each := range []struct{ name, body, code, text string }{
		{"neither fleet nor alias", `{}`, codeInvalidRequest, "FleetId or AliasId"},
		{"both", `{` + fleet + `,"AliasId":"alias-1"}`, codeInvalidRequest, "exactly one"},
		{"unknown fleet", `{"FleetId":"` + nowhere + `"}`, "NotFoundException", nowhere},
		{"unknown alias", `{"AliasId":"alias-1"}`, "NotFoundException", "alias-1"},
		{"unknown location", `{` + fleet + `,"Location":"custom-x"}`, codeInvalidRequest, "custom-x"},
		{"double quotes", `{` + fleet + `,"FilterExpression":"gameSessionName = \"a\""}`, codeInvalidRequest, "FilterExpression: character 19: got '\"', want a string in single quotes"},
		{"wrong type", `{` + fleet + `,"FilterExpression":"playerSessionCount = '3'"}`, codeInvalidRequest, "character 22: got '3', want a number"},
		{"empty", `{` + fleet + `,"FilterExpression":""}`, codeInvalidRequest, "length greater than or equal to 1"},
		{"a megabyte", `{` + fleet + `,"FilterExpression":"` + strings.Repeat("(", 1<<20) + `"}`, codeEntityTooLarge, "larger than"},
		{"no order", `{` + fleet + `,"SortExpression":"creationTimeMillis UP"}`, codeInvalidRequest, "SortExpression: character 20: got 'UP', want ASC or DESC"},
		{"no limit", `{` + fleet + `,"Limit":0}`, codeInvalidRequest, "limit"},
		{"broken token", `{` + fleet + `,"NextToken":"abc"}`, codeInvalidRequest, "NextToken"},
		{"token of another search", `{` + fleet + `,"NextToken":"` + *token + `","SortExpression":"gameSessionName ASC"}`, codeInvalidRequest, "NextToken"},
	} {
		got := h.json.call(t, "SearchGameSessions", each.body)
		message := strings.ToLower(fmt.Sprint(got.body["message"], got.body["Message"]))
		if got.body["__type"] != each.code || !strings.Contains(message, strings.ToLower(each.text)) {
			t.Errorf("%s: got %s, want %s with %q", each.name, excerpt.Short(got.raw), each.code, each.text)
		}
	}
	terminal := must(h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{
		Name: aws.String("closed"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: aws.String("see you")},
	}))(t)
	_, err := h.sdk.SearchGameSessions(t.Context(), &gamelift.SearchGameSessionsInput{AliasId: terminal.Alias.AliasId})
	refused(t, err, "TerminalRoutingStrategyException")
	alias := must(h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{
		Name: aws.String("open"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: &id},
	}))(t)
	if got := h.found(&gamelift.SearchGameSessionsInput{AliasId: alias.Alias.AliasId}); len(got) != 3 {
		t.Errorf("by alias: got %v, want 3 game sessions", got)
	}
}
