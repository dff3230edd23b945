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

// Connector is the part of the game's own network layer that a Client uses.
type Connector interface {
	// Connect connects to a game server and sends it the player session id of the seat. It returns nil when the server
	// has admitted the player. Otherwise, or when ctx ends, it closes what it has opened and returns an error.
	Connect(ctx context.Context, seat Seat) error

	// Disconnect closes the connection. It is not an error if the connection is already closed.
	Disconnect(ctx context.Context) error
}

// Options configure a Client. The zero value is ready to use.
type Options struct {
	// API configures the AWS SDK's client, such as its endpoint or its retries, as with gamelift.NewFromConfig.
	API []func(*gamelift.Options)

	// PollInterval is the longest pause between two polls, while a call waits for a placement to end or a game session to become ACTIVE.
	// The first pause is 20 ms, and each next one is twice as long. Default 1 s, also for values of 0 and less.
	PollInterval time.Duration

	// Logger receives errors that no call can return, such as a callback that panicked. Default slog.Default().
	Logger *slog.Logger
}

// Client creates, finds and joins game sessions. Its methods may be called from any goroutine.
//
// A Client is connected to one game session at most. A program that plays for several players needs a Client for each.
type Client struct {
	api       *gamelift.Client
	connector Connector
	options   Options
	noRelease atomic.Bool // the service has reported that it cannot free seats

	mu   sync.Mutex
	part part
	seat Seat // while joining or joined
}

// part is the state of a Client's only connection.
type part uint8

const (
	out part = iota
	joining
	joined
	leaving
)

// New makes a Client, without any network traffic. Region, endpoint and credentials come from the configuration;
// config.LoadDefaultConfig of the AWS SDK reads them from the environment and the profile files. The connector
// may be nil for a program that does not connect players, such as a backend. Calls that would connect then fail with ErrNoConnector.
func New(cfg aws.Config, connector Connector, optFns ...func(*Options)) *Client {
	var o Options
	for _, set := range optFns {
		set(&o)
	}
	o.PollInterval = cmp.Or(max(o.PollInterval, 0), time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Client{api: gamelift.NewFromConfig(cfg, o.API...), connector: connector, options: o}
}

// firstPause is much shorter than the default PollInterval, because a placement with a free game server ends within milliseconds.
const firstPause = 20 * time.Millisecond

// polls are the pauses between the polls of one wait.
type polls struct{ next, longest time.Duration }

func (c *Client) polls() *polls {
	return &polls{min(firstPause, c.options.PollInterval), c.options.PollInterval}
}

// pause waits for the next poll, or for the end of ctx.
func (l *polls) pause(ctx context.Context) error {
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
