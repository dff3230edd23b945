// Command oidcprovider is a third-party identity provider, zitadel/oidc with its example users, for the tests of people who sign in. Its own module keeps
// its dependencies out of the service's.
package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oidcprovider:", err)
		os.Exit(1)
	}
}

// run serves one client until the process is ended. Its user is test-user2, with the password verysecure.
func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: oidcprovider HOST:PORT CLIENT SECRET REDIRECT_URI")
	}
	issuer := "http://" + args[0] + "/"
	storage.RegisterClients(storage.WebClient(args[1], args[2], args[3]))
	router := exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), slog.New(slog.DiscardHandler), false)
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("issuer", issuer)
	return http.Serve(l, router)
}
