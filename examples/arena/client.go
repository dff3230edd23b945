package arena

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
)

// RefusedError is the server's refusal of a join.
type RefusedError struct {
	Why   string
	Retry bool // the same player session may try again
}

func (e *RefusedError) Error() string { return "arena: join refused: " + e.Why }

// Client is a player's side of the game.
type Client struct {
	Welcome Message // the game as it was when this player joined

	conn   net.Conn
	events chan Message
	left   chan struct{} // closed by Leave

	mu    sync.Mutex // guards writing
	lines *json.Encoder
}

// Dial connects to a server and joins with a player session id from the service. A refusal is a *RefusedError.
func Dial(ctx context.Context, address, playerSession, name string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("arena: connect to %s: %w", address, err)
	}
	// The answer to a join may take as long as the service does; ctx can end the wait.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c := &Client{conn: conn, events: make(chan Message, unsentMax), left: make(chan struct{}), lines: json.NewEncoder(conn)}
	in := bufio.NewScanner(conn)
	in.Buffer(make([]byte, 0, 4096), 1<<20) // a welcome names every player
	err = c.send(Message{Kind: Join, PlayerSession: playerSession, Name: name})
	if err == nil {
		c.Welcome, err = readMessage(in)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		conn.Close()
		return nil, fmt.Errorf("arena: join %s: %w", address, err)
	case c.Welcome.Kind != Welcome:
		conn.Close()
		return nil, &RefusedError{Why: c.Welcome.Text, Retry: c.Welcome.Retry}
	}
	go c.read(in)
	return c, nil
}

// Events returns the messages of the server, in order. The channel is closed with the connection. The server
// disconnects a client that reads too slowly.
func (c *Client) Events() <-chan Message { return c.events }

func (c *Client) read(in *bufio.Scanner) {
	defer close(c.events)
	for {
		m, err := readMessage(in)
		if err != nil {
			return
		}
		select {
		case c.events <- m:
		case <-c.left:
			return
		}
	}
}

// Move takes a step. If it is possible, the server sends it to all players, this client included.
func (c *Client) Move(d Direction) error { return c.send(Message{Kind: Move, Direction: d}) }

// Say sends a text to all players.
func (c *Client) Say(text string) error { return c.send(Message{Kind: Say, Text: text}) }

// Leave sends a leave message and closes the connection. Call it once.
func (c *Client) Leave() error {
	close(c.left)
	err := c.send(Message{Kind: Leave})
	if err2 := c.conn.Close(); err == nil {
		err = err2
	}
	return err
}

func (c *Client) send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.lines.Encode(m); err != nil {
		return fmt.Errorf("arena: send %s: %w", m.Kind, err)
	}
	return nil
}
