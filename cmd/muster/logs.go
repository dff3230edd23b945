package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/terminal"
)

type logsCommand struct {
	serviceFlags
	Follow bool `short:"f" help:"Follow the output until the process ends."`
	Tail   *int `placeholder:"LINES" help:"Start with this many lines of earlier output. Default: the last 64 KiB."`
	Raw    bool `help:"Print control characters, too. They can control the terminal."`

	ID string `arg:"" name:"process" help:"FLEET/COMPUTE/PROCESS, a process id, or the ARN of a game session."`
}

func (c *logsCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Tail != nil {
		if *c.Tail < 1 {
			return fmt.Errorf("--tail %d: want a number of lines, 1 or more", *c.Tail)
		}
		query.Set("tail", strconv.Itoa(*c.Tail))
	}
	if c.Follow {
		query.Set("follow", "true")
	}
	path := operator.LogsPrefix + pathOf(c.ID)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := service.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		return errors.Join(err, service.refusal(text))
	}
	if note := answer.Header.Get(operator.LogsNote); note != "" {
		fmt.Fprintln(os.Stderr, "muster:", printable(note))
	}
	to := stdout
	if !c.Raw {
		to = &cleaner{to: stdout}
	}
	_, err = io.Copy(to, answer.Body)
	if c.Follow && ctx.Err() != nil { // Ctrl-C is the way to stop following
		return nil
	}
	if err != nil {
		return fmt.Errorf("output of the process breaks off: %w", err)
	}
	if why := answer.Trailer.Get(operator.LogsError); why != "" {
		return fmt.Errorf("output of the process breaks off: %s", printable(why))
	}
	return nil
}

// cleaner replaces control characters, including those that change the text direction, so that output of a process cannot control the terminal. It keeps line feeds
// and tabs and removes carriage returns.
type cleaner struct {
	to   io.Writer
	part []byte // the first bytes of an incomplete character
}

// Write implements io.Writer.
func (c *cleaner) Write(b []byte) (int, error) {
	text := append(c.part, b...)
	c.part = nil
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				c.part = append([]byte(nil), last...)
				text = text[:len(text)-n]
			}
			break
		}
	}
	clean := strings.Map(func(r rune) rune {
		if r == '\r' {
			return -1
		}
		if terminal.Steers(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, string(text))
	if _, err := io.WriteString(c.to, clean); err != nil {
		return 0, err
	}
	return len(b), nil
}
