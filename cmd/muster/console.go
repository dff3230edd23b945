package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/operator"
)

type consoleCommand struct {
	serviceFlags
	Open bool `help:"Open the link in a browser, too."`
}

func (c *consoleCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	service, err := c.reach(ctx, env, identity.MayLook)
	if err != nil {
		return err
	}
	var link operator.ConsoleLink
	if err := service.call(ctx, http.MethodPost, operator.ConsoleLinksPath, struct{}{}, &link); err != nil {
		return err
	}
	address := strings.TrimSuffix(service.endpoint, "/") + link.Path
	if _, err := fmt.Fprintln(stdout, address); err != nil {
		return err
	}
	if !link.Expires.IsZero() {
		if _, err := fmt.Fprintf(stdout, "It signs one browser in as access key %s, until %s. After that, run the command again.\n", printable(link.Key), link.Expires.Local().Format(time.TimeOnly)); err != nil {
			return err
		}
	}
	if !c.Open {
		return nil
	}
	return openPage(ctx, address, browserCommand)
}

// openPage makes a program open an address. The program gets the name of a file that redirects there: other users of the machine can see its arguments, and
// the address may be a secret. The next call replaces the file.
func openPage(ctx context.Context, address string, program func(file string) []string) error {
	dir, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("open a browser: %w; open the link above", err)
	}
	file := filepath.Join(dir, "muster", "console.html")
	to := html.EscapeString(address)
	page := `<!doctype html><meta charset="utf-8"><title>Muster</title><meta http-equiv="refresh" content="0;url=` + to + `"><a href="` + to + `">The console</a>` + "\n"
	if err := errors.Join(atomicfile.MakeDir(filepath.Dir(file), 0o700), atomicfile.Write(file, []byte(page), 0o600)); err != nil {
		return fmt.Errorf("open a browser: %w; open the link above", err)
	}
	args := program(file)
	if err := exec.CommandContext(ctx, args[0], args[1:]...).Run(); err != nil { // #nosec G204 -- a constant, and a file of ours
		return fmt.Errorf("open a browser: %s: %w; open the link above", args[0], err)
	}
	return nil
}

// browserCommand returns the command that opens a file with the user's preferred program.
func browserCommand(file string) []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open", file}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", file}
	}
	return []string{"xdg-open", file}
}
