package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// audience has many players, in parties of two, with their clients. A client that loses its stream reconnects automatically.
type audience struct {
	addr    string
	secure  bool
	players []*flowPlayer

	connected atomic.Int64
	beats     atomic.Int64
	frames    atomic.Int64 // events heard while measuring
	measuring atomic.Bool
	lags      [16]struct { // by player, so that they do not wait for each other
		sync.Mutex
		histogram
	}

	ctx     context.Context // ends with the audience
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	held      chan struct{} // no client reconnects until it is closed
	firstBack time.Time     // when the first one received a greeting after that
	wrong     error         // the first fault
}

// flowPlayer is one player.
type flowPlayer struct {
	audience    *audience
	n           int
	name, token string
	party, game string // the keys that the player should have
	answered    uint64 // number of the last event, from the last answer to a call
	heard       atomic.Uint64

	mu     sync.Mutex
	stream *eventStream
}

// comingIn is how many clients log in or attach concurrently.
const comingIn = 64

func newAudience(addr string, secure bool, n int) *audience {
	a := &audience{addr: addr, secure: secure, players: make([]*flowPlayer, n), held: make(chan struct{})}
	close(a.held)
	a.ctx, a.stop = context.WithCancel(context.Background())
	for i := range a.players {
		a.players[i] = &flowPlayer{audience: a, n: i, name: "player-" + strconv.Itoa(i)}
	}
	return a
}

// loginBody returns a player's login in development mode.
func (m *flowPlayer) loginBody() []byte {
	return []byte(`{"provider":"dev","token":"{\"player_id\":\"` + m.name + `\"}","client_version":"1.0","device_label":"bench"}`)
}

// logIn logs all players in and makes parties of two neighbors.
func (a *audience) logIn(ctx context.Context) error {
	conns, err := dialAll(ctx, a.addr, comingIn)
	if err != nil {
		return err
	}
	defer conns.close()
	pool := conns.pool()
	return inParallel(len(a.players)/2, comingIn, func(i int) error {
		c := <-pool
		defer func() { pool <- c }()
		leader, friend := a.players[2*i], a.players[2*i+1]
		for _, m := range []*flowPlayer{leader, friend} {
			answer, err := flowCall[struct {
				Token string `json:"access_token"`
			}](c, "player/Session.Login", "", rawJSON(m.loginBody()))
			if err != nil {
				return err
			}
			m.token = answer.Token
		}
		made, err := flowCall[struct {
			Party struct {
				ID string `json:"party_id"`
			}
		}](c, "player/Party.CreateParty", leader.token, map[string]string{"joinability": "OPEN"})
		if err != nil {
			return err
		}
		leader.party, friend.party = made.Party.ID, made.Party.ID
		_, err = flowCall[stand](c, "player/Party.JoinPartyById", friend.token, map[string]string{"party_id": made.Party.ID})
		return err
	})
}

// rawJSON is encoded unchanged.
type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// attach opens the streams of all.
func (a *audience) attach(ctx context.Context) error {
	return inParallel(len(a.players), comingIn, func(i int) error { return a.players[i].attach(ctx) })
}

// attach opens the player's stream after the last event that the player received. A gap or a repeated event is an error.
func (m *flowPlayer) attach(ctx context.Context) error {
	a, after := m.audience, m.heard.Load()
	x, hello, err := openStream(ctx, a.addr, a.secure, m.token, after)
	if err != nil {
		return err
	}
	if after > 0 && (hello.Resume != "REPLAY" || hello.HeadSeq < after) {
		x.close()
		return a.fault(fmt.Errorf("%s came back after event %d: %s to %d, want REPLAY to %d or more", m.name, after, hello.Resume, hello.HeadSeq, after))
	}
	m.mu.Lock()
	m.stream = x
	m.mu.Unlock()
	a.mu.Lock()
	if a.firstBack.IsZero() {
		a.firstBack = time.Now()
	}
	a.mu.Unlock()
	a.connected.Add(1)
	a.running.Go(func() { m.listen(x) })
	return nil
}

// listen reads a stream until it ends, and reconnects.
func (m *flowPlayer) listen(x *eventStream) {
	a := m.audience
	for {
		text, err := x.read()
		if err == nil {
			err = m.hear(text)
		}
		if err == nil {
			continue
		}
		x.close()
		a.connected.Add(-1)
		if code, ok := errors.AsType[*closedStream](err); ok && a.ctx.Err() == nil {
			_ = a.fault(fmt.Errorf("%s: %w", m.name, code))
		}
		m.comeBack()
		return
	}
}

func (m *flowPlayer) hear(text []byte) error {
	a := m.audience
	if bytes.Equal(text, beatText) {
		a.beats.Add(1)
		return nil
	}
	now := time.Now()
	seq, at, err := eventHead(text)
	if err != nil || seq == 0 {
		return err
	}
	if last := m.heard.Load(); seq != last+1 && !bytes.Contains(text[:min(len(text), 120)], syncKind) {
		return a.fault(fmt.Errorf("%s heard event %d after %d", m.name, seq, last))
	}
	m.heard.Store(seq)
	if a.measuring.Load() {
		a.frames.Add(1)
		lags := &a.lags[m.n%len(a.lags)]
		lags.Lock()
		lags.add(now.Sub(at))
		lags.Unlock()
	}
	return nil
}

// The waits of a reconnecting client: docs/spec/player-api.md#backoff.
const (
	backoffBase = 500 * time.Millisecond
	backoffMax  = 30 * time.Second
)

func (m *flowPlayer) comeBack() {
	a := m.audience
	for most := backoffBase; ; most = min(2*most, backoffMax) {
		a.mu.Lock()
		held := a.held
		a.mu.Unlock()
		select {
		case <-held:
		case <-a.ctx.Done():
			return
		}
		select {
		case <-time.After(rand.N(most)):
		case <-a.ctx.Done():
			return
		}
		if m.attach(a.ctx) == nil {
			return
		}
	}
}

// hold keeps clients that lose their stream from reconnecting until release.
func (a *audience) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = make(chan struct{})
}

func (a *audience) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.firstBack = time.Time{}
	close(a.held)
}

// firstBackAfter returns the time from an instant until the first client received a greeting again.
func (a *audience) firstBackAfter(began time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.firstBack.Sub(began)
}

// fault records the first fault.
func (a *audience) fault(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong == nil {
		a.wrong = err
	}
	return err
}

// check reports the first fault, or that another number of clients is connected.
func (a *audience) check(connected int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.connected.Load(); a.wrong == nil && n != int64(connected) {
		return fmt.Errorf("%d of %d streams are attached, want %d", n, len(a.players), connected)
	}
	return a.wrong
}

// waitFor waits until n clients are connected.
func (a *audience) waitFor(ctx context.Context, n int) error {
	return waitUntil(ctx, func() string { return fmt.Sprint(a.check(n)) }, func() (bool, error) { return a.connected.Load() == int64(n), nil })
}

// heardAll waits until every client has received all events up to the latest answers of its calls.
func (a *audience) heardAll(ctx context.Context) error {
	for _, m := range a.players {
		if err := waitUntil(ctx, func() string {
			return fmt.Sprintf("%s has heard the events up to %d, want %d; the first fault: %v", m.name, m.heard.Load(), m.answered, a.check(len(a.players)))
		}, func() (bool, error) { return m.heard.Load() >= m.answered, nil }); err != nil {
			return err
		}
	}
	return nil
}

// close ends all streams and waits until no client tries to reconnect.
func (a *audience) close() {
	a.stop()
	for _, m := range a.players {
		m.mu.Lock()
		if m.stream != nil {
			m.stream.close()
		}
		m.mu.Unlock()
	}
	a.running.Wait()
}
