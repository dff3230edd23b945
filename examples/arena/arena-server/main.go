// Command arena-server is the dedicated server of the arena game: one game session, then it exits.
//
//	arena-server -authtoken=TOKEN -hostid=DesktopPC -fleetid=FLEET -websocketurl=ws://127.0.0.1:8080 -port 7777
//
// The session's properties choose the level: size ("16x8"), goal, the number of coins that win a round ("5"), and the
// number of rounds ("3").
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/musterhq/muster/examples/arena/arenaserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := arenaserver.Run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "arena-server:", err)
		os.Exit(1)
	}
}
