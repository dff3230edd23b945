// Package service assembles a complete Muster: the store, the engine, the doors and the shared port. The binary runs it, and tests run
// the same service in their own process.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agentlink"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/audit/export"
	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/console"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/acmecert"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/objects"
	"github.com/musterhq/muster/internal/office"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/playerapi"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerwatch"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/s3"
	"github.com/musterhq/muster/internal/secretkey"
	"github.com/musterhq/muster/internal/secretrotation"
	"github.com/musterhq/muster/internal/series"
	"github.com/musterhq/muster/internal/serverlink"
	"github.com/musterhq/muster/internal/sessionapi"
	"github.com/musterhq/muster/internal/sessionlogs"
	"github.com/musterhq/muster/internal/sessionwatch"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/support"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/tracing/otlp"
	"github.com/musterhq/muster/internal/webidentity"
)

const (
	// drain is how long requests in progress may take when the service stops.
	drain = 5 * time.Second

	// drainNext is how long a node of a cluster, before it stops, waits for the next requests on open connections. Busy clients and load balancers send
	// one within that time.
	drainNext = 2 * time.Second
)

// Service is a running Muster.
type Service struct {
	settings settings.Settings // of the start; reload.current has those in force
	reload   reload
	quotas   *quotas.Desk // in force, and who has what
	log      *slog.Logger
	panics   *panics.Guard

	data      *datadir.Dir   // nil at a cluster node
	node      *node.Node     // nil without a cluster
	key       *secretkey.Key // encrypts the secrets in the data directory and in backups; nil: they are not encrypted
	secret    identity.CellSecret
	archive   *archivepebble.Archive
	version   string                        // of the release
	saving    atomic.Pointer[runningBackup] // nil: none
	bundling  sync.Mutex                    // held while a support bundle is made
	recent    *support.Ring                 // the end of the log; nil: it is not kept
	operators *operator.Door
	keys      *keyring.Ring
	secrets   *secretrotation.Rotator
	local     *localdoor.Door
	engine    *engine.Engine
	audit     *audit.Log
	link      *serverlink.Server
	agents    *agentlink.Server
	scripts   *sessionapi.Door
	console   *console.Door
	people    *people.Door
	notify    office.Slot[*notify.Sender]
	matches   *matchmaker.Runner
	players   *playerapi.Door    // nil without player flow
	watch     *playerwatch.Watch // nil without player flow
	events    *sessionwatch.Watch
	games     *gamemetrics.Recorder
	uses      hostUses
	kept      *series.Store // nil: no metrics are kept
	metrics   *metrics.Door
	otlp      live.Value[*otlp.Exporter]    // nil: no telemetry is exported
	otlpTurn  sync.Mutex                    // held while otlp is replaced
	otlpEnded bool                          // guarded by otlpTurn; the service stops
	instance  string                        // names this process to collectors
	exports   office.Slot[*export.Exporter] // of the audit log; empty without receivers
	tracing   *tracing.Tracer
	signins   *signin.Watch
	hooks     *playerhooks.Hooks // nil without any
	once      office.Parts       // runs only while this node is the leader
	limits    *connlimit.Limiter // of all ports
	room      *room
	acme      *acmecert.Certificates // nil without an authority
	port      *listen.Server
	api       *gamelift.Handler

	requireTLS  live.Value[bool]
	pair        live.Value[*listen.FileCertificate] // nil: the certificate is not in files
	authorities live.Value[*listen.FileAuthorities] // of client certificates; nil: there are none
	machines    live.Value[*webidentity.Issuers]    // nil: there are none
	backends    live.Value[*clientcert.Authorities] // likewise
	parts       *objects.Store                      // of builds; nil without one
	sessionLogs *sessionlogs.Store                  // nil: none are kept
	descriptors int                                 // for connections of clients

	beside []*listen.Server // for trusted servers and for operators of player flow
	served chan error

	exporting sync.Mutex // held while an export of what has ended is made

	clock *engine.Clock // nil on real time
	links serverlink.LinkClock

	playersOIDC playersOIDC // one reload at a time replaces it

	stopLinks   context.CancelFunc
	stopWarning context.CancelFunc // nil without player flow
	warning     sync.WaitGroup
	questions   http.ServeMux      // of other nodes
	bucket      *s3.Client         // for builds and logs; nil: the data directory has them
	running     context.Context    // ends when the service stops
	builds      *builddoor.Door    // nil without a store for builds
	stopBuilds  context.CancelFunc // nil without a store for builds
	building    sync.WaitGroup
	sweeping    sync.WaitGroup // sweeping of old logs
	publicURL   string
	proxies     *clientaddress.Proxies
	transport   edge.Transport
}

// Start opens the data directory, loads the state and serves the port. If it fails, it closes everything that it has opened.
func Start(ctx context.Context, s settings.Settings, log *slog.Logger) (*Service, error) {
	return StartWith(ctx, NewOptions(s, log, nil))
}

// NewOptions returns the options of a start with these settings.
func NewOptions(s settings.Settings, log *slog.Logger, acceptLoss []datadir.Part) Options {
	o := Options{Settings: s, Log: log, AcceptLoss: acceptLoss}
	if s.VirtualClock {
		o.Clock = engine.NewClock(time.Now())
	}
	return o
}

// Options are the settings, and dependencies that tests replace.
type Options struct {
	Settings settings.Settings
	Log      *slog.Logger
	Clock    *engine.Clock       // nil: real time
	Version  string              // of the release; empty: built from source
	Getenv   func(string) string // returns the environment variables of OpenTelemetry; nil: none is set
	SourceOf func(string) string // returns where the value of a setting comes from; nil: not known

	// Load reads the settings again in the same way as for the start; nil: they cannot be read again. Its error lists all mistakes.
	Load   func() (settings.Loaded, error)
	Level  *slog.LevelVar // of Log; nil: it stays as it is
	JSON   *atomic.Bool   // whether Log writes JSON; nil: its format stays as it is
	Recent *support.Ring  // has the end of Log; nil: it is not kept

	// LogTrouble returns how many lines of Log were lost, and why it cannot be written now; nil: not known.
	LogTrouble func() (lost uint64, why error)

	Unkept bool // count and keep no metrics, and record no audit log; to measure the cost of both

	Fill func(load func() error) error // wraps the loading of the snapshot; nil: it is called directly

	AcceptLoss []datadir.Part // parts of the data directory whose loss the operator accepts
}

// StartWith is Start with Options.
func StartWith(ctx context.Context, o Options) (*Service, error) {
	x, err := begin(o)
	if err != nil {
		return nil, err
	}
	for _, step := range x.steps() {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, x.close(context.WithoutCancel(ctx)))
		}
	}
	return x.Service, nil
}

// Addr returns the bound address.
func (x *Service) Addr() net.Addr { return x.port.Addr() }

// PublicURL returns the URL to which game servers connect.
func (x *Service) PublicURL() string { return x.publicURL }

// Err returns nil while the service works, and the reason of its failure afterwards.
func (x *Service) Err() error {
	if err := x.engine.Err(); err != nil {
		return err
	}
	if err := x.nodeErr(); err != nil {
		return err
	}
	return x.room.Short()
}

// Engine returns the engine, for tests in the same process that check state that no door shows.
func (x *Service) Engine() *engine.Engine { return x.engine }

// Keys returns the access keys.
func (x *Service) Keys() *keyring.Ring { return x.keys }

// Now returns the time by which deadlines are measured.
func (x *Service) Now() time.Time { return x.engine.Now() }

// Advance moves the clock of deadlines forward by d, and returns when all changes that are due are decided, durable and delivered.
func (x *Service) Advance(ctx context.Context, d time.Duration) error {
	return x.engine.Advance(ctx, d)
}

// AdvanceLinks simulates that time passes for the connections of game servers.
func (x *Service) AdvanceLinks(ctx context.Context, d time.Duration) error {
	return x.link.AdvanceLinks(ctx, d)
}

// Served returns a channel that receives one value when the port is no longer served: nil after Stop.
func (x *Service) Served() <-chan error { return x.served }

// Stop stops the service in order: the port closes, requests in progress finish, the connections of game servers are cut without a
// close frame, and decided changes become durable.
func (x *Service) Stop(ctx context.Context) error {
	x.drainPorts(ctx)
	return x.close(ctx)
}
