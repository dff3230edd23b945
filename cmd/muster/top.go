//go:build !quick

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/top"
)

type topCommand struct {
	serviceFlags
	Every time.Duration `placeholder:"TIME" default:"2s" help:"Refresh interval, at least 500ms."`
	Once  bool          `instead:"every" help:"Print the overview as plain text and exit. Needs no terminal."`
}

// topEveryLeast limits the load from terminals that were left open.
const topEveryLeast = 500 * time.Millisecond

func (c *topCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if c.Every < topEveryLeast {
		return fmt.Errorf("--every %s: want at least %s", c.Every, topEveryLeast)
	}
	terminal, isFile := stdout.(*os.File)
	if !c.Once && (!isFile || !term.IsTerminal(terminal.Fd()) || !term.IsTerminal(os.Stdin.Fd())) {
		return errors.New("muster top needs a terminal for its input and its output: muster top --once prints the overview without one")
	}
	remote, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	service := &topService{remote}
	if c.Once {
		return top.Once(ctx, service, stdout)
	}
	if _, err := service.Overview(ctx); err != nil { // report a wrong address or key before taking over the screen
		return err
	}
	return top.Run(ctx, service, c.Every, os.Stdin, terminal, os.Environ())
}

// topService asks the operators' door for the pages of muster top.
type topService struct{ remoteService }

// look requests a path of the operators' door and decodes the answer. Slashes separate the parts of an id.
func look[T any](ctx context.Context, s *topService, path, id string) (*T, error) {
	var x T
	if id != "" {
		path += "/" + pathOf(id)
	}
	return &x, s.call(ctx, http.MethodGet, path, nil, &x)
}

func (s *topService) Overview(ctx context.Context) (*operator.Overview, error) {
	return look[operator.Overview](ctx, s, operator.OverviewPath, "")
}

func (s *topService) Fleet(ctx context.Context, id string) (*operator.FleetPage, error) {
	return look[operator.FleetPage](ctx, s, operator.OverviewPath+"/fleets", id)
}

func (s *topService) GameSession(ctx context.Context, id string) (*operator.GamePage, error) {
	return look[operator.GamePage](ctx, s, operator.OverviewPath+"/game-sessions", id)
}

func (s *topService) Queue(ctx context.Context, name string) (*operator.QueuePage, error) {
	return look[operator.QueuePage](ctx, s, operator.OverviewPath+"/queues", name)
}

func (s *topService) Player(ctx context.Context, id string) (*operator.PlayerPage, error) {
	return look[operator.PlayerPage](ctx, s, operator.OverviewPath+"/players", id)
}

func (s *topService) Find(ctx context.Context, id string) (*operator.Named, error) {
	return look[operator.Named](ctx, s, operator.FindPath, id)
}

func (s *topService) Explain(ctx context.Context, kind, id string) (string, error) {
	x, err := look[operator.Explanation](ctx, s, "explain/"+kind, id)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = printExplanation(&text, x)
	return text.String(), err
}
