package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// healthCommand is for containers and scripts on the service's machine.
type healthCommand struct {
	Listen  string        `name:"listen" placeholder:"HOST:PORT" default:"${listen}" help:"Address of the service's one port, as in its settings."`
	Ready   bool          `help:"Check whether clients should use this service (/readyz), instead of whether it works (/healthz)."`
	Timeout time.Duration `default:"5s" help:"Maximum wait for the answer."`
}

// Run asks the service on this machine.
func (c *healthCommand) Run(ctx context.Context, stdout io.Writer) error {
	address, err := apiEndpoint(c.Listen, "")
	if err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: want more than 0s", c.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	// The port also answers such requests without TLS.
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // ignores a proxy in the environment
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no service answers at %s: %w", address, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return err
	}
	said := strings.TrimSpace(string(text))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", address, answer.Status, said)
	}
	_, err = fmt.Fprintln(stdout, said)
	return err
}
