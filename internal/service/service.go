// Package service wires a complete Muster: the store, the engine, the doors and the port in front of them. The binary
// runs it, and tests run the same service in their own process.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/agentlink"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/audit/export"
	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/cloudwatch"
	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/console"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/acmecert"
	"github.com/musterhq/muster/internal/listen/devca"
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
	"github.com/musterhq/muster/internal/playerapi/connectiontoken"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerwatch"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/s3"
	"github.com/musterhq/muster/internal/scaler"
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

// drain is how long running requests may take when the service stops.
const drain = 5 * time.Second

// Service is a running Muster.
type Service struct {
	settings settings.Settings // of the start; those that a reload changes are in reload.current
	reload   reload
	quotas   *quotas.Desk // in force, and who has what
	log      *slog.Logger
	panics   *panics.Guard

	data      *datadir.Dir   // nil at a node of a cluster
	node      *node.Node     // nil without a cluster
	key       *secretkey.Key // encrypts the secrets in the data directory and in backups; nil: none does
	secret    identity.CellSecret
	archive   *archivepebble.Archive
	version   string        // of the release
	saving    sync.Mutex    // held while a backup is made
	bundling  sync.Mutex    // held while a support bundle is made
	recent    *support.Ring // the end of the log; nil: it is not kept
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
	instance  string                        // names this process to collectors
	exports   office.Slot[*export.Exporter] // of the audit log; empty without receivers
	tracing   *tracing.Tracer
	signins   *signin.Watch
	hooks     *playerhooks.Hooks // nil without any
	once      office.Parts       // what runs only while this node decides
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

	stopLinks   context.CancelFunc
	stopWarning context.CancelFunc // nil without a repeated warning
	warning     sync.WaitGroup
	questions   http.ServeMux      // of other nodes
	bucket      *s3.Client         // for builds and logs; nil: the data directory has them
	running     context.Context    // ends when the service stops
	builds      *builddoor.Door    // nil without a store for builds
	stopBuilds  context.CancelFunc // nil without a store for builds
	building    sync.WaitGroup
	linksEnd    <-chan struct{} // closed when the service stops
	sweeping    sync.WaitGroup  // of old logs
	publicURL   string
	proxies     *clientaddress.Proxies
	transport   edge.Transport
}

// Start opens the data directory, loads the state and serves the port. After an error it closes everything that it opened.
func Start(ctx context.Context, s settings.Settings, log *slog.Logger) (*Service, error) {
	return StartWith(ctx, NewOptions(s, log, nil))
}

// NewOptions are the options of a start with these settings.
func NewOptions(s settings.Settings, log *slog.Logger, acceptLoss []datadir.Part) Options {
	o := Options{Settings: s, Log: log, AcceptLoss: acceptLoss}
	if s.VirtualClock {
		o.Clock = engine.NewClock(time.Now())
	}
	return o
}

// Options are the settings, and further parts that tests replace.
type Options struct {
	Settings settings.Settings
	Log      *slog.Logger
	Clock    *engine.Clock       // nil: real time
	Version  string              // of the release; empty: built from source
	Getenv   func(string) string // has the variables of OpenTelemetry; nil: none is set
	SourceOf func(string) string // says where the value of a setting comes from; nil: not known

	// Load reads the settings again, as they were read for the start; nil: they cannot be read again. An error says all that is wrong.
	Load   func() (settings.Loaded, error)
	Level  *slog.LevelVar // of Log; nil: it stays as it is
	JSON   *atomic.Bool   // whether Log writes JSON; nil: its format stays as it is
	Recent *support.Ring  // has the end of Log; nil: it is not kept

	Unkept bool // count and keep no metrics, and record no audit log; for measurements of what both cost

	Fill func(load func() error) error // runs the load of the snapshot; nil: nothing is different meanwhile

	AcceptLoss []datadir.Part // parts of the data directory whose loss the operator accepts
}

// StartWith is Start with Options.
func StartWith(ctx context.Context, o Options) (_ *Service, err error) {
	s, log := o.Settings, o.Log
	if err := s.Check(); err != nil {
		return nil, err
	}
	core := s.Cell()
	if err := s.ReadPlayerFlow(core.PlayerFlow.Flow); err != nil {
		return nil, err
	}
	x := &Service{
		settings: s, log: log, panics: panics.New(log), clock: o.Clock, version: o.Version, served: make(chan error, 1),
		proxies: clientaddress.NewProxies(s.Proxies()...),
	}
	x.openReload(o)
	x.recent = o.Recent
	x.transport = edge.Transport{Proxies: x.proxies, BehindTLS: s.BehindTLS()}
	x.signins = signin.New(signin.Config{CountOnly: s.Dev, Log: log, Failed: func(door, address, key, reason string) { x.audit.SignInFailed(door, address, key, reason) }})
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := atomicfile.MakeDir(s.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := x.checkPermissions(); err != nil {
		return nil, err
	}
	descriptors := connlimit.Descriptors()
	if s.ClusterListen != "" {
		err = x.openNode(ctx, descriptors, o.AcceptLoss, o.Version)
		descriptors -= nodeConnections(descriptors)
	} else {
		err = x.openData(ctx, connlimit.ReserveOf(descriptors), o.AcceptLoss)
	}
	if err != nil {
		return nil, dataError(err, s.Data)
	}
	x.descriptors = descriptors
	limits, err := connlimit.Derive(descriptors, s.Connections())
	if err != nil {
		return nil, err
	}
	x.limits = connlimit.New(connlimit.Config{Limits: limits, Exempt: s.SharedAddresses(), Log: log})
	log.Info("limits of connections derived from the descriptor limit", "descriptors", descriptors, "connections", limits.Total, "unproven", limits.Unproven, "per_address", limits.PerAddress)
	secret := x.secret
	// The port is bound before the state is loaded: a game server that reconnects meanwhile waits a moment instead of
	// being refused until its next attempt many seconds later.
	doors := &router{}
	if x.port, err = x.openPort(doors); err != nil {
		return nil, err
	}
	x.publicURL = publicURL(s, x.port.Addr())
	x.warnOfListening()
	if err := x.openTelemetry(ctx, o.Getenv); err != nil {
		return nil, err
	}
	core.PlayerFlow.Tokens = connectiontoken.Hasher(secret)
	if x.quotas, err = quotas.New(s.Quotas, log); err != nil {
		return nil, err
	}
	core.Quotas = x.quotas.Live()
	config := engine.Config{
		Archive: x.archive, Cell: core, Log: log, Clock: x.clock,
		SnapshotEvery: int64(s.SnapshotEvery), EndedLinger: s.EndedLinger, Short: x.room.Short, Tracing: x.tracing, Unrecorded: o.Unkept, Quotas: x.quotas, Fill: o.Fill,
	}
	if x.node != nil {
		err = x.openReplica(ctx, config)
	} else {
		err = x.openEngine(ctx, config, o.AcceptLoss)
	}
	if err != nil {
		return nil, err
	}
	if err := x.openKeys(ctx, secret); err != nil {
		return nil, err
	}
	if err := x.noteLoss(o.AcceptLoss); err != nil {
		return nil, err
	}
	if !o.Unkept {
		x.audit = audit.NewLog(x.engine, s.Data, x.engine.Now, log)
	}
	keys := x.keys
	api, err := gamelift.NewService(x.engine, secret, x.publicURL)
	if err != nil {
		return nil, err
	}
	if err := x.openPeople(); err != nil {
		return nil, err
	}
	calls := callstats.New()
	links, stopLinks := context.WithCancel(context.WithoutCancel(ctx))
	x.stopLinks, x.linksEnd = stopLinks, links.Done()
	x.link = serverlink.New(links, serverlink.Config{
		Engine: x.engine, Secret: secret, Keys: keys, AnyKey: s.Dev, Endpoint: s.PublicURL, Links: &x.links,
		ClockSkew: s.ServerClockSkew, Proxies: x.proxies, Signins: x.signins.Door("game_servers"), Panics: x.panics, Calls: calls, Log: log,
		Node: x.incarnation(), Tracing: x.tracing,
	})
	x.events = sessionwatch.Start(sessionwatch.Config{Engine: x.engine, Log: log, Each: s.LogEvents})
	x.once = append(x.once, x.events)
	api.Log = log
	rates, err := apiLimits(s)
	if err != nil {
		return nil, err
	}
	handler := gamelift.NewHandler(api, gamelift.Config{
		Keys: keys, Dev: s.Dev, Audit: x.audit, Panics: x.panics, Calls: calls, Log: log, Private: x.private, Limits: rates, Proxies: x.proxies,
		Signins: x.signins.Door("api"), OperatorSignins: x.signins.Door("operator"), Tracing: x.tracing,
	})
	doors.api, x.api = handler, handler
	x.matches = matchmaker.New(matchmaker.Config{Engine: x.engine, Log: log, PassEvery: s.MatchEvery, Virtual: x.clock != nil})
	x.engine.Attend(x.matches)
	x.once = append(x.once, x.matches)
	x.metrics = metrics.NewDoor(metrics.Config{Keys: keys, Dev: s.Dev, Private: x.private, Matchmakers: x.matches.Status, Log: log,
		Proxies: x.proxies, Signins: x.signins.Door("metrics")})
	x.metrics.Register(handler, keys, x.secrets, x.panics.Collector(), x.limits, x.signins, metrics.Records(x.engine), metrics.Places(x.engine), x.engine, calls, x.events)
	x.metrics.Register(metrics.Quotas(x.engine, x.quotas), x.quotas.Refused())
	x.metrics.Register(metrics.Program(o.Version, x.Err)...)
	if !o.Unkept {
		if err := x.openGameMetrics(); err != nil {
			return nil, err
		}
	}
	if err := x.openAuditExport(ctx, o.Getenv); err != nil {
		return nil, err
	}
	doors.graphs = cloudwatch.NewDoor(cloudwatch.Config{Store: x.kept, Signed: handler.Signed, Now: x.engine.Now, Calls: calls, Log: log})
	credentials, err := x.newSTS(handler, calls)
	if err != nil {
		return nil, err
	}
	doors.sts, doors.exchange = credentials, http.HandlerFunc(credentials.CreateSession)
	if err := x.openBucket(links); err != nil {
		return nil, err
	}
	logs, err := x.openSessionLogs()
	if err != nil {
		return nil, err
	}
	var logUpload func(string) string
	if logs != nil {
		api.Logs, doors.logs, logUpload = logs, logs, logs.UploadURL
	}
	x.agents = agentlink.New(links, agentlink.Config{
		Policies: x.keys, Holder: x.holderName,
		Engine: x.engine, Secret: secret, SDKEndpoint: socketURL(x.publicURL), Endpoint: socketURL(x.publicURL) + "/agent",
		Proxies: x.proxies, Signins: x.signins.Door("host_agents"), Panics: x.panics, Calls: calls, Log: log, Node: x.incarnation(),
		LogUpload: logUpload, BuildURL: x.buildURL,
	})
	api.Agents = x.agents
	x.gatherUses(links)
	x.metrics.Register(x.outputReaders())
	doors.metrics = x.metrics
	troubles := attention.New(attention.Config{Engine: x.engine, Reports: x.agents.Reports, Oldest: x.matches.Oldest, AskLeader: x.askLeaderForAttention(), Damage: x.archive.Damage, Exports: x.lateExports, Quotas: x.quotas, Log: log,
		BackupAgeMax: func() time.Duration { return x.reload.current.Get().ExpectedBackups() }, Secrets: x.secrets.List, Differing: x.differing()})
	operators := operator.NewDoor(operator.Config{People: x.people, Engine: x.engine, Authenticate: handler.Authenticate,
		Keys: keys, Secrets: x.secrets, Private: x.private, Searches: x.matches, Attention: troubles, AskLeader: x.askLeader(),
		Output: x.output, Nodes: x.otherNodes(), Reports: x.agents.Reports, Audit: x.audit, Tracing: x.tracing, Calls: calls, Cluster: x.clusterMembers(), Log: log, RolesOf: rolesOf,
		Reload: x.Reload, SupportBundle: x.supportBundle, ConsoleLink: func(ctx context.Context, key string) (string, time.Time, error) { return x.console.Link(ctx, key) }})
	doors.operator, x.operators = operators, operators
	browsers := console.Config{
		Engine: x.engine, Secret: secret, Keys: keys, Dev: s.Dev, Private: x.private, Secure: x.transport.Secure, Proxies: x.proxies, Signins: x.signins.Door("console"),
		Keyring: keys, RolesOf: rolesOf, Settings: x.shownSettings, Explain: operators.Explain, Feed: operators.Feed, Output: operators.WriteOutput, API: handler, Audit: x.audit, Attention: troubles, Series: x.kept, Version: x.version, Log: log,
	}
	if x.node != nil {
		browsers.Cluster = x.node
	}
	browsers.People = x.people
	x.console = console.NewDoor(browsers)
	doors.console, doors.people, doors.sso = x.console, x.people, x.newSSO(calls)
	x.notify.Set(x.newSender(s))
	doors.notify = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.notify.Get().ServeHTTP(w, r) })
	x.once = append(x.once, &x.notify, scaler.New(x.engine, log))
	x.scripts = sessionapi.NewDoor(sessionapi.Config{
		Engine: x.engine, Keys: keys, Dev: s.Dev, Working: s.LimitWorkingRequests, Panics: x.panics, Calls: calls, Log: log,
		Proxies: x.proxies, Signins: x.signins.Door("scripts"), Rate: handler.AllowClient,
		Private: x.private, Registered: x.registered(), Tracing: x.tracing,
	})
	x.metrics.Register(x.scripts)
	doors.scripts = x.scripts
	if err := x.openPlayerFlow(doors, calls); err != nil {
		return nil, err
	}
	if err := x.openBuilds(doors, api); err != nil {
		return nil, err
	}
	x.dropWhenGivenUp()
	doors.link, doors.agents, doors.joins = x.link, x.agents, http.HandlerFunc(x.agents.ServeJoin)
	doors.confine(x.panics)
	if s.VirtualClock {
		doors.clock = devclock.NewDoor(x, log)
	}
	doors.health, doors.ready, doors.looks, doors.damage = x.Err, x.Ready, x.metrics.Allows, x.archive.Damage
	x.metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_archive_damaged_places", Help: "Places of the archive that could not be read since the start; see muster archive check.",
	}, func() float64 { return float64(len(x.archive.Damage())) }))
	x.metrics.Register(lastBackup{x.engine})
	if x.node != nil {
		x.metrics.Register(x.node)
	}
	x.beginTelemetry()
	if err := x.openLocalDoor(); err != nil {
		return nil, err
	}
	x.answerNodes(doors)
	if x.node != nil {
		x.node.Run(x.once, map[byte]exchange.Handler{exchange.Explain: operators.AnswerLeader, exchange.Attention: troubles.Answer, exchange.Cause: x.tracing.AnswerCause})
	} else {
		x.once.Lead()
	}
	go func() { x.served <- x.port.Serve() }()
	if x.acme != nil {
		x.acme.Start()
	}
	return x, nil
}

// apiLimits are the limits of the API.
func apiLimits(s settings.Settings) (gamelift.Limits, error) {
	l, err := gamelift.LimitsNamed(s.Limits)
	l.Working = s.LimitWorkingRequests
	l.Clients = gamelift.ClientRates{PerKey: s.ClientKeyRate, PerAddress: s.ClientAddressRate}
	return l, err
}

// newSender makes what sends notices to the receivers in the settings.
func (x *Service) newSender(s settings.Settings) *notify.Sender {
	return notify.New(notify.Config{
		Counts: x.ruleCounts, Panics: x.panics, Tracing: x.tracing,
		Engine: x.engine, Bus: s.NotifyEvents, Topics: s.Topics(), Log: x.log, ConfirmAt: confirmURL(x.publicURL),
		Keys: x.secret.WebhookKeys, Token: x.secret.SubscriptionToken, Confirms: x.secret.ConfirmsSubscription,
		Proxies: x.proxies, Signins: x.signins.Door("webhook_confirmations"),
	})
}

// socketURL returns the WebSocket form of a URL.
func socketURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "http"); ok {
		return "ws" + rest
	}
	return url
}

// openPort binds the port with the certificate that the settings name, or, for development, one of our own.
func (x *Service) openPort(doors *router) (*listen.Server, error) {
	config := listen.Config{Addr: x.settings.Listen, Handler: x.guarded(doors, doors.refuse), Limits: x.limits, Panics: x.panics, Log: x.log, ReleaseBuffers: x.settings.TLSReleaseBuffers}
	if err := x.openACME(); err != nil {
		return nil, err
	}
	certificate, err := x.certificate()
	if err != nil {
		return nil, err
	}
	config.Certificate, config.Challenges = certificate, x.acme != nil
	port, err := listen.Open(config)
	if err != nil {
		return nil, portError(err, "--listen")
	}
	return port, nil
}

// wsaInUse is the Windows error of an address that another program uses.
const wsaInUse = syscall.Errno(10048)

// portError adds to the error of a port what to do about it, and which flag names another one.
func portError(err error, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaInUse):
		return fmt.Errorf("%w: another program, or another Muster, uses this port; choose a free one with %s HOST:PORT", err, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have the address; name one of its own with %s HOST:PORT, or :PORT for all", err, flag)
	case isBind(err) && errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: this user may not bind the port; give the program the right (AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd unit, or setcap cap_net_bind_service=+ep FILE), "+
			"or choose a port from 1024 on with %s HOST:PORT", err, flag)
	}
	return err
}

// isBind tells the error of a port from that of a file.
func isBind(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

// openACME prepares for a certificate from an authority, if the settings name one.
func (x *Service) openACME() (err error) {
	s := x.settings
	if s.TLSACMEEmail == "" {
		return nil
	}
	x.acme, err = acmecert.Open(acmecert.Config{
		Host: s.PublicHost(), Email: s.TLSACMEEmail, Directory: s.TLSACMEDirectory, Dir: filepath.Join(s.Data, "acme"), Log: x.log,
	})
	return err
}

func (x *Service) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	s := x.settings
	switch {
	case s.TLSCert != "":
		if x.pair.Get() == nil {
			files, err := listen.LoadFiles(s.TLSCert, s.TLSKey, x.log)
			if err != nil {
				return nil, err
			}
			x.pair.Set(files)
		}
		return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return x.pair.Get().Certificate(hello) }, nil
	case s.TLSACMEEmail != "":
		return x.acme.Certificate, nil
	case s.Dev:
		var hosts []string
		if u, err := url.Parse(s.PublicURL); err == nil {
			hosts = append(hosts, u.Hostname())
		}
		authority, err := devca.Open(s.Data, hosts...)
		if err != nil {
			return nil, err
		}
		return authority.Certificate, nil
	}
	return nil, nil
}

// publicURL is the URL to which game servers connect.
func publicURL(s settings.Settings, bound net.Addr) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	host, port, _ := net.SplitHostPort(bound.String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	scheme := "ws"
	if s.HasCertificate() {
		scheme = "wss"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// confirmURL is the URL at which receivers of notifications confirm their subscriptions: the public URL with http or https.
func confirmURL(publicURL string) string {
	return webURL(strings.TrimRight(publicURL, "/") + notify.ConfirmPath)
}

// webURL returns the form of a URL with http or https.
func webURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "ws"); ok { // ws, wss
		return "http" + rest
	}
	return url
}

// Addr is the bound address.
func (x *Service) Addr() net.Addr { return x.port.Addr() }

// PublicURL is the URL to which game servers connect.
func (x *Service) PublicURL() string { return x.publicURL }

// Err is nil while the service works, and after that the reason of its failure.
func (x *Service) Err() error {
	if err := x.engine.Err(); err != nil {
		return err
	}
	if err := x.nodeErr(); err != nil {
		return err
	}
	return x.room.Short()
}

// Engine is for tests in the same process that check state that no door shows.
func (x *Service) Engine() *engine.Engine { return x.engine }

// Keys are the access keys.
func (x *Service) Keys() *keyring.Ring { return x.keys }

// Now is the time of deadlines.
func (x *Service) Now() time.Time { return x.engine.Now() }

// Advance moves the clock of deadlines, and returns when all due changes are decided, durable and delivered.
func (x *Service) Advance(ctx context.Context, d time.Duration) error {
	return x.engine.Advance(ctx, d)
}

// AdvanceLinks lets time pass for the connections of game servers.
func (x *Service) AdvanceLinks(ctx context.Context, d time.Duration) error {
	return x.link.AdvanceLinks(ctx, d)
}

// Served receives once, when the port is no longer served: nil after Stop.
func (x *Service) Served() <-chan error { return x.served }

// Stop ends the service in order: the port closes, running requests finish, game servers lose their
// connections without a close frame, and decided changes become durable.
func (x *Service) Stop(ctx context.Context) error { return x.close(ctx) }

func (x *Service) close(ctx context.Context) error {
	var errs []error
	if x.room != nil { // a write that waits for room holds up the requests and the parts that wait for it
		waiting := time.AfterFunc(drain, x.stopWaiting)
		defer waiting.Stop()
	}
	if x.stopLinks != nil {
		x.stopLinks()
	}
	if x.acme != nil {
		x.acme.Close()
	}
	if x.local != nil {
		errs = append(errs, x.local.Close(ctx))
	}
	if x.node != nil {
		x.node.StepDown(ctx)
	}
	if x.stopWarning != nil {
		x.stopWarning()
		x.warning.Wait()
	}
	if x.scripts != nil {
		x.scripts.Close() // event streams would keep the port from closing
	}
	if x.console != nil {
		x.console.Close() // as would these
	}
	if x.people != nil {
		x.people.Close()
	}
	if x.players != nil {
		x.players.Close()
		x.hooks.Close()
	}
	for _, port := range append(x.beside, x.port) {
		if port == nil {
			continue
		}
		draining, cancel := context.WithTimeout(ctx, drain)
		errs = append(errs, port.Stop(draining))
		cancel()
	}
	if x.link != nil {
		x.link.Close()
	}
	if x.agents != nil {
		x.agents.Close()
	}
	x.closeBuilds()
	x.sweeping.Wait()
	x.once.Rest()
	if x.watch != nil {
		x.watch.Close()
	}
	if x.events != nil {
		x.events.Close()
	}
	if x.games != nil {
		x.games.Close()
	}
	if x.kept != nil {
		errs = append(errs, x.kept.Close())
	}
	if x.room != nil {
		x.room.stopWaiting()
	}
	x.audit.Close()
	if x.secrets != nil {
		x.secrets.Close()
	}
	if x.keys != nil {
		x.keys.Close()
	}
	if x.node != nil {
		x.node.Leave(ctx)
	}
	if x.engine != nil {
		errs = append(errs, x.engine.Close())
	}
	x.otlp.Get().Close(ctx)
	if x.room != nil {
		x.room.close()
	}
	if x.node != nil {
		errs = append(errs, x.node.Close(ctx))
	}
	if x.data != nil {
		errs = append(errs, x.data.Close())
	}
	return errors.Join(errs...)
}
