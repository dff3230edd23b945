package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// clientWorld is a production service with a game session, a queue without servers and a matchmaker, and two client keys.
type clientWorld struct {
	*place
	mine, theirs, backend *gamelift.Client
	raw                   *rawClient // with the same key as mine
}

func startClientWorld(t *testing.T, args ...string) *clientWorld {
	s, admin := startProduction(t, args...)
	s.client = admin
	p := s.prepare()
	w := &clientWorld{place: p, backend: s.apiWith(s.key("backend"))}
	id, secret := s.key("client")
	w.mine, w.raw, w.theirs = s.apiWith(id, secret), s.rawClient(id, secret, "127.0.0.1"), s.apiWith(s.key("client"))
	p.queue("cup")
	// More players than exist, so that a ticket keeps waiting, even if a busy machine pauses between two steps of a test.
	_, err := admin.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("crowd"),
		RuleSetBody: aws.String(`{"name":"crowd","ruleLanguageVersion":"1.0","teams":[{"name":"a","minPlayers":40,"maxPlayers":40}]}`)})
	must(t, err)
	_, err = admin.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("crowd"), RuleSetName: aws.String("crowd"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		FlexMatchMode: types.FlexMatchModeStandalone,
	})
	must(t, err)
	return w
}

// release frees a seat with the key of mine.
func (w *clientWorld) release(p *types.PlayerSession) (status int, answer string) {
	return w.raw.send("ReleasePlayerSession", []byte(`{"PlayerSessionId":"`+*p.PlayerSessionId+`"}`), false)
}

// A client key, which any player can extract from the game, has no access to objects made with another key: it cannot list,
// describe, stop or answer them. It has access to its own.
func TestAttackThingsOfOthersWithAClientKey(t *testing.T) {
	t.Parallel()
	w := startClientWorld(t)
	ctx := t.Context()
	startTicket := func(api *gamelift.Client, id, player string) error {
		_, err := api.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{
			ConfigurationName: aws.String("crowd"), TicketId: &id, Players: []types.Player{{PlayerId: &player}},
		})
		return err
	}
	startPlacement := func(api *gamelift.Client, id string) error {
		_, err := api.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
			PlacementId: &id, GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2),
		})
		return err
	}
	for owner, api := range map[string]*gamelift.Client{"backend": w.backend, "theirs": w.theirs, "mine": w.mine} {
		must(t, startTicket(api, "ticket-"+owner, "player-"+owner))
		must(t, startPlacement(api, "placement-"+owner))
	}
	for _, owner := range []string{"backend", "theirs"} {
		ticket, placement := "ticket-"+owner, "placement-"+owner
		out, err := w.mine.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{ticket, "ticket-mine"}})
		must(t, err)
		if len(out.TicketList) != 1 || *out.TicketList[0].TicketId != "ticket-mine" {
			t.Errorf("described %d tickets, want only the own one", len(out.TicketList))
		}
		_, err = w.mine.StopMatchmaking(ctx, &gamelift.StopMatchmakingInput{TicketId: &ticket})
		refused(t, "StopMatchmaking of "+owner, err, "NotFoundException", "")
		_, err = w.mine.AcceptMatch(ctx, &gamelift.AcceptMatchInput{TicketId: &ticket, PlayerIds: []string{"player-" + owner}, AcceptanceType: types.AcceptanceTypeReject})
		refused(t, "AcceptMatch of "+owner, err, "NotFoundException", "")
		refused(t, "a rival of "+ticket, startTicket(w.mine, "rival-of-"+owner, "player-"+owner), "InvalidRequestException", "another access key")
		_, err = w.mine.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &placement})
		refused(t, "DescribeGameSessionPlacement of "+owner, err, "NotFoundException", "")
		_, err = w.mine.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &placement})
		refused(t, "StopGameSessionPlacement of "+owner, err, "NotFoundException", "")
	}
	// All of it still exists, and a backend sees and ends what a client made.
	for _, owner := range []string{"backend", "theirs", "mine"} {
		out, err := w.backend.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{"ticket-" + owner}})
		must(t, err)
		if len(out.TicketList) != 1 || out.TicketList[0].Status == types.MatchmakingConfigurationStatusCancelled {
			t.Errorf("the ticket of %s: %+v", owner, out.TicketList)
		}
		_, err = w.backend.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: aws.String("placement-" + owner)})
		must(t, err)
	}
	_, err := w.mine.StopMatchmaking(ctx, &gamelift.StopMatchmakingInput{TicketId: aws.String("ticket-mine")})
	must(t, err)
	// Ended objects of others that are only in the archive are not visible either.
	_, err = w.mine.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String("placement-theirs")})
	refused(t, "an ended placement of others", err, "NotFoundException", "")
}

// A client key lists and frees the seats that were taken with it, and never learns the id of another seat.
func TestAttackSeatsOfOthersWithAClientKey(t *testing.T) {
	t.Parallel()
	w := startClientWorld(t)
	ctx := t.Context()
	_, id := w.hosting(sdkOptions{}, 10)
	game := &types.GameSession{GameSessionId: &id}
	seat := func(api *gamelift.Client, player string) *types.PlayerSession {
		out, err := api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: &player})
		must(t, err)
		return out.PlayerSession
	}
	mine, theirs, backends := seat(w.mine, "mallory"), seat(w.theirs, "ann"), seat(w.backend, "bob")
	for name, other := range map[string]*types.PlayerSession{"another client key": theirs, "a backend": backends} {
		_, err := w.mine.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerSessionId: other.PlayerSessionId})
		refused(t, "DescribePlayerSessions of "+name, err, "NotFoundException", "")
		if status, answer := w.release(other); status != http.StatusBadRequest || !strings.Contains(answer, "NotFoundException") {
			t.Errorf("ReleasePlayerSession of %s: %d %s", name, status, answer)
		}
		out, err := w.mine.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerId: other.PlayerId})
		must(t, err)
		if len(out.PlayerSessions) != 0 {
			t.Errorf("a client key lists the seats of %s", name)
		}
		_, err = w.mine.GetPlayerConnectionDetails(ctx, &gamelift.GetPlayerConnectionDetailsInput{GameSessionId: game.GameSessionId, PlayerIds: []string{*other.PlayerId}})
		refused(t, "GetPlayerConnectionDetails of "+name, err, "NotFoundException", "")
	}
	out, err := w.mine.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{GameSessionId: game.GameSessionId})
	must(t, err)
	if len(out.PlayerSessions) != 1 || *out.PlayerSessions[0].PlayerId != "mallory" || out.PlayerSessions[0].PlayerSessionId != nil {
		t.Errorf("a client key lists %+v", out.PlayerSessions)
	}
	own, err := w.mine.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerSessionId: mine.PlayerSessionId})
	must(t, err)
	if len(own.PlayerSessions) != 1 || *own.PlayerSessions[0].PlayerSessionId != *mine.PlayerSessionId {
		t.Errorf("by its id: %+v", own.PlayerSessions)
	}
	if status, answer := w.release(mine); status != http.StatusOK {
		t.Errorf("ReleasePlayerSession of an own seat: %d %s", status, answer)
	}
	all, err := w.backend.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{GameSessionId: game.GameSessionId})
	must(t, err)
	if len(all.PlayerSessions) != 3 || all.PlayerSessions[0].PlayerSessionId == nil {
		t.Errorf("a backend lists %d of 3 seats", len(all.PlayerSessions))
	}
}

// 4,000 placements with the maximum of data took 1.8 GiB. A client key now gets at most half of a limit, and the rest remains
// for a backend. Like TestAttackWorstBodiesOfAClientKey, this test runs before the parallel tests.
func TestAttackPlacementsThatHoldMemory(t *testing.T) {
	w := startClientWorld(t, "--limit-placement-bytes", "64MiB")
	ctx := t.Context()
	data := strings.Repeat("x", 256<<10)
	start := func(api *gamelift.Client, id string) error {
		_, err := api.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
			PlacementId: &id, GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2), GameSessionData: &data,
		})
		return err
	}
	taken, refusals := 0, 0
	for i := range 400 {
		if err := start(w.mine, fmt.Sprint("p-", i)); err == nil {
			taken++
		} else if strings.Contains(err.Error(), "ThrottlingException") {
			refusals++
		} else {
			t.Fatal(err)
		}
	}
	if want := 32 << 20 / (len(data) + 600); taken != want && taken != want+1 || taken+refusals != 400 {
		t.Errorf("%d placements of a client key were taken, want %d", taken, want)
	}
	must(t, start(w.backend, "of-a-backend"))
	if _, highest := w.resident(); highest > 600<<20 {
		t.Errorf("the service has taken %d MiB", highest>>20)
	}
}

// Tickets that one key watches leave room for others.
func TestAttackWatchesOfAClientKey(t *testing.T) {
	t.Parallel()
	w := startClientWorld(t, "--client-address-rate", "0", "--client-key-rate", "0")
	id, secret := w.key("client")
	_, err := w.apiWith(id, secret).StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{
		ConfigurationName: aws.String("crowd"), TicketId: aws.String("t"), Players: []types.Player{{PlayerId: aws.String("mallory")}},
	})
	must(t, err)
	watch := func(id, secret, stream string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url()+"/session/v1/StartPolling", strings.NewReader(`{"ticketId":"t","playerId":"p"}`))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+id+"."+secret)
		r.Header.Set("X-Client-Id", stream)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(new(any))
		return resp.StatusCode
	}
	var mu sync.Mutex
	answers := map[int]int{}
	var parallel sync.WaitGroup
	for i := range 8 {
		parallel.Go(func() {
			for n := range 600 {
				status := watch(id, secret, fmt.Sprint("s-", i, "-", n))
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}
		})
	}
	parallel.Wait()
	if answers[200] != 512 || answers[429] != 4800-512 {
		t.Errorf("of 4,800 watches of one address with a client key: %v, want 512 taken and the others refused", answers)
	}
	// Without TLS, the service accepts the keys of a backend only from this machine.
	backend, backendSecret := w.key("backend")
	if status := watch(backend, backendSecret, "lobby"); status != http.StatusOK {
		t.Errorf("a watch of a backend: %d", status)
	}
}
