package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/musterhq/muster/internal/operator"
)

// Run shows the overview in the terminal until a key or ctx ends it. environ is that of the process: it has the kind of terminal, and NO_COLOR.
func Run(ctx context.Context, s Service, every time.Duration, in io.Reader, out io.Writer, environ []string) error {
	_, err := tea.NewProgram(newModel(ctx, s, every), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(environ), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // a signal ended it normally
	}
	return err
}

// onceWidth is how wide the overview is drawn where no terminal says it.
const onceWidth = 160

// Once writes the overview as plain text, for programs and files.
func Once(ctx context.Context, s Service, out io.Writer) error {
	x, err := load(ctx, s, operator.Named{})
	if err != nil {
		return err
	}
	for _, l := range x.lines(onceWidth) {
		if _, err := fmt.Fprintln(out, l.text); err != nil {
			return err
		}
	}
	return nil
}
