package arena

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/musterhq/muster/gameserver"
)

// places are a service that knows which player sessions are reserved.
type places struct {
	mu       sync.Mutex
	reserved map[string]bool
	active   map[uint64]string // player sessions by connection
	removed  chan string
}

func (p *places) Admit(_ context.Context, connection uint64, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case id == "psess-silence":
		return &gameserver.Error{Call: "ValidatePlayerJoin", Kind: gameserver.ErrUnavailable}
	case !p.reserved[id]:
		return &gameserver.Error{Call: "ValidatePlayerJoin", Kind: gameserver.ErrRefused}
	}
	delete(p.reserved, id)
	p.active[connection] = id
	return nil
}

func (p *places) HandlePlayerLeave(_ context.Context, connection uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.active[connection]; ok {
		delete(p.active, connection)
		p.removed <- id
	}
	return nil
}

type testRoom struct {
	*Room
	places  *places
	address string
}

// open starts a room with a world and places for some player sessions.
func open(t *testing.T, properties map[string]string, reserved ...string) *testRoom {
	t.Helper()
	p := &places{reserved: map[string]bool{}, active: map[uint64]string{}, removed: make(chan string, 16)}
	for _, id := range reserved {
		p.reserved[id] = true
	}
	r := NewRoom(p, slog.New(slog.DiscardHandler))
	r.Retry = func(err error) bool { return errors.Is(err, gameserver.ErrUnavailable) }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := r.Close(context.Background(), "test over"); err != nil {
			t.Error(err)
		}
	})
	world, err := Load(properties, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Open(world)
	return &testRoom{r, p, l.Addr().String()}
}

func (r *testRoom) join(t *testing.T, session, name string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), r.address, session, name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func next(t *testing.T, c *Client, kind Kind) Message {
	t.Helper()
	for m := range c.Events() {
		if m.Kind == kind {
			return m
		}
	}
	t.Fatalf("the connection was closed before %s came", kind)
	return Message{}
}

func TestPlayersSeeEachOther(t *testing.T) {
	r := open(t, nil, "psess-1", "psess-2")
	ann := r.join(t, "psess-1", "Ann")
	bob := r.join(t, "psess-2", "Bob")
	defer ann.Leave()
	if len(bob.Welcome.Players) != 2 {
		t.Errorf("welcome: got %+v, want both players", bob.Welcome)
	}
	if m := next(t, ann, Joined); m.Player.Name != "Bob" {
		t.Errorf("got %+v, want Bob", m)
	}
	if err := bob.Say("hello"); err != nil {
		t.Fatal(err)
	}
	if m := next(t, ann, Said); m.Name != "Bob" || m.Text != "hello" {
		t.Errorf("got %+v, want Bob's hello", m)
	}
	if err := ann.Move(South); err != nil {
		t.Fatal(err)
	}
	if m := next(t, bob, Moved); m.Player.Name != "Ann" || m.Player.At.Y != 1 {
		t.Errorf("got %+v, want Ann in row 1", m)
	}
	if err := bob.Leave(); err != nil {
		t.Fatal(err)
	}
	if m := next(t, ann, Left); m.Name != "Bob" {
		t.Errorf("got %+v, want Bob gone", m)
	}
	if id := <-r.places.removed; id != "psess-2" {
		t.Errorf("removed %s, want psess-2", id)
	}
}

func TestNobodyPlaysWithoutTheService(t *testing.T) {
	r := open(t, nil, "psess-1", "psess-2")
	for session, retry := range map[string]bool{"psess-made-up": false, "psess-silence": true, "": false} {
		_, err := Dial(t.Context(), r.address, session, "Eve")
		refused, ok := errors.AsType[*RefusedError](err)
		if !ok || refused.Retry != retry {
			t.Errorf("%q: got %v, want a refusal with retry=%v", session, err, retry)
		}
	}
	r.join(t, "psess-1", "Ann")
	if _, err := Dial(t.Context(), r.address, "psess-1", "Eve"); err == nil {
		t.Error("one player session let two clients in")
	}
	if _, err := Dial(t.Context(), r.address, "psess-2", "a b"); err == nil || !r.places.reserved["psess-2"] {
		t.Errorf("a bad name: got %v, want a refusal that leaves the place reserved", err)
	}
	if _, err := Dial(t.Context(), r.address, "psess-2", "Ann"); err == nil {
		t.Error("a taken name was let in")
	}
	if id := <-r.places.removed; id != "psess-2" || r.Players() != 1 {
		t.Errorf("removed %s with %d players, want psess-2 given back and Ann playing", id, r.Players())
	}
}

func TestBrokenConnectionFreesThePlace(t *testing.T) {
	r := open(t, nil, "psess-1")
	c := r.join(t, "psess-1", "Ann")
	c.conn.Close()
	if id := <-r.places.removed; id != "psess-1" {
		t.Errorf("removed %s, want psess-1", id)
	}
}

func TestGarbageIsTurnedAway(t *testing.T) {
	r := open(t, nil, "psess-1")
	for _, line := range []string{"hello\n", "{\"kind\":\"move\"}\n", string(make([]byte, 2*lineBytes)) + "\n"} {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for buf := make([]byte, 512); err == nil; {
			_, err = conn.Read(buf) // until the server hangs up
		}
		conn.Close()
	}
	if r.Players() != 0 {
		t.Errorf("%d players, want none", r.Players())
	}
}

func TestWinnerAndEnd(t *testing.T) {
	r := open(t, map[string]string{"size": "4x4", "goal": "1"}, "psess-1")
	won := make(chan string, 1)
	r.Won = func(why string) { won <- why }
	c := r.join(t, "psess-1", "Ann")
	coin, at := *c.Welcome.Coin, c.Welcome.Players[0].At
	for ; at.X < coin.X; at.X++ {
		_ = c.Move(East)
	}
	for ; at.X > coin.X; at.X-- {
		_ = c.Move(West)
	}
	for ; at.Y < coin.Y; at.Y++ {
		_ = c.Move(South)
	}
	if why := <-won; why != "Ann has reached the goal of 1" {
		t.Errorf("got %q", why)
	}
	go func() { _ = r.Close(t.Context(), "won") }()
	if m := next(t, c, Over); m.Text != "won" {
		t.Errorf("got %+v", m)
	}
}
