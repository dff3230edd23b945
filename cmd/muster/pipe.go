package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// pipe as a file name means standard output.
const pipe = "-"

// isPipe reports whether a file can be read only once, such as a named pipe or a process substitution of a shell.
func isPipe(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// refuseTerminal fails if stdout is a terminal, which binary data would garble.
func refuseTerminal(stdout io.Writer) error {
	if f, ok := stdout.(*os.File); ok && term.IsTerminal(f.Fd()) {
		return errors.New("standard output is a terminal: redirect it to a file or a program")
	}
	return nil
}

// printJSON writes x as indented JSON.
func printJSON(to io.Writer, x any) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(x)
}
