package arena

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	joinWithin   = 10 * time.Second // from the connection to the join
	acceptWithin = 15 * time.Second // for the service to accept a player
	writeWithin  = 5 * time.Second
	lineBytes    = 4096
	unsentMax    = 256 // messages to a client that reads too slowly; then it is disconnected
)

// Seats is the part of the service that a room uses.
type Seats interface {
	// Admit accepts a player session for a connection. The room refuses the client after an error.
	Admit(ctx context.Context, connection uint64, playerSessionID string) error
	HandlePlayerLeave(ctx context.Context, connection uint64) error
}

// Room is the server's side of one game: the connections of its players, and the world they share.
type Room struct {
	seats Seats
	log   *slog.Logger

	// Won is called at the end of the game, in a player's goroutine: it must not wait for the room.
	Won func(why string)

	// Retry reports whether a player who was refused with this error may try again with the same player session.
	Retry func(error) bool

	serving     sync.WaitGroup
	connections atomic.Uint64 // the number of connections so far

	mu      sync.Mutex
	world   *World // nil before Open and after Close
	clients map[*client]bool

	strangers map[net.Conn]bool // connections that have not joined yet
}

type client struct {
	conn    net.Conn
	id      uint64       // of the connection
	session string       // player session id
	name    string       // empty until the world has admitted the player
	unsent  chan Message // closed when nothing more is to be sent
}

// NewRoom makes a room without a world, which refuses all players.
func NewRoom(seats Seats, log *slog.Logger) *Room {
	return &Room{
		seats: seats, log: log,
		Won: func(string) {}, Retry: func(error) bool { return false },
		clients: map[*client]bool{}, strangers: map[net.Conn]bool{},
	}
}

// Open admits players from now on.
func (r *Room) Open(w *World) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world = w
}

// Serve takes connections until the listener is closed.
func (r *Room) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a player's connection: %w", err)
		}
		r.serving.Go(func() { r.serve(conn) })
	}
}

// Close tells all players that the game is over and waits until their connections have closed, for as long as ctx allows.
// Call it after Serve has returned.
func (r *Room) Close(ctx context.Context, why string) error {
	r.mu.Lock()
	r.world = nil
	for c := range r.clients {
		r.send(c, Message{Kind: Over, Text: why})
		r.drop(c)
	}
	for conn := range r.strangers {
		conn.Close()
	}
	r.mu.Unlock()

	gone := make(chan struct{})
	go func() {
		r.serving.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the players' connections: %w", ctx.Err())
	}
}

// Players returns the number of players.
func (r *Room) Players() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.clients)
}

func (r *Room) serve(conn net.Conn) {
	defer conn.Close()
	r.mu.Lock()
	r.strangers[conn] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.strangers, conn)
	}()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 512), lineBytes)

	_ = conn.SetReadDeadline(time.Now().Add(joinWithin)) // fails only on a closed connection, which the read shows
	join, err := readMessage(lines)
	if err != nil || join.Kind != Join {
		refuse(conn, "the first line must be a join", false)
		return
	}
	_ = conn.SetReadDeadline(time.Time{})

	c := &client{conn: conn, id: r.connections.Add(1), session: join.PlayerSession, unsent: make(chan Message, unsentMax)}
	if !r.admit(c, join.Name) {
		return
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		write(conn, c.unsent)
	}()
	r.play(c, lines)
	r.leave(c)
	<-writing
}

// admit asks the service before other players see the player.
func (r *Room) admit(c *client, name string) bool {
	if err := CheckName(name); err != nil {
		refuse(c.conn, err.Error(), true) // the seat is still reserved, so the client may try another name
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), acceptWithin)
	defer cancel()
	if err := r.seats.Admit(ctx, c.id, c.session); err != nil {
		r.log.Info("player turned away", "player_session", c.session, "name", name, "error", err)
		refuse(c.conn, err.Error(), r.Retry(err))
		return false
	}

	if err := r.enter(c, name); err != nil {
		r.giveBack(c)
		refuse(c.conn, err.Error(), false)
		return false
	}
	return true
}

func (r *Room) enter(c *client, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.world == nil {
		return errors.New("the game is over")
	}
	joined, err := r.world.Enter(name)
	if err != nil {
		return err
	}
	c.name = name
	r.tell(joined)
	r.clients[c] = true
	delete(r.strangers, c.conn)
	r.send(c, r.world.Look(name))
	r.log.Info("player joined", "name", name, "player_session", c.session, "players", len(r.clients))
	return nil
}

// play handles what a player sends until the player leaves or the connection breaks.
func (r *Room) play(c *client, lines *bufio.Scanner) {
	for {
		m, err := readMessage(lines)
		if err != nil || m.Kind == Leave {
			return
		}
		r.mu.Lock()
		if r.world == nil || !r.clients[c] {
			r.mu.Unlock()
			return
		}
		won := ""
		switch m.Kind {
		case Move:
			var told []Message
			told, won = r.world.Step(c.name, m.Direction)
			for _, m := range told {
				r.tell(m)
			}
		case Say:
			if said := r.world.Talk(c.name, m.Text); said != nil {
				r.tell(*said)
			}
		}
		r.mu.Unlock()
		if won != "" {
			r.Won(won)
		}
	}
}

// leave removes a player from the game and frees the seat.
func (r *Room) leave(c *client) {
	r.mu.Lock()
	open := r.world != nil
	r.drop(c)
	if open {
		r.tell(r.world.Exit(c.name))
	}
	left := len(r.clients)
	r.mu.Unlock()

	r.log.Info("player left", "name", c.name, "player_session", c.session, "players", left)
	r.giveBack(c)
}

// giveBack frees a seat at the service. The session may end with its last player.
func (r *Room) giveBack(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), acceptWithin)
	defer cancel()
	if err := r.seats.HandlePlayerLeave(ctx, c.id); err != nil {
		r.log.Warn("give a player's place back", "player_session", c.session, "error", err)
	}
}

// tell sends a message to all players; the caller holds the lock.
func (r *Room) tell(m Message) {
	for c := range r.clients {
		r.send(c, m)
	}
}

// send never waits: a client that cannot keep up is disconnected, so that no player waits for the slowest.
func (r *Room) send(c *client, m Message) {
	select {
	case c.unsent <- m:
	default:
		r.log.Warn("player reads too slowly", "name", c.name)
		r.drop(c)
		_ = c.conn.Close()
	}
}

// drop removes a connection; its writer closes it after the last message.
func (r *Room) drop(c *client) {
	if r.clients[c] {
		delete(r.clients, c)
		close(c.unsent)
	}
}

func readMessage(lines *bufio.Scanner) (Message, error) {
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return Message{}, err
		}
		return Message{}, net.ErrClosed
	}
	var m Message
	if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
		return Message{}, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// write sends until there is nothing more to send, and closes the connection.
func write(conn net.Conn, unsent <-chan Message) {
	defer conn.Close()
	out := bufio.NewWriter(conn)
	lines := json.NewEncoder(out)
	for m := range unsent {
		_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
		err := lines.Encode(m)
		if err == nil && len(unsent) == 0 {
			err = out.Flush()
		}
		if err != nil {
			conn.Close() // the reader notices and removes the player
			for range unsent {
			}
			return
		}
	}
	_ = out.Flush()
}

func refuse(conn net.Conn, why string, retry bool) {
	_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
	_ = json.NewEncoder(conn).Encode(Message{Kind: Refused, Text: why, Retry: retry})
}
