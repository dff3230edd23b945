package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

// chaos is a cluster under load, with its clients' knowledge and the contradictions to it.
type chaos struct {
	t    *testing.T
	c    *clusterOf
	owed owed

	api                             []*gamelift.Client // one for each node
	location, fleet, compute, token string
	start                           time.Time

	hosting     context.Context // ends with the game servers
	stopHosting context.CancelFunc
	hosts       sync.WaitGroup

	mu       sync.Mutex
	games    []string
	history  []porcupine.Operation
	doubt    []doubt
	aliases  map[string]bool // acknowledged
	counts   map[string]int
	findings []string
	lastAck  time.Time
	gap      time.Duration // the longest time without an acknowledged change, in this epoch
}

// doubt is a change whose outcome its client does not know, or a refused one, which must have had no effect.
type doubt struct {
	porcupine.Operation
	player, psess string // of a reserve, of a free
	refused       bool
}

const (
	chaosSeats   = 3 // of a game session
	chaosGames   = 3 // of an epoch
	chaosPlayers = 6 // clients
)

func newChaos(t *testing.T, c *clusterOf) *chaos {
	t.Helper()
	x := &chaos{t: t, c: c, location: "custom-home", compute: "host", start: time.Now(), aliases: map[string]bool{}, counts: map[string]int{},
		owed: owed{ended: map[string]int{}, tickets: map[string]bool{}}}
	x.hosting, x.stopHosting = context.WithCancel(context.Background())
	for _, n := range c.nodes {
		x.api = append(x.api, n.api())
	}
	ctx, api := t.Context(), x.api[0]
	_, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &x.location})
	must(t, err)
	fleet, err := api.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("chaos"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: &x.location}},
	})
	must(t, err)
	x.fleet = *fleet.FleetAttributes.FleetId
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
		FleetId: &x.fleet, ComputeName: &x.compute, IpAddress: aws.String("127.0.0.1"), Location: &x.location,
	})
	must(t, err)
	token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &x.fleet, ComputeName: &x.compute})
	must(t, err)
	x.token = *token.AuthToken
	x.owed.listen(c)
	x.owed.prepare(x)
	return x
}

func (x *chaos) close() {
	x.stopHosting()
	x.hosts.Wait()
}

func (x *chaos) finding(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.findings = append(x.findings, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (x *chaos) count(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counts[what]++
}

// acknowledged records that a change was acknowledged.
func (x *chaos) acknowledged(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counts[what]++
	now := time.Now()
	x.gap = max(x.gap, now.Sub(x.lastAck))
	x.lastAck = now
}

// openSession is a game session with its server.
type openSession struct {
	id   string
	host *clusterHost
}

// open starts game servers, and a game session on each.
func (x *chaos) open(epoch int) (games []*openSession) {
	x.t.Helper()
	ctx := x.t.Context()
	var hosts []*clusterHost
	for i := range chaosGames {
		h, err := x.startHost(fmt.Sprintf("process-%d-%d", epoch, i))
		must(x.t, err)
		hosts = append(hosts, h)
	}
	for i := range chaosGames {
		at := rand.IntN(len(x.api))
		id := ""
		waittest.Until(x.t, "a free server process", func() bool { // a heartbeat is answered before its node has reported the health
			out, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.CreateGameSessionOutput, error) {
				return x.api[at].CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
					FleetId: &x.fleet, Location: &x.location, MaximumPlayerSessionCount: aws.Int32(chaosSeats), IdempotencyToken: aws.String(fmt.Sprintf("game-%d-%d", epoch, i)),
				})
			})
			if isError[*types.FleetCapacityExceededException](err) {
				return false
			}
			must(x.t, err)
			id = *out.GameSession.GameSessionId
			return true
		})
		next := (at + 1) % len(x.api)
		if got, err := x.api[next].DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: &id}); err != nil || len(got.GameSessions) != 1 {
			x.finding("game session %s was acknowledged by node %d, and node %d answers %v", id, at+1, next+1, err)
		}
	}
	for _, h := range hosts {
		id := <-h.told
		must(x.t, h.request(ctx, "ActivateGameSession", linkclient.GameSessionMembers(id)))
		games = append(games, &openSession{id, h})
		x.mu.Lock()
		x.games = append(x.games, id)
		x.mu.Unlock()
	}
	return games
}

// load runs the clients of an epoch until ctx ends, and returns when their last calls have ended.
func (x *chaos) load(ctx context.Context, epoch int, games []*openSession) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range chaosPlayers {
		all.Go(func() { x.play(ctx, epoch, i, games) })
	}
	for at := range x.api {
		all.Go(func() { x.name(ctx, epoch, at) })
		all.Go(func() { x.owed.place(ctx, x, epoch, at) })
		all.Go(func() { x.owed.search(ctx, x, epoch, at) })
	}
	return &all
}

// op executes one operation of a client.
func (x *chaos) op(client int, in seatOp, wait time.Duration, do func(ctx context.Context) (seatAnswer, error)) (porcupine.Operation, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), wait)
	defer cancel()
	began := time.Since(x.start)
	answer, err := do(ctx)
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(began), Output: answer, Return: int64(time.Since(x.start))}
	if err == nil {
		x.mu.Lock()
		x.history = append(x.history, op)
		x.mu.Unlock()
	}
	return op, err
}

type seat struct {
	game  *openSession
	psess string
}

// play takes, frees and counts seats. Like a client with a list of nodes, it stays at its node until a call fails; every third count is at
// another node.
func (x *chaos) play(ctx context.Context, epoch, client int, games []*openSession) {
	var seats []seat
	at := client
	for n := 0; ctx.Err() == nil; n++ {
		g := games[rand.IntN(len(games))]
		at %= len(x.api)
		switch what := rand.IntN(10); {
		case what < 1:
			x.look(ctx, client, rand.IntN(len(x.api)), g)
		case what < 3:
			if !x.look(ctx, client, at, g) {
				at++
			}
		case what < 6 && len(seats) > 0:
			i := rand.IntN(len(seats))
			x.free(client, seats[i])
			seats = slices.Delete(seats, i, i+1)
		default:
			psess, ok := x.reserve(client, at, g, fmt.Sprintf("player-%d-%d-%d", epoch, client, n))
			if psess != "" {
				seats = append(seats, seat{g, psess})
			}
			if !ok {
				at++
			}
		}
		sleep(ctx, time.Duration(rand.IntN(50))*time.Millisecond)
	}
}

// reserve returns a player session, if there was room, and whether the node answered.
func (x *chaos) reserve(client, at int, g *openSession, player string) (psess string, ok bool) {
	op, err := x.op(client, seatOp{g.id, "reserve"}, clusterPatience, func(ctx context.Context) (seatAnswer, error) {
		out, err := x.api[at].CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: &g.id, PlayerId: &player})
		if isError[*types.GameSessionFullException](err) {
			return seatAnswer{}, nil
		}
		if err == nil {
			psess = *out.PlayerSession.PlayerSessionId
		}
		return seatAnswer{ok: true}, err
	})
	switch {
	case psess != "":
		x.acknowledged("reservations")
		next := (at + 1 + rand.IntN(len(x.api)-1)) % len(x.api)
		ctx, cancel := context.WithTimeout(x.t.Context(), nextWait)
		defer cancel()
		out, err := x.api[next].DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &psess})
		if err == nil && len(out.PlayerSessions) != 1 || isError[*types.NotFoundException](err) {
			x.finding("player session %s was acknowledged by node %d, and is missing at node %d: %v", psess, at+1, next+1, err)
		}
	case err != nil:
		x.inDoubt(op, err, doubt{player: player})
		x.refusal("CreatePlayerSession", at, err)
	}
	return psess, err == nil
}

func (x *chaos) free(client int, s seat) {
	op, err := x.op(client, seatOp{s.game.id, "free"}, 2*clusterPatience, func(ctx context.Context) (seatAnswer, error) {
		return seatAnswer{}, s.game.host.request(ctx, "RemovePlayerSession", linkclient.PlayerMembers(s.game.id, s.psess))
	})
	switch {
	case err == nil:
		x.acknowledged("seats given back")
	case answered(err):
		x.finding("RemovePlayerSession %s, which was reserved: %v", s.psess, err)
	default:
		x.inDoubt(op, err, doubt{psess: s.psess})
	}
}

const (
	lookWait = 2 * time.Second        // for a read, which a client can ask elsewhere
	nextWait = 500 * time.Millisecond // to find what was acknowledged at another node, which may be down
)

// look counts the seats that are taken. It reports whether the node answered.
func (x *chaos) look(ctx context.Context, client, at int, g *openSession) bool {
	_, err := x.op(client, seatOp{g.id, "count"}, lookWait, func(ctx context.Context) (seatAnswer, error) {
		out, err := x.api[at].DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: &g.id})
		if err != nil {
			return seatAnswer{}, err
		}
		if len(out.GameSessions) != 1 || out.GameSessions[0].Status != types.GameSessionStatusActive {
			x.finding("game session %s is gone at node %d: %v", g.id, at+1, out.GameSessions)
		}
		return seatAnswer{count: *out.GameSessions[0].CurrentPlayerSessionCount}, nil
	})
	if err == nil {
		x.count("reads")
		return true
	}
	x.count("reads without an answer")
	x.refusal("DescribeGameSessions", at, err)
	sleep(ctx, 20*time.Millisecond) // the node may be down
	return false
}

// lookAt begins reads at a frozen node, of an object that another node makes meanwhile. When the node continues, the reads find it or fail.
func (x *chaos) lookAt(at int) {
	var made *gamelift.CreateAliasOutput
	for next := at + 1; made == nil && next < at+len(x.api); next++ {
		within, cancel := context.WithTimeout(x.t.Context(), clusterPatience)
		made, _ = x.api[next%len(x.api)].CreateAlias(within, &gamelift.CreateAliasInput{
			Name: aws.String("meanwhile"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: aws.String("over")},
		})
		cancel()
	}
	if made == nil {
		x.finding("no node answers while node %d stands still", at+1)
		return
	}
	for range 30 {
		x.hosts.Go(func() {
			within, cancel := context.WithTimeout(x.t.Context(), clusterPatience)
			defer cancel()
			switch _, err := x.api[at].DescribeAlias(within, &gamelift.DescribeAliasInput{AliasId: made.Alias.AliasId}); {
			case err == nil:
				x.count("reads that waited for a node that stood still")
			case isError[*types.NotFoundException](err):
				x.finding("node %d, which stood still, does not have what node %d acknowledged meanwhile", at+1, (at+1)%len(x.api)+1)
			default:
				x.count("reads that failed at a node that stood still")
			}
		})
	}
}

func (x *chaos) inDoubt(op porcupine.Operation, err error, d doubt) {
	d.Operation, d.refused = op, throttled(err)
	if d.refused {
		x.count("changes that were refused")
	} else {
		x.count("changes of unknown outcome")
	}
	x.mu.Lock()
	x.doubt = append(x.doubt, d)
	x.mu.Unlock()
	time.Sleep(20 * time.Millisecond) // the node may be down
}

// throttled reports whether a node answered that nothing happened, because it reaches no leader.
func throttled(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ThrottlingException"
}

// refusal records an answer that contradicts the client's knowledge.
func (x *chaos) refusal(call string, at int, err error) {
	if answered(err) && !throttled(err) {
		x.finding("%s at node %d, of a game session that is there: %v", call, at+1, err)
	}
}

// name creates aliases at one node and finds them at the next.
func (x *chaos) name(ctx context.Context, epoch, at int) {
	for n := 0; ctx.Err() == nil; n++ {
		at %= len(x.api)
		next := (at + 1 + rand.IntN(len(x.api)-1)) % len(x.api)
		out, err := x.api[at].CreateAlias(x.t.Context(), &gamelift.CreateAliasInput{
			Name:            aws.String(fmt.Sprintf("alias-%d-%d-%d", epoch, at, n)),
			RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: aws.String("over")},
		})
		if err != nil {
			at++
			sleep(ctx, 100*time.Millisecond)
			continue
		}
		x.acknowledged("aliases")
		x.mu.Lock()
		x.aliases[*out.Alias.AliasId] = true
		x.mu.Unlock()
		within, cancel := context.WithTimeout(x.t.Context(), nextWait)
		if _, err := x.api[next].DescribeAlias(within, &gamelift.DescribeAliasInput{AliasId: out.Alias.AliasId}); isError[*types.NotFoundException](err) {
			x.finding("alias %s was acknowledged by node %d, and is missing at node %d", *out.Alias.AliasId, at+1, next+1)
		}
		cancel()
		sleep(ctx, 100*time.Millisecond)
	}
}

// check compares everything with the state at each node, once all are healthy again.
func (x *chaos) check() {
	x.t.Helper()
	var first map[string]types.PlayerSession // by id
	for at := range x.api {
		all := map[string]types.PlayerSession{}
		for _, id := range x.games {
			for pages := gamelift.NewDescribePlayerSessionsPaginator(x.api[at], &gamelift.DescribePlayerSessionsInput{GameSessionId: &id}); pages.HasMorePages(); {
				page, err := pages.NextPage(x.t.Context())
				must(x.t, err)
				for _, ps := range page.PlayerSessions {
					all[*ps.PlayerSessionId] = ps
				}
			}
		}
		if first == nil {
			first = all
			x.resolve(all)
		}
		for id, ps := range first {
			if other, ok := all[id]; !ok || other.Status != ps.Status {
				x.finding("player session %s is %s at node 1 and %s at node %d", id, ps.Status, other.Status, at+1)
			}
		}
		if len(all) != len(first) {
			x.finding("node 1 has %d player sessions, node %d has %d", len(first), at+1, len(all))
		}
		listed := map[string]bool{}
		for pages := gamelift.NewListAliasesPaginator(x.api[at], &gamelift.ListAliasesInput{}); pages.HasMorePages(); {
			page, err := pages.NextPage(x.t.Context())
			must(x.t, err)
			for _, a := range page.Aliases {
				listed[*a.AliasId] = true
			}
		}
		for id := range x.aliases {
			if !listed[id] {
				x.finding("alias %s was acknowledged, and is missing at node %d", id, at+1)
			}
		}
	}
	result, info := porcupine.CheckOperationsVerbose(seats(chaosSeats), x.history, patience)
	if result != porcupine.Ok {
		file := x.t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(seats(chaosSeats), info, file); err != nil {
			x.t.Error(err)
		}
		x.finding("%d operations on seats have no order that a correct service could have had (%s); run with -artifacts to keep the picture %s", len(x.history), result, file)
	}
}

// resolve adds changes of unknown outcome to the history if they happened, at any time since the call.
func (x *chaos) resolve(there map[string]types.PlayerSession) {
	players := map[string]string{}
	for id, ps := range there {
		if earlier := players[*ps.PlayerId]; earlier != "" {
			x.finding("player %s has the player sessions %s and %s after one call", *ps.PlayerId, earlier, id)
		}
		players[*ps.PlayerId] = id
	}
	end := int64(time.Since(x.start))
	for _, d := range x.doubt {
		happened := players[d.player] != "" || d.psess != "" && there[d.psess].Status == types.PlayerSessionStatusCompleted
		switch {
		case happened && d.refused:
			x.finding("a change was refused because no node decides, and has happened: %+v", d)
		case happened:
			d.Return = end
			if d.player != "" {
				d.Output = seatAnswer{ok: true}
			}
			x.history = append(x.history, d.Operation)
			x.counts["changes of unknown outcome that have happened"]++
		}
	}
}

// summary describes the clients' knowledge.
func (x *chaos) summary() string {
	var words []string
	for what, n := range x.counts {
		words = append(words, fmt.Sprintf("%d %s", n, what))
	}
	slices.SortFunc(words, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a, "0123456789 "), strings.TrimLeft(b, "0123456789 "))
	})
	return strings.Join(words, ", ")
}
