package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// admission describes the login of one player.
type admission struct {
	tries   int
	place   time.Time // when this player's turn comes, according to the first answer
	settled time.Time
}

// flowFreshLogins lets all players log in at the same moment, as after an outage: players in a game are admitted first,
// the others wait in the login queue.
func (b *bench) flowFreshLogins(ctx context.Context, s *server, a *audience) error {
	conns, err := dialAll(ctx, s.addr, comingIn)
	if err != nil {
		return err
	}
	defer conns.close()
	pool := conns.pool()
	all := make([]admission, len(a.players))
	watched := watchMemory(s)
	began := time.Now()
	err = inParallel(len(a.players), len(a.players), func(i int) error {
		m := a.players[i]
		if err := m.comeIn(ctx, pool, &all[i], b.sizes.flowLogins); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		return m.attach(ctx)
	})
	took := time.Since(began)
	before, most := watched.end()
	if err != nil {
		return err
	}
	inGame := b.sizes.flowGames * b.sizes.flowGamePlayers
	var first time.Duration
	queued := 0
	for i := range all {
		switch {
		case i < inGame && all[i].tries > 1:
			return fmt.Errorf("%s is in a game and had to wait for its login", a.players[i].name)
		case i < inGame:
			first = max(first, all[i].settled.Sub(began))
		case all[i].tries > 1:
			queued++
		}
	}
	late := orderedWithin(all[inGame:])
	if err := a.keysKept(ctx, pool); err != nil {
		return err
	}
	if err := a.check(len(a.players)); err != nil {
		return err
	}
	grown := float64(most-before) / (1 << 20)
	b.progress("  %d fresh logins: all logged in and attached after %s; %d were queued, at most %s out of order; the %d in a game after %s; memory grew by %.0f MiB at most",
		len(all), took.Round(time.Millisecond), queued, late.Round(time.Millisecond), inGame, first.Round(time.Millisecond), grown)
	b.table.addFact(fmt.Sprintf("%s fresh logins at %d a second, no player's keys changed: all logged in after", thousands(int64(len(all))), b.sizes.flowLogins),
		fmt.Sprintf("%.0f s", float64(len(all))/float64(b.sizes.flowLogins)), "%.1f s", took.Seconds())
	b.table.addFact(fmt.Sprintf("… of them in a game, not queued: all %d in after", inGame), "first", "%.1f s", first.Seconds())
	b.table.addFact("… queued with a place and a time to retry; furthest out of order", "in order", "%s, %s", thousands(int64(queued)), milliseconds(late))
	b.table.addFact("… resident memory grew by, streams included", "bounded", "%.0f MiB", grown)
	return nil
}

// comeIn logs a player in, and tries again if the answer asks for it.
func (m *flowPlayer) comeIn(ctx context.Context, pool chan *flowConn, x *admission, perSecond int) error {
	for {
		wait, err := m.tryLogin(pool, x, perSecond)
		if err != nil || wait == 0 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryLogin logs in, or returns how long to wait.
func (m *flowPlayer) tryLogin(pool chan *flowConn, x *admission, perSecond int) (wait time.Duration, err error) {
	c := <-pool
	defer func() { pool <- c }()
	status, answer, err := c.post("player/Session.Login", "", m.loginBody())
	if err != nil {
		return 0, err
	}
	now := time.Now()
	x.tries++
	if status == http.StatusOK {
		var got struct {
			Token string `json:"access_token"`
			stand
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return 0, err
		}
		m.token, x.settled = got.Token, now
		return 0, m.sameKeys(&got.stand)
	}
	var refused struct {
		Code         string
		RetryAfterMS int64 `json:"retry_after_ms"`
		Details      struct{ Position int }
	}
	if err := json.Unmarshal(answer, &refused); err != nil {
		return 0, err
	}
	if refused.Code != "LOGIN_QUEUED" || refused.RetryAfterMS <= 0 || refused.Details.Position <= 0 {
		return 0, &apiError{"player/Session.Login", status, string(answer)}
	}
	if x.place.IsZero() {
		x.place = now.Add(time.Duration(refused.Details.Position) * time.Second / time.Duration(perSecond))
	}
	return time.Duration(refused.RetryAfterMS) * time.Millisecond, nil
}

var errOtherKeys = errors.New("the keys are not what they were")

func (m *flowPlayer) sameKeys(s *stand) error {
	if k := &s.Flow.Keys; k.Party != m.party || k.Game != m.game || k.Match != "" {
		return fmt.Errorf("%w: party %q, game %q, matchmaking %q, want %q, %q and none", errOtherKeys, k.Party, k.Game, k.Match, m.party, m.game)
	}
	return nil
}

// keysKept reads the keys of all players.
func (a *audience) keysKept(ctx context.Context, pool chan *flowConn) error {
	return inParallel(len(a.players), comingIn, func(i int) error {
		c := <-pool
		defer func() { pool <- c }()
		m := a.players[i]
		got, err := flowCall[stand](c, "player/Session.GetFlow", m.token, struct{}{})
		if err == nil {
			err = m.sameKeys(&got)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		return nil
	})
}

// orderedWithin returns the longest time by which a player was logged in after another one whose turn was later.
func orderedWithin(all []admission) (late time.Duration) {
	queued := slices.DeleteFunc(slices.Clone(all), func(x admission) bool { return x.place.IsZero() })
	slices.SortFunc(queued, func(x, y admission) int { return x.settled.Compare(y.settled) })
	var latest time.Time
	for i := range queued {
		if place := queued[i].place; place.Before(latest) {
			late = max(late, latest.Sub(place))
		} else {
			latest = place
		}
	}
	return late
}

// memoryWatch samples a server's memory.
type memoryWatch struct {
	before, most int64
	over         chan struct{}
	running      sync.WaitGroup
}

func watchMemory(s *server) *memoryWatch {
	w := &memoryWatch{before: s.resident(), over: make(chan struct{})}
	w.most = w.before
	w.running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.most = max(w.most, s.resident())
			case <-w.over:
				return
			}
		}
	})
	return w
}

func (w *memoryWatch) end() (before, most int64) {
	close(w.over)
	w.running.Wait()
	return w.before, w.most
}
