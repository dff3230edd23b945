package gameclient

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// Connector is the game's own network layer, as far as this package needs it.
type Connector interface {
	// Connect connects to a game server and shows it the player session id of the seat. It returns nil when the server
	// has let the player in, and an error when it has not or ctx has ended; nothing of the attempt is left open then.
	Connect(ctx context.Context, seat Seat) error

	// Disconnect closes the connection. A connection that is gone already is no error.
	Disconnect(ctx context.Context) error
}

// Options are what a game may set about its Client. The zero value is ready to use.
type Options struct {
	// API changes the SDK client below, such as its endpoint or its retries, as with gamelift.NewFromConfig.
	API []func(*gamelift.Options)

	// PollInterval is the longest pause between two looks of a wait: for a placement to end, a game session to become ACTIVE. The first
	// pauses are shorter, from 20 ms on, each twice as long as the one before. Default 1 s.
	PollInterval time.Duration

	Logger *slog.Logger // of what nobody else can be told, such as a callback that panicked; default slog.Default()
}

// Client is a player's way to game sessions. Its methods may be called from any goroutine.
//
// A Client is connected to one game session at most: it is the player's end of the game. A program that plays for many
// players has a Client for each.
type Client struct {
	api       *gamelift.Client
	connector Connector
	options   Options
	noRelease atomic.Bool // the service has said that it cannot give seats back

	mu   sync.Mutex
	part part
	seat Seat // while joining or joined
}

// part is how far a player is.
type part uint8

const (
	out part = iota
	joining
	joined
	leaving
)

// New makes a Client, without any network traffic. Region, endpoint and credentials come with the configuration, by the
// AWS SDK's conventions; config.LoadDefaultConfig reads them from the environment and the profile files. The connector
// may be nil for a program that connects nobody, such as a backend: then only the calls that would connect fail.
func New(cfg aws.Config, connector Connector, optFns ...func(*Options)) *Client {
	var o Options
	for _, set := range optFns {
		set(&o)
	}
	o.PollInterval = cmp.Or(max(o.PollInterval, 0), time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Client{api: gamelift.NewFromConfig(cfg, o.API...), connector: connector, options: o}
}

// firstPause is much shorter than the default PollInterval: a placement with a free game server is over in a moment.
const firstPause = 20 * time.Millisecond

// looks are the pauses between the looks of one wait.
type looks struct{ next, longest time.Duration }

func (c *Client) looks() *looks {
	return &looks{min(firstPause, c.options.PollInterval), c.options.PollInterval}
}

// pause waits for the next look, or for the end of ctx.
func (l *looks) pause(ctx context.Context) error {
	timer := time.NewTimer(l.next)
	defer timer.Stop()
	l.next = min(2*l.next, l.longest)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
