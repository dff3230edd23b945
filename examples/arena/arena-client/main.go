// Command arena-client plays the arena game in a terminal.
//
//	arena-client -fleet FLEET -location custom-home -name Ann       join a game session with room, or create one
//	arena-client -queue QUEUE -name Ann                             create one wherever the queue finds room
//	arena-client -friend Ann -name Bob                              join the one where Ann plays
//	arena-client -address 127.0.0.1:7777 -player-session psess-… -name Ann    with a seat that another program reserved
//	arena-client -flow URL -name Ann -match casual -party 2         log in, lead a party, search when two are in it
//	arena-client -flow URL -name Bob -code CODE                     log in, join that party, play where it plays
//	arena-client -flow URL -name Bob                                log in and return to the game, after a crash
//
// The last three need a service with player flow and nothing else. The first three ask the service, whose endpoint, region
// and credentials are those of the AWS SDK: AWS_REGION, AWS_ENDPOINT_URL_GAMELIFT, AWS_ACCESS_KEY_ID and so on, or a profile.
//
// Type w, a, s or d (and Enter) to walk, dddd for four steps, q to leave, anything else to talk. With -script it plays by
// itself and prints what happens, one event a line:
//
//	arena-client … -script "east; south; say hello; wait joined Bob; coin; return; leave"
//
// where coin walks to the coin, and return leaves and joins the same game session again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/musterhq/muster/examples/arena/arenaclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := arenaclient.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "arena-client:", err)
		os.Exit(1)
	}
}
