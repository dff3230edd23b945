package bench

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/serverlink"
)

// Bare is a service without a core: it has the same port, codecs, signature check, constraints and WebSockets, and gives made-up answers.
// The difference from the real service is the cost of the core.
type Bare struct {
	port *listen.Server
}

// OpenBare binds the address. It uses the access keys of the data directory.
func OpenBare(addr, data string, log *slog.Logger) (*Bare, error) {
	keys, err := storedKeys(context.Background(), data)
	if err != nil {
		return nil, err
	}
	api := gamelift.NewHandler(nil, gamelift.Config{Keys: keys, Log: log})
	gamelift.Replace(api, "CreatePlayerSession", createPlayerSession)
	links := serverlink.Echo()
	port, err := listen.Open(listen.Config{Addr: addr, Log: log, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case serverlink.IsUpgrade(r):
			links.ServeHTTP(w, r)
		case r.Method == http.MethodPost:
			api.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusOK) // ready
		}
	})})
	return &Bare{port}, err
}

// Addr returns the bound address.
func (x *Bare) Addr() string { return x.port.Addr().String() }

// Serve answers until ctx ends.
func (x *Bare) Serve(ctx context.Context) error {
	end := context.AfterFunc(ctx, func() { _ = x.port.Stop(context.WithoutCancel(ctx)) })
	defer end()
	return x.port.Serve()
}

// createPlayerSession answers as the service would: with a new id and all members that a real one has.
func createPlayerSession(_ context.Context, in *sdk.CreatePlayerSessionInput) (*sdk.CreatePlayerSessionOutput, error) {
	id, created, port := "psess-"+uuid.NewString(), time.Now(), int32(10_000)
	fleet, arn, address := "fleet-00000000-0000-0000-0000-000000000000", "arn:aws:gamelift:"+region+":"+identity.DefaultAccount+
		":fleet/fleet-00000000-0000-0000-0000-000000000000", "127.0.0.1"
	return &sdk.CreatePlayerSessionOutput{PlayerSession: &types.PlayerSession{
		PlayerSessionId: &id, PlayerId: in.PlayerId, GameSessionId: in.GameSessionId, FleetId: &fleet, FleetArn: &arn,
		CreationTime: &created, Status: types.PlayerSessionStatusReserved, IpAddress: &address, Port: &port,
	}}, nil
}
