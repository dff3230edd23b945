package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/musterhq/muster/internal/linkclient"
)

// history is the knowledge of clients of a repeatedly crashing service, and the contradictions to it.
type history struct {
	p           *place
	api         *gamelift.Client
	reservation time.Duration

	mu        sync.Mutex
	games     map[string]string // how each was acknowledged
	order     []string
	seats     map[string]types.PlayerSessionStatus // what was acknowledged last
	doubt     map[string]types.PlayerSessionStatus // requested, without an answer
	pushes    map[string][]string                  // processes that were told of a game session, by its id
	open      []*openGame
	findings  []string
	up        time.Time     // since when the service answers; zero while it is down
	served    time.Duration // how long it answered before
	accepts   atomic.Int64
	lists     atomic.Int64
	listed    atomic.Int64
	crossings atomic.Int64 // seats that were accepted in another run of the service than they were reserved in
	run       atomic.Int64
}

// openGame is a game session that players may join.
type openGame struct {
	id   string
	host *crashHost
}

func newHistory(p *place, reservation time.Duration) *history {
	return &history{
		p: p, api: p.apiWith("any", "any"), reservation: reservation, games: map[string]string{},
		seats: map[string]types.PlayerSessionStatus{}, doubt: map[string]types.PlayerSessionStatus{}, pushes: map[string][]string{}, up: time.Now(),
	}
}

func (h *history) finding(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.findings = append(h.findings, fmt.Sprintf(format, args...))
}

// clock returns how long the service has answered in total.
func (h *history) clock() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up.IsZero() {
		return h.served
	}
	return h.served + time.Since(h.up)
}

// crash ends the service and starts it again.
func (h *history) crash(end, start func()) {
	h.mu.Lock()
	h.served, h.up = h.served+time.Since(h.up), time.Time{}
	h.mu.Unlock()
	end()
	start()
	h.mu.Lock()
	h.up = time.Now()
	h.mu.Unlock()
	h.run.Add(1)
}

// untilAnswered repeats a call until it has an answer, which may be a refusal.
func untilAnswered[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for {
		got, err := call(ctx)
		if err == nil || answered(err) || ctx.Err() != nil {
			return got, err
		}
		sleep(ctx, 10*time.Millisecond)
	}
}

// answered distinguishes a refusal from a call with an unknown outcome.
func answered(err error) bool {
	status, ok := errors.AsType[*linkclient.StatusError](err)
	if ok {
		return status.Status < 500
	}
	var api interface{ ErrorCode() string }
	return errors.As(err, &api) && !isError[*types.InternalServiceException](err) && api.ErrorCode() != "ServiceUnavailableException"
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// create starts game sessions, directly and by placements, and records the acknowledged ones.
func (h *history) create(ctx context.Context, backend int) {
	for n := 0; ctx.Err() == nil; n++ {
		token := fmt.Sprintf("backend-%d-%d", backend, n)
		if n%2 == 0 {
			out, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.CreateGameSessionOutput, error) {
				return h.api.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
					FleetId: &h.p.fleet, Location: &h.p.location, MaximumPlayerSessionCount: aws.Int32(50), IdempotencyToken: &token,
				})
			})
			if err == nil {
				h.acknowledged(*out.GameSession.GameSessionId, "CreateGameSession")
			} else {
				sleep(ctx, 20*time.Millisecond)
			}
			continue
		}
		_, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.StartGameSessionPlacementOutput, error) {
			return h.api.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{
				GameSessionQueueName: aws.String("queue"), PlacementId: &token, MaximumPlayerSessionCount: aws.Int32(50),
			})
		})
		for err == nil && ctx.Err() == nil {
			out, asked := untilAnswered(ctx, func(ctx context.Context) (*gamelift.DescribeGameSessionPlacementOutput, error) {
				return h.api.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &token})
			})
			if asked != nil {
				if ctx.Err() == nil {
					h.finding("placement %s was acknowledged, and asked for it: %v", token, asked)
				}
				break
			}
			if out.GameSessionPlacement.Status == types.GameSessionPlacementStateFulfilled {
				h.acknowledged(*out.GameSessionPlacement.GameSessionArn, "a placement")
			}
			if out.GameSessionPlacement.Status != types.GameSessionPlacementStatePending {
				break
			}
			sleep(ctx, 20*time.Millisecond)
		}
	}
}

func (h *history) acknowledged(game, how string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.games[game] == "" {
		h.order = append(h.order, game)
	}
	h.games[game] = how
}

// list reads all game sessions of the fleet, page by page, through crashes. Sessions that were acknowledged before must occur
// exactly once, live or ended: only the next attempt of a placement, created during the reading, may have the id of an earlier one.
func (h *history) list(ctx context.Context) {
	h.mu.Lock()
	want := slices.Clone(h.order)
	h.mu.Unlock()
	there := map[string]time.Time{} // when it was created
	var next *string
	size := int32(1 + rand.IntN(100))
	for {
		out, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.DescribeGameSessionsOutput, error) {
			return h.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{FleetId: &h.p.fleet, Limit: &size, NextToken: next})
		})
		if err != nil {
			if ctx.Err() == nil {
				h.finding("list of the fleet: %v", err)
			}
			return
		}
		for _, g := range out.GameSessions {
			if earlier, again := there[*g.GameSessionId]; again && !g.CreationTime.After(earlier) {
				h.finding("game session %s is in one list twice", *g.GameSessionId)
			}
			there[*g.GameSessionId] = *g.CreationTime
		}
		if next = out.NextToken; next == nil {
			break
		}
	}
	h.lists.Add(1)
	h.listed.Add(int64(len(want)))
	for _, id := range want {
		if there[id].IsZero() {
			out, err := h.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: &id})
			state := fmt.Sprint(err)
			if err == nil && len(out.GameSessions) == 1 {
				g := out.GameSessions[0]
				state = fmt.Sprintf("%s since %v, ended %v", g.Status, g.CreationTime, g.TerminationTime)
			}
			h.finding("game session %s of %s is missing in a list of %d of the fleet (pages of %d); asked for by id it is %s", id, h.games[id], len(there), size, state)
		}
	}
}

// play takes a seat, and accepts the player after some of the seat's time, which is counted while the service answers.
func (h *history) play(ctx context.Context, who string) {
	h.mu.Lock()
	if len(h.open) == 0 {
		h.mu.Unlock()
		sleep(ctx, 20*time.Millisecond)
		return
	}
	game := h.open[rand.IntN(len(h.open))]
	h.mu.Unlock()
	run, began := h.run.Load(), h.clock() // the seat's time begins before the answer is here
	out, err := h.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: &game.id, PlayerId: &who})
	if err != nil {
		sleep(ctx, 20*time.Millisecond)
		return // it may have a seat or none
	}
	psess := *out.PlayerSession.PlayerSessionId
	h.note(psess, types.PlayerSessionStatusReserved)
	wait := time.Duration(rand.Float64() * 0.97 * float64(h.reservation))
	if rand.IntN(3) > 0 {
		wait /= 20
	}
	for h.clock()-began < wait && ctx.Err() == nil {
		sleep(ctx, 5*time.Millisecond)
	}
	h.mu.Lock()
	h.doubt[psess] = types.PlayerSessionStatusActive
	h.mu.Unlock()
	err = game.host.request(ctx, "AcceptPlayerSession", linkclient.PlayerMembers(game.id, psess))
	age := h.clock() - began
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		h.note(psess, types.PlayerSessionStatusActive)
		h.accepts.Add(1)
		if h.run.Load() != run {
			h.crossings.Add(1)
		}
	case strings.Contains(err.Error(), "TIMEDOUT") && age < h.reservation && h.isOpen(game): // a seat also ends with its game session
		h.finding("the seat %s was refused after %v of service, it has %v (%d runs later): %v", psess, age, h.reservation, h.run.Load()-run, err)
	}
	if err != nil {
		h.mu.Lock()
		delete(h.seats, psess) // its game session may have ended, and the seat with it
		delete(h.doubt, psess)
		h.mu.Unlock()
		return
	}
	sleep(ctx, 30*time.Millisecond)
	h.mu.Lock()
	h.doubt[psess] = types.PlayerSessionStatusCompleted
	h.mu.Unlock()
	if game.host.request(ctx, "RemovePlayerSession", linkclient.PlayerMembers(game.id, psess)) == nil {
		h.note(psess, types.PlayerSessionStatusCompleted)
	}
}

// isOpen reports whether the game server has not yet begun to end the game session.
func (h *history) isOpen(game *openGame) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.open, game)
}

func (h *history) note(psess string, status types.PlayerSessionStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats[psess] = status
	delete(h.doubt, psess)
}

// start runs all clients until ctx ends.
func (h *history) start(ctx context.Context, hosts, churning, players int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range hosts {
		all.Go(func() { (&crashHost{h: h}).serve(ctx, i, 0) })
	}
	for i := range churning {
		all.Go(func() { (&crashHost{h: h}).serve(ctx, hosts+i, 300*time.Millisecond) })
	}
	for i := range 3 {
		all.Go(func() { h.create(ctx, i) })
	}
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				h.list(ctx)
				sleep(ctx, 20*time.Millisecond)
			}
		})
	}
	for i := range players {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				h.play(ctx, fmt.Sprintf("player-%d-%d", i, n))
			}
		})
	}
	return &all
}

// check compares everything with the service once more, without load.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.list(t.Context())
	there := map[string]types.PlayerSessionStatus{}
	games := slices.Clone(h.order)
	for game := range h.pushes { // a game server may have had players before the backend was told of the game session, which it is no more once the run is over
		if h.games[game] == "" {
			games = append(games, game)
		}
	}
	for _, game := range games {
		for pages := gamelift.NewDescribePlayerSessionsPaginator(h.p.api(), &gamelift.DescribePlayerSessionsInput{GameSessionId: &game}); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			must(t, err)
			for _, ps := range page.PlayerSessions {
				there[*ps.PlayerSessionId] = ps.Status
			}
		}
	}
	next := map[types.PlayerSessionStatus][]types.PlayerSessionStatus{
		types.PlayerSessionStatusReserved: {types.PlayerSessionStatusTimedout, types.PlayerSessionStatusCompleted},
		types.PlayerSessionStatusActive:   {types.PlayerSessionStatusCompleted},
	}
	for id, want := range h.seats {
		got, ok := there[id]
		if !ok || got != want && got != h.doubt[id] && !slices.Contains(next[want], got) {
			h.finding("player session %s is %q, was told %s (in doubt: %q)", id, got, want, h.doubt[id])
		}
	}
	for id, processes := range h.pushes {
		slices.Sort(processes)
		if twice := len(processes) > len(slices.Compact(slices.Clone(processes))); twice {
			h.finding("game session %s was pushed twice to one process: %v", id, processes)
		}
		if len(processes) > 1 && h.games[id] == "CreateGameSession" {
			h.finding("game session %s, which is no placement's, was pushed to %v", id, processes)
		}
	}
	for i, f := range h.findings {
		if i == 20 {
			t.Errorf("and %d more", len(h.findings)-i)
			break
		}
		t.Error(f)
	}
	second := 0
	for _, processes := range h.pushes {
		if len(processes) > 1 {
			second++
		}
	}
	t.Logf("%d crashes, %v of service: %d game sessions, %d accepted seats, %d of them reserved before a crash, %d lists with %d acknowledged game sessions, %d placements with a second attempt",
		h.run.Load(), h.served.Round(time.Second), len(h.order), h.accepts.Load(), h.crossings.Load(), h.lists.Load(), h.listed.Load(), second)
}
