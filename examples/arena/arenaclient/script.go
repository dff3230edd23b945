package arenaclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameclient"
)

// returnAgain is how long a player waits to return to a game that has not noticed the disconnection yet.
const returnAgain = 100 * time.Millisecond

// scripted plays by a script.
type scripted struct {
	client *arena.Client
	online *online // nil: the player got a seat from another program and cannot return
	out    io.Writer
	seen   *screen // its view of the game
}

// play runs a script. Every event is printed as "kind name details".
func (p *scripted) play(ctx context.Context, script string) error {
	p.begin()
	for step := range strings.SplitSeq(script, ";") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		var err error
		switch verb {
		case "":
		case "north", "south", "west", "east":
			err = p.client.Move(arena.Direction(verb))
		case "coin":
			err = p.takeCoin(ctx)
		case "say":
			err = p.client.Say(rest)
		case "wait":
			kind, name, _ := strings.Cut(rest, " ")
			err = p.wait(ctx, arena.Kind(kind), name)
		case "return":
			err = p.comeBack(ctx)
		case "leave":
			return nil
		default:
			err = fmt.Errorf("script: step %q: want north, south, west, east, coin, say, wait, return or leave", step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *scripted) begin() {
	p.seen = newScreen(p.client.Welcome)
	fmt.Fprintln(p.out, describe(p.client.Welcome))
}

// comeBack leaves the game session and joins it again, with another seat.
func (p *scripted) comeBack(ctx context.Context) error {
	if p.online == nil {
		return errors.New("script: return needs -fleet, -queue, -session or -friend")
	}
	if err := p.online.leave(ctx); err != nil {
		return err
	}
	for {
		client, err := p.online.join(ctx)
		if err == nil {
			p.client = client
			p.begin()
			return nil
		}
		// The game server may not have noticed yet that this player left. In that case the old seat and name are still taken.
		_, refused := errors.AsType[*arena.RefusedError](err)
		if !refused && !errors.Is(err, gameclient.ErrFull) {
			return err
		}
		select {
		case <-time.After(returnAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// takeCoin walks to the coin, around other players.
func (p *scripted) takeCoin(ctx context.Context) error {
	for {
		direction, ok := p.seen.way()
		if !ok {
			return errors.New("script: there is no way to the coin")
		}
		if err := p.client.Move(direction); err != nil {
			return err
		}
		from, by := p.seen.players[p.seen.me].At, directions[direction]
		to := arena.Cell{X: from.X + by.X, Y: from.Y + by.Y}
		for answered := false; !answered; {
			m, err := p.next(ctx)
			if err != nil {
				return err
			}
			switch own := who(m) == p.seen.me; {
			case own && m.Kind == arena.Moved && m.Coin != nil:
				return nil
			case own && m.Kind == arena.Moved, !own && m.Player != nil && m.Player.At == to: // or another player was faster
				answered = true
			}
		}
	}
}

func (p *scripted) wait(ctx context.Context, kind arena.Kind, name string) error {
	for {
		m, err := p.next(ctx)
		if err != nil {
			return fmt.Errorf("wait for %q %q: %w", kind, name, err)
		}
		if m.Kind == kind && (name == "" || name == who(m)) {
			return nil
		}
	}
}

// next prints the next event and returns it.
func (p *scripted) next(ctx context.Context) (arena.Message, error) {
	select {
	case m, ok := <-p.client.Events():
		if !ok {
			return m, errors.New("the server has closed the connection")
		}
		fmt.Fprintln(p.out, describe(m))
		p.seen.see(m)
		return m, nil
	case <-ctx.Done():
		return arena.Message{}, context.Cause(ctx)
	}
}

func who(m arena.Message) string {
	if m.Player != nil {
		return m.Player.Name
	}
	return m.Name
}

func describe(m arena.Message) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s", m.Kind, who(m)))
	switch {
	case m.Kind == arena.Welcome:
		text += fmt.Sprintf(" %dx%d players=%d", m.Width, m.Height, len(m.Players))
		for _, p := range m.Players {
			if p.Name == m.Name && p.Coins > 0 {
				text += fmt.Sprintf(" coins=%d", p.Coins) // of an earlier visit
			}
		}
	case m.Kind == arena.Round:
		text += fmt.Sprintf(" round=%d", m.Round)
	case m.Player != nil:
		text += fmt.Sprintf(" at=%d,%d coins=%d wins=%d", m.Player.At.X, m.Player.At.Y, m.Player.Coins, m.Player.Wins)
	case m.Text != "":
		text += ": " + m.Text
	}
	return text
}
