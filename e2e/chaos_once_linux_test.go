package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// Webhooks and matchers run once in a cluster. Whichever node leads, each end of a placement is reported at least once, and each ticket is matched.

// inboxAddress is where nodes find the receiver of their notifications, each in its own namespace.
const inboxAddress = "127.0.0.1:9000"

// owed has the notifications and matches that the cluster owes for acknowledged requests.
type owed struct {
	mu      sync.Mutex
	ended   map[string]int // placements, with how often their end was told
	tickets map[string]bool
}

// listen receives the notifications of all nodes.
func (o *owed) listen(c *clusterOf) {
	c.t.Helper()
	for _, n := range c.wires.ends {
		var l net.Listener
		must(c.t, n.in(func() (err error) {
			l, err = net.Listen("tcp4", inboxAddress)
			return err
		}))
		server := &http.Server{Handler: o}
		go func() { _ = server.Serve(l) }()
		c.t.Cleanup(func() { server.Close() })
	}
}

func (o *owed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var event struct{ Detail struct{ PlacementID string } }
	if json.NewDecoder(r.Body).Decode(&event) != nil || event.Detail.PlacementID == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[event.Detail.PlacementID]++
}

const pairs = `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":1},{"name":"blue","minPlayers":1,"maxPlayers":1}]}`

// prepare makes the prerequisites of placements and tickets. The queue has no destination, so its placements wait until they are stopped.
func (o *owed) prepare(x *chaos) {
	x.t.Helper()
	ctx, api := x.t.Context(), x.api[0]
	_, err := api.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("nowhere"), TimeoutInSeconds: aws.Int32(600)})
	must(x.t, err)
	_, err = api.CreateMatchmakingRuleSet(ctx, &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("pairs"), RuleSetBody: aws.String(pairs)})
	must(x.t, err)
	_, err = api.CreateMatchmakingConfiguration(ctx, &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("pairs"), RuleSetName: aws.String("pairs"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(3600),
		FlexMatchMode: types.FlexMatchModeStandalone,
	})
	must(x.t, err)
}

// place starts placements and stops them.
func (o *owed) place(ctx context.Context, x *chaos, epoch, at int) {
	for n := 0; ctx.Err() == nil; n++ {
		sleep(ctx, 100*time.Millisecond)
		id := fmt.Sprintf("placement-%d-%d-%d", epoch, at, n)
		_, err := x.api[at].StartGameSessionPlacement(x.t.Context(), &gamelift.StartGameSessionPlacementInput{
			PlacementId: &id, GameSessionQueueName: aws.String("nowhere"), MaximumPlayerSessionCount: aws.Int32(2),
		})
		if err != nil {
			continue
		}
		next := (at + 1) % len(x.api)
		if _, err := x.api[next].StopGameSessionPlacement(x.t.Context(), &gamelift.StopGameSessionPlacementInput{PlacementId: &id}); err != nil {
			if isError[*types.NotFoundException](err) {
				x.finding("placement %s was acknowledged by node %d; node %d: %v", id, at+1, next+1, err)
			}
			continue
		}
		x.count("placements that ended")
		o.mu.Lock()
		o.ended[id] += 0
		o.mu.Unlock()
	}
}

// search starts tickets of one player each.
func (o *owed) search(ctx context.Context, x *chaos, epoch, at int) {
	for n := 0; ctx.Err() == nil; n++ {
		sleep(ctx, 100*time.Millisecond)
		o.ticket(x, at, fmt.Sprintf("ticket-%d-%d-%d", epoch, at, n))
	}
}

func (o *owed) ticket(x *chaos, at int, id string) {
	_, err := x.api[at].StartMatchmaking(x.t.Context(), &gamelift.StartMatchmakingInput{
		ConfigurationName: aws.String("pairs"), TicketId: &id, Players: []types.Player{{PlayerId: aws.String("player of " + id)}},
	})
	if err != nil {
		return
	}
	x.count("tickets")
	o.mu.Lock()
	o.tickets[id] = true
	o.mu.Unlock()
}

// check waits until everything owed is done. A ticket without a partner gets one.
func (o *owed) check(x *chaos) {
	x.t.Helper()
	const allowed = 30 * time.Second // a receiver that was lost for a while gets the next attempt after half a minute at most
	left := func() (ids []string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for id, told := range o.ended {
			if told == 0 {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for end := time.Now().Add(2 * allowed); len(left()) > 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if ids := left(); len(ids) > 0 {
		x.finding("the ends of %d placements were never told, such as %s", len(ids), ids[0])
	}
	more := 0
	o.mu.Lock()
	for _, told := range o.ended {
		more += max(0, told-1)
	}
	waiting := slices.Sorted(maps.Keys(o.tickets))
	o.mu.Unlock()
	x.counts["notifications that came twice"] = more
	for round := 0; len(waiting) > 0; round++ {
		if round > 200 {
			x.finding("%d tickets are not matched, such as %s", len(waiting), waiting[0])
			return
		}
		var some []string
		for chunk := range slices.Chunk(waiting, 10) {
			out, err := x.api[round%len(x.api)].DescribeMatchmaking(x.t.Context(), &gamelift.DescribeMatchmakingInput{TicketIds: chunk})
			must(x.t, err)
			if len(out.TicketList) != len(chunk) {
				x.finding("of the tickets %v node %d has %d", chunk, round%len(x.api)+1, len(out.TicketList))
			}
			for _, t := range out.TicketList {
				if t.Status != types.MatchmakingConfigurationStatusCompleted {
					some = append(some, *t.TicketId)
				}
			}
		}
		waiting = some
		if len(waiting) == 1 && round%20 == 19 { // it has no partner
			o.ticket(x, round%len(x.api), fmt.Sprintf("ticket-last-%d", round))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
