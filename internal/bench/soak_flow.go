package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

const (
	soakFriends  = 200         // pairs of friends, who return every evening
	soakEvenings = 3           // evenings a second; two of them make a match
	soakStages   = 24          // game servers for these
	soakCrash    = 4           // in every fourth evening a friend's client crashes, and returns to the game
	soakSilent   = 3           // after every third evening the friends leave without a logout
	soakPatience = time.Minute // a friend who waits longer for the next event is stuck

	soakFlowName  = "soak"
	twoPairsMatch = `{"name": "soak", "ruleLanguageVersion": "1.0", "teams": [
		{"name": "red", "minPlayers": 2, "maxPlayers": 2}, {"name": "blue", "minPlayers": 2, "maxPlayers": 2}]}`
)

// evenings is the part of the soak with player flow. In an evening, two friends log in, make a party, search, play a match against another pair until its
// game session ends, and log out; some leave without a logout.
type evenings struct {
	server  *server
	churn   *soakChurn
	hall    *hall
	conns   chan *flowConn
	links   sync.Map // the game server of each game session: *linkclient.Client by ARN
	over    atomic.Int64
	crashed atomic.Int64
}

// soakEvenings makes the fleet and the matchmaking of the friends.
func (b *bench) soakEvenings(s *server, churn *soakChurn, setup *conn) (*evenings, error) {
	h, err := b.setUpFleet(setup, location)
	if err != nil {
		return nil, err
	}
	return &evenings{server: s, churn: churn, hall: h}, h.matchmaking(setup, soakFlowName, twoPairsMatch)
}

// start starts evenings at a fixed rate until the context ends.
func (e *evenings) start(ctx context.Context) error {
	conns, err := dialAll(ctx, e.server.addr, soakConnections)
	if err != nil {
		return err
	}
	e.conns = conns.pool()
	e.churn.serve(ctx, e.hall, "stage", soakStages, func(link *linkclient.Client, game string) { e.links.Store(game, link) })
	pairs := make(chan int, soakFriends)
	for i := range soakFriends {
		pairs <- i
	}
	e.churn.wait.Go(func() {
		defer conns.close()
		var out sync.WaitGroup
		defer out.Wait()
		tick := time.NewTicker(time.Second / soakEvenings)
		defer tick.Stop()
		for n := 1; e.churn.failed() == nil; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			select {
			case pair := <-pairs:
				out.Go(func() {
					e.churn.keep(ctx, e.evening(ctx, pair, n))
					pairs <- pair
				})
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// evening runs the evening of a pair, the n-th of all evenings.
func (e *evenings) evening(ctx context.Context, pair, n int) error {
	leader := &friend{evenings: e, name: "friend-" + strconv.Itoa(2*pair)}
	other := &friend{evenings: e, name: "friend-" + strconv.Itoa(2*pair+1)}
	both := []*friend{leader, other}
	defer func() { leader.leave(); other.leave() }()
	for _, f := range both {
		if err := f.come(ctx); err != nil {
			return err
		}
	}
	if err := e.search(leader, other); err != nil {
		return err
	}
	for _, f := range both {
		if err := f.play(ctx); err != nil {
			return err
		}
	}
	if n%soakCrash == 0 {
		if err := other.crash(ctx); err != nil {
			return err
		}
	}
	for _, f := range both {
		if _, err := f.until(ctx, "OnRemovedFromGame"); err != nil {
			return err
		}
	}
	e.links.Delete(leader.game)
	e.over.Add(1)
	if n%soakSilent == 0 {
		return nil // without a logout: the party stays until they return
	}
	for _, f := range both {
		if _, err := f.call("player/Session.Logout", struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// search makes a party of the pair and starts its search.
func (e *evenings) search(leader, other *friend) error {
	made, err := leader.call("player/Party.CreateParty", map[string]any{"joinability": "OPEN"})
	if err == nil {
		_, err = other.call("player/Party.JoinPartyById", map[string]any{"party_id": made.Party.ID})
	}
	for _, f := range []*friend{leader, other} {
		if err == nil {
			_, err = f.call("player/Party.SetReady", map[string]any{"ready": true})
		}
	}
	if err == nil {
		_, err = leader.call("player/Matchmaking.EnterMatchmaking", map[string]any{"queue": soakFlowName})
	}
	return err
}

// friend is one player's client during an evening.
type friend struct {
	evenings *evenings
	name     string
	token    string
	heard    uint64
	stream   *eventStream
	events   chan friendEvent

	instance, game, seat string // the game instance, the ARN of its game session, and the player session
}

// friendEvent is an event that a friend waits for, or the end of the stream.
type friendEvent struct {
	Seq  uint64
	Type string
	Data struct {
		Instance string `json:"game_instance_id"`
		Game     string `json:"game_session_id"`
		Seat     string `json:"player_session_id"`
	}
	err error
}

// flowAnswer has the parts of answers that friends use.
type flowAnswer struct {
	Token string `json:"access_token"`
	Party struct {
		ID string `json:"party_id"`
	}
	stand
}

func (f *friend) call(call string, body any) (out flowAnswer, err error) {
	c := <-f.evenings.conns
	defer func() { f.evenings.conns <- c }()
	if out, err = flowCall[flowAnswer](c, call, f.token, body); err != nil {
		err = fmt.Errorf("%s: %w", f.name, err)
	}
	return out, err
}

// come logs in, leaves the party of an evening that ended without a logout, and listens.
func (f *friend) come(ctx context.Context) error {
	now, err := f.logIn(ctx)
	if err == nil && now.Flow.Keys.Party != "" {
		_, err = f.call("player/Party.LeaveParty", struct{}{})
	}
	return err
}

func (f *friend) logIn(ctx context.Context) (now flowAnswer, err error) {
	m := flowPlayer{name: f.name}
	f.token = ""
	if now, err = f.call("player/Session.Login", rawJSON(m.loginBody())); err != nil {
		return now, err
	}
	f.token = now.Token
	x, hello, err := openStream(ctx, f.evenings.server.addr, false, f.token, f.heard)
	if err != nil {
		return now, fmt.Errorf("%s: %w", f.name, err)
	}
	if f.heard > 0 && hello.Resume != "REPLAY" {
		x.close()
		return now, fmt.Errorf("%s came back after event %d: %s, want REPLAY", f.name, f.heard, hello.Resume)
	}
	f.stream, f.events = x, make(chan friendEvent, 64)
	go listenFor(x, f.events)
	return now, nil
}

// listenFor forwards all events until the stream ends.
func listenFor(x *eventStream, to chan<- friendEvent) {
	for {
		var e friendEvent
		text, err := x.read()
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if e.err = err; err != nil {
			to <- e
			close(to)
			return
		}
		if e.Seq != 0 {
			to <- e
		}
	}
}

// until waits for an event of a type. A gap between the events is an error, and so is a long silence.
func (f *friend) until(ctx context.Context, kind string) (friendEvent, error) {
	silent := time.NewTimer(soakPatience)
	defer silent.Stop()
	for {
		select {
		case e := <-f.events:
			switch {
			case e.err != nil:
				return e, fmt.Errorf("%s waits for %s: %w", f.name, kind, e.err)
			case e.Type != "OnSync" && f.heard != 0 && e.Seq != f.heard+1:
				return e, fmt.Errorf("%s heard event %d after %d", f.name, e.Seq, f.heard)
			}
			f.heard = e.Seq
			if e.Type == kind {
				return e, nil
			}
		case <-silent.C:
			return friendEvent{}, fmt.Errorf("%s waits for %s for longer than %s", f.name, kind, soakPatience)
		case <-ctx.Done():
			return friendEvent{}, ctx.Err()
		}
	}
}

// play waits for a place in a game, and connects to the game server.
func (f *friend) play(ctx context.Context) error {
	e, err := f.until(ctx, "OnHostConnectionDetailsReceived")
	if err != nil {
		return err
	}
	f.instance, f.game, f.seat = e.Data.Instance, e.Data.Game, e.Data.Seat
	return f.link(ctx, (*linkclient.Client).AcceptPlayer)
}

// link makes the game server report something about the player.
func (f *friend) link(ctx context.Context, report func(c *linkclient.Client, ctx context.Context, game, seat string) error) error {
	link, ok := f.evenings.links.Load(f.game)
	if !ok {
		return fmt.Errorf("%s is to play in %q, which no game server knows", f.name, f.game)
	}
	if err := report(link.(*linkclient.Client), ctx, f.game, f.seat); err != nil {
		return fmt.Errorf("%s in %s: %w", f.name, f.game, err)
	}
	return nil
}

// crash ends the client. The game server notices, and the player returns to the same game.
func (f *friend) crash(ctx context.Context) error {
	f.leave()
	if err := f.link(ctx, (*linkclient.Client).RemovePlayer); err != nil {
		return err
	}
	seat := f.seat
	if _, err := f.logIn(ctx); err != nil {
		return err
	}
	if _, err := f.call("player/GameInstance.GetHostConnectionDetails", map[string]any{"game_instance_id": f.instance}); err != nil {
		return err
	}
	for f.seat == seat { // the first event may be about the old seat
		if err := f.play(ctx); err != nil {
			return err
		}
	}
	f.evenings.crashed.Add(1)
	return nil
}

// leave drops the client's connection. Unread events are sent again when it returns.
func (f *friend) leave() {
	if f.stream == nil {
		return
	}
	f.stream.close()
	for range f.events {
	}
}
