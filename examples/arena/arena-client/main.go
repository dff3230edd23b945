// Command arena-client plays the arena game in a terminal.
//
//	arena-client -address 127.0.0.1:7777 -player-session psess-… -name Ann
//
// Type w, a, s or d (and Enter) to walk, q to leave, anything else to talk. With -script it plays by itself and
// prints what happens, one event a line:
//
//	arena-client … -script "east; south; say hello; wait joined Bob; leave"
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/musterhq/muster/examples/arena"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "arena-client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("arena-client", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("address", "127.0.0.1:7777", "`host:port` of the game server")
	session := flags.String("player-session", "", "`id` from create-player-session, psess-…")
	name := flags.String("name", "Player", "`name` that the others see")
	script := flags.String("script", "", "`steps` to play by itself: north, south, west, east, say TEXT, wait KIND [NAME], leave; separated by semicolons")
	timeout := flags.Duration("timeout", time.Minute, "how long a script may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *script != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *timeout)
		defer cancel()
	}
	client, err := arena.Dial(ctx, *address, *session, *name)
	if err != nil {
		return err
	}
	defer client.Leave()
	if *script != "" {
		return play(ctx, client, *script, stdout)
	}
	return interactive(ctx, client, stdin, stdout)
}

// play runs a script. Every event is printed as "kind name details".
func play(ctx context.Context, c *arena.Client, script string, out io.Writer) error {
	fmt.Fprintln(out, describe(c.Welcome))
	for step := range strings.SplitSeq(script, ";") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		var err error
		switch verb {
		case "":
		case "north", "south", "west", "east":
			err = c.Move(arena.Direction(verb))
		case "say":
			err = c.Say(rest)
		case "wait":
			kind, name, _ := strings.Cut(rest, " ")
			err = wait(ctx, c, arena.Kind(kind), name, out)
		case "leave":
			return nil
		default:
			err = fmt.Errorf("script: step %q: want north, south, west, east, say, wait or leave", step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, c *arena.Client, kind arena.Kind, name string, out io.Writer) error {
	for {
		select {
		case m, ok := <-c.Events():
			if !ok {
				return fmt.Errorf("the server closed the connection before %q %q came", kind, name)
			}
			fmt.Fprintln(out, describe(m))
			if m.Kind == kind && (name == "" || name == who(m)) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for %q %q: %w", kind, name, ctx.Err())
		}
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
	case m.Player != nil:
		text += fmt.Sprintf(" at=%d,%d coins=%d", m.Player.At.X, m.Player.At.Y, m.Player.Coins)
	case m.Text != "":
		text += ": " + m.Text
	}
	return text
}

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
				return errors.New("the server closed the connection")
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
	switch line {
	case "w":
		return c.Move(arena.North)
	case "a":
		return c.Move(arena.West)
	case "s":
		return c.Move(arena.South)
	case "d":
		return c.Move(arena.East)
	case "":
		return nil
	}
	return c.Say(line)
}
