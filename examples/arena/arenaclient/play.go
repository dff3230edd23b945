// Package arenaclient is the program arena-client: a player of the arena game in a terminal.
package arenaclient

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/examples/arena"
)

// Run runs arena-client with the given arguments until ctx ends.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("arena-client", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("address", "127.0.0.1:7777", "`host:port` of the game server")
	session := flags.String("player-session", "", "`id` from create-player-session, psess-…")
	var o online
	o.addFlags(flags)
	f := flow{out: stdout}
	f.addFlags(flags)
	name := flags.String("name", "Player", "`name` that the others see")
	script := flags.String("script", "", "`steps` to play by itself: north, south, west, east, coin, say TEXT, wait KIND [NAME], return, leave; separated by semicolons")
	timeout := flags.Duration("timeout", time.Minute, "how long a script may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *script != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *timeout)
		defer cancel()
	}
	if f.wanted() {
		f.name = *name
		return playFlow(ctx, &f, *script, stdin)
	}
	if !o.wanted() {
		client, err := arena.Dial(ctx, *address, *session, *name)
		if err != nil {
			return err
		}
		defer client.Leave()
		return show(ctx, &scripted{client: client, out: stdout}, *script, stdin)
	}
	o.name = *name
	if err := o.open(ctx); err != nil {
		return err
	}
	client, err := o.join(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = o.leave(context.WithoutCancel(ctx)) }() // the server notices either way
	fmt.Fprintln(stdout, "in", o.session)
	return show(ctx, &scripted{client: client, out: stdout, online: &o}, *script, stdin)
}

// playFlow plays as a player who logs in. A player who quits leaves the game for good; after a failure, the player may return.
func playFlow(ctx context.Context, f *flow, script string, stdin io.Reader) error {
	client, err := f.join(ctx)
	if f.player != nil {
		defer f.player.Close()
	}
	if err != nil {
		return err
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go f.watch(ctx, lost)
	err = show(ctx, &scripted{client: client, out: f.out}, script, stdin)
	if errors.Is(err, errServerGone) {
		err = fmt.Errorf("%w; with -flow and -name alone you come back, while the game is on", err)
	}
	if left := client.Leave(); err != nil || left != nil {
		return err // the server has closed the connection, or the game is over
	}
	return f.leave(ctx)
}

// show plays with a script or with the keyboard.
func show(ctx context.Context, p *scripted, script string, stdin io.Reader) error {
	if script != "" {
		return p.play(ctx, script)
	}
	return interactive(ctx, p.client, stdin, p.out)
}

var errServerGone = errors.New("the server closed the connection")

func interactive(ctx context.Context, c *arena.Client, stdin io.Reader, out io.Writer) error {
	typed := make(chan string)
	go func() {
		defer close(typed)
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			typed <- lines.Text()
		}
	}()
	screen := newScreen(c.Welcome)
	screen.draw(out)
	for {
		select {
		case m, ok := <-c.Events():
			if !ok {
				return errServerGone
			}
			screen.see(m)
			screen.draw(out)
			if m.Kind == arena.Over {
				return nil
			}
		case line, ok := <-typed:
			if !ok || line == "q" {
				return nil
			}
			if err := act(c, line); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func act(c *arena.Client, line string) error {
	if line == "" {
		return nil
	}
	direction, steps := walk(line)
	if steps == 0 {
		return c.Say(line)
	}
	for range steps {
		if err := c.Move(direction); err != nil {
			return err
		}
	}
	return nil
}

// walk parses a line that repeats one of the four letters: each letter is one step. For anything else, which is chat, it returns 0 steps.
func walk(line string) (direction arena.Direction, steps int) {
	direction, ok := map[byte]arena.Direction{'w': arena.North, 'a': arena.West, 's': arena.South, 'd': arena.East}[line[0]]
	if !ok || strings.Trim(line, line[:1]) != "" {
		return direction, 0
	}
	return direction, len(line)
}
