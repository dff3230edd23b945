package service

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/cloudwatch"
	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/console"
	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/connectiontoken"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/scaler"
	"github.com/musterhq/muster/internal/serverlink"
	"github.com/musterhq/muster/internal/sessionapi"
	"github.com/musterhq/muster/internal/sessionwatch"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/signin"
)

// opening is a service that is starting, with the results of earlier steps for later ones.
type opening struct {
	*Service
	options   Options
	core      cell.Config
	doors     *router
	calls     *callstats.Calls
	actions   *gamelift.Service               // carries out the requests of the API
	logUpload func(gameSession string) string // nil: no logs are kept
	troubles  *attention.Finder
}

// begin checks the settings and makes the parts that need no others.
func begin(o Options) (*opening, error) {
	s := o.Settings
	if err := s.Check(); err != nil {
		return nil, err
	}
	core := s.Cell()
	if err := s.ReadPlayerFlow(core.PlayerFlow.Flow); err != nil {
		return nil, err
	}
	x := &Service{
		settings: s, log: o.Log, panics: panics.New(o.Log), clock: o.Clock, version: o.Version, served: make(chan error, 1),
		proxies: clientaddress.NewProxies(s.Proxies()...), recent: o.Recent,
	}
	x.openReload(o)
	x.transport = edge.Transport{Proxies: x.proxies, BehindTLS: s.BehindTLS()}
	x.signins = signin.New(signin.Config{CountOnly: s.Dev, Log: x.log, Failed: func(door, address, key, reason string) { x.audit.SignInFailed(door, address, key, reason) }})
	return &opening{Service: x, options: o, core: core, doors: &router{}, calls: callstats.New()}, nil
}

// steps returns the steps of a start in their order. Each may use the results of earlier ones.
func (x *opening) steps() []func(context.Context) error {
	return []func(context.Context) error{
		x.directory, x.connections,
		// The port is bound before the state is loaded: a game server that reconnects meanwhile waits a moment instead of
		// being refused until its next attempt many seconds later.
		x.bind, x.openTelemetry, x.state, x.principals,
		x.gameServers, x.requests, x.measures, x.credentials, x.storage, x.hosts,
		x.operations, x.notices, x.sessionScripts, x.flow, x.uploads, x.upkeep, x.serve,
	}
}

// directory opens the data directory exclusively.
func (x *opening) directory(ctx context.Context) (err error) {
	s := x.settings
	if err := atomicfile.MakeDir(s.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := x.checkPermissions(); err != nil {
		return err
	}
	x.descriptors = connlimit.Descriptors()
	if s.ClusterListen != "" {
		from := x.options.SourceOf
		err = x.openNode(ctx, x.options.AcceptLoss, from != nil && from("join") != "default")
		x.descriptors -= nodeConnections(x.descriptors)
	} else {
		err = x.openData(ctx, x.options.AcceptLoss)
	}
	return dataError(err, s.Data)
}

// connections limits client connections to the descriptors that are left for them.
func (x *opening) connections(context.Context) error {
	limits, err := connlimit.Derive(x.descriptors, x.settings.Connections())
	if err != nil {
		return err
	}
	x.limits = connlimit.New(connlimit.Config{Limits: limits, Exempt: x.settings.SharedAddresses(), Log: x.log})
	x.log.Info("limits of connections derived from the descriptor limit", "descriptors", x.descriptors, "connections", limits.Total, "unproven", limits.Unproven, "per_address", limits.PerAddress)
	return nil
}

// bind binds the port, which serves nothing yet.
func (x *opening) bind(context.Context) (err error) {
	if x.port, err = x.openPort(x.doors); err != nil {
		return err
	}
	x.publicURL = publicURL(x.settings, x.port.Addr())
	x.warnOfListening()
	return nil
}

// state loads the state.
func (x *opening) state(ctx context.Context) (err error) {
	s := x.settings
	x.core.PlayerFlow.Tokens = connectiontoken.Hasher(x.secret)
	if x.quotas, err = quotas.New(s.Quotas, x.log); err != nil {
		return err
	}
	x.core.Quotas = x.quotas.Live()
	config := engine.Config{
		Archive: x.archive, Cell: x.core, Log: x.log, Clock: x.clock,
		SnapshotEvery: int64(s.SnapshotEvery), EndedLinger: s.EndedLinger, Short: x.room.Short, Tracing: x.tracing, Unrecorded: x.options.Unkept, Quotas: x.quotas, Fill: x.options.Fill,
	}
	if x.node != nil {
		return x.openReplica(ctx, config)
	}
	return x.openEngine(ctx, config, x.options.AcceptLoss)
}

// principals opens the access keys, the people, and the audit log of their changes.
func (x *opening) principals(ctx context.Context) error {
	if err := x.openKeys(ctx); err != nil {
		return err
	}
	if err := x.noteLoss(x.options.AcceptLoss); err != nil {
		return err
	}
	if !x.options.Unkept {
		x.audit = audit.NewLog(x.engine, x.settings.Data, x.engine.Now, x.log)
	}
	return x.openPeople()
}

// gameServers opens the door of game servers, and the log of the events of their processes and game sessions.
func (x *opening) gameServers(ctx context.Context) error {
	s := x.settings
	x.running, x.stopLinks = context.WithCancel(context.WithoutCancel(ctx))
	x.link = serverlink.New(x.running, serverlink.Config{
		Engine: x.engine, Secret: x.secret, Keys: x.keys, AnyKey: s.Dev, Endpoint: s.PublicURL, Links: &x.links,
		ClockSkew: s.ServerClockSkew, Proxies: x.proxies, Signins: x.signins.Door("game_servers"), Panics: x.panics, Calls: x.calls, Log: x.log,
		Node: x.incarnation(), Tracing: x.tracing,
	})
	x.doors.link = x.link
	x.events = sessionwatch.Start(sessionwatch.Config{Engine: x.engine, Log: x.log, Each: s.LogEvents})
	x.once = append(x.once, x.events)
	return nil
}

// requests opens the API of GameLift, and the matchmakers.
func (x *opening) requests(context.Context) (err error) {
	s := x.settings
	if x.actions, err = gamelift.NewService(x.engine, x.secret, x.publicURL); err != nil {
		return err
	}
	x.actions.Log = x.log
	rates, err := apiLimits(s)
	if err != nil {
		return err
	}
	x.api = gamelift.NewHandler(x.actions, gamelift.Config{
		Keys: x.keys, Dev: s.Dev, Audit: x.audit, Panics: x.panics, Calls: x.calls, Log: x.log, Private: x.private, Limits: rates, Proxies: x.proxies,
		Signins: x.signins.Door("api"), OperatorSignins: x.signins.Door("operator"), Tracing: x.tracing,
	})
	x.doors.api = x.api
	x.matches = matchmaker.New(matchmaker.Config{Engine: x.engine, Log: x.log, PassEvery: s.MatchEvery, Virtual: x.clock != nil})
	x.engine.Attend(x.matches)
	x.once = append(x.once, x.matches)
	return nil
}

// measures opens the metrics and the export of the audit log.
func (x *opening) measures(ctx context.Context) error {
	x.metrics = metrics.NewDoor(metrics.Config{Keys: x.keys, Dev: x.settings.Dev, Private: x.private, Matchmakers: x.matches.Status, Log: x.log,
		Proxies: x.proxies, Signins: x.signins.Door("metrics")})
	x.doors.metrics = x.metrics
	x.metrics.Register(x.api, x.keys, x.secrets, x.panics.Collector(), x.limits, x.signins, metrics.Records(x.engine), metrics.Places(x.engine), x.engine, x.calls, x.events)
	x.metrics.Register(metrics.Quotas(x.engine, x.quotas), x.quotas.Refused())
	x.metrics.Register(metrics.Program(x.version, x.Err)...)
	if !x.options.Unkept {
		if err := x.openGameMetrics(); err != nil {
			return err
		}
	}
	if err := x.openAuditExport(ctx); err != nil {
		return err
	}
	x.doors.graphs = cloudwatch.NewDoor(cloudwatch.Config{Store: x.kept, Signed: x.api.Signed, Now: x.engine.Now, Calls: x.calls, Log: x.log})
	return nil
}

// credentials opens the doors that give machines temporary credentials in exchange for their own.
func (x *opening) credentials(context.Context) error {
	door, err := x.newSTS(x.calls)
	if err != nil {
		return err
	}
	x.doors.sts, x.doors.exchange = door, http.HandlerFunc(door.CreateSession)
	return nil
}

// storage opens the store for the logs of game sessions.
func (x *opening) storage(context.Context) error {
	if err := x.openBucket(); err != nil {
		return err
	}
	logs, err := x.openSessionLogs()
	if err != nil || logs == nil {
		return err
	}
	x.actions.Logs, x.doors.logs, x.logUpload = logs, logs, logs.UploadURL
	return nil
}

// hosts opens the door of agents.
func (x *opening) hosts(context.Context) error {
	x.agents = agentlink.New(x.running, agentlink.Config{
		Policies: x.keys, Holder: x.holderName,
		Engine: x.engine, Secret: x.secret, SDKEndpoint: socketURL(x.publicURL), Endpoint: socketURL(x.publicURL) + "/agent",
		Proxies: x.proxies, Signins: x.signins.Door("host_agents"), Panics: x.panics, Calls: x.calls, Log: x.log, Node: x.incarnation(),
		LogUpload: x.logUpload, BuildURL: x.buildURL,
	})
	x.actions.Agents = x.agents
	x.doors.agents, x.doors.joins = x.agents, http.HandlerFunc(x.agents.ServeJoin)
	x.gatherUses(x.running)
	x.metrics.Register(x.outputReaders())
	return nil
}

// operations opens the operators' door and the console.
func (x *opening) operations(context.Context) error {
	x.troubles = attention.New(attention.Config{
		Engine: x.engine, Reports: x.agents.Reports, Oldest: x.matches.Oldest, AskLeader: x.askLeaderForAttention(), Damage: x.archive.Damage, LogTrouble: x.options.LogTrouble, Exports: x.lateExports, Quotas: x.quotas, Log: x.log,
		BackupAgeMax: func() time.Duration { return x.reload.current.Get().ExpectedBackups() }, Secrets: x.secrets.List, Cluster: x.status(),
	})
	x.operators = operator.NewDoor(operator.Config{
		People: x.people, Engine: x.engine, Authenticate: x.api.Authenticate,
		Keys: x.keys, Secrets: x.secrets, Private: x.private, Searches: x.matches, Attention: x.troubles, AskLeader: x.askLeader(),
		Output: x.output, Nodes: x.otherNodes(), Reports: x.agents.Reports, Audit: x.audit, Tracing: x.tracing, Calls: x.calls, Cluster: x.clusterMembers(), Log: x.log, RolesOf: rolesOf,
		Reload: x.Reload, SupportBundle: x.supportBundle, ConsoleLink: func(ctx context.Context, key string) (string, time.Time, error) { return x.console.Link(ctx, key) },
	})
	x.doors.operator = x.operators
	browsers := console.Config{
		Engine: x.engine, Secret: x.secret, Keys: x.keys, Dev: x.settings.Dev, Private: x.private, Secure: x.transport.Secure, Proxies: x.proxies, Signins: x.signins.Door("console"),
		Keyring: x.keys, RolesOf: rolesOf, Settings: x.shownSettings, Explain: x.operators.Explain, Feed: x.operators.Feed, Output: x.operators.WriteOutput, API: x.api, Audit: x.audit,
		Attention: x.troubles, Series: x.kept, People: x.people, Version: x.version, Log: x.log,
	}
	if x.node != nil {
		browsers.Cluster = x.node
	}
	x.console = console.NewDoor(browsers)
	x.doors.console, x.doors.people, x.doors.sso = x.console, x.people, x.newSSO(x.calls)
	return nil
}

// notices starts to send notices and to scale fleets.
func (x *opening) notices(context.Context) error {
	x.notify.Set(x.newSender(x.settings))
	x.doors.notify = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.notify.Get().ServeHTTP(w, r) })
	x.once = append(x.once, &x.notify, scaler.New(x.engine, x.log))
	return nil
}

// sessionScripts opens the door of session nodes.
func (x *opening) sessionScripts(context.Context) error {
	x.scripts = sessionapi.NewDoor(sessionapi.Config{
		Engine: x.engine, Keys: x.keys, Dev: x.settings.Dev, Working: x.settings.LimitWorkingRequests, Panics: x.panics, Calls: x.calls, Log: x.log,
		Proxies: x.proxies, Signins: x.signins.Door("scripts"), Rate: x.api.AllowClient,
		Private: x.private, Registered: x.registered(), Tracing: x.tracing,
	})
	x.metrics.Register(x.scripts)
	x.doors.scripts = x.scripts
	return nil
}

func (x *opening) flow(context.Context) error { return x.openPlayerFlow(x.doors, x.calls) }

func (x *opening) uploads(context.Context) error { return x.openBuilds(x.doors, x.actions) }

// upkeep adds what all doors share, once all of them exist.
func (x *opening) upkeep(context.Context) error {
	x.dropWhenGivenUp()
	x.doors.confine(x.panics)
	if x.settings.VirtualClock {
		x.doors.clock = devclock.NewDoor(x.Service, x.log)
	}
	x.doors.health, x.doors.ready, x.doors.looks, x.doors.damage = x.Err, x.Ready, x.metrics.Allows, x.archive.Damage
	x.metrics.Register(gauge("muster_archive_damaged_places", "Places of the archive that could not be read since the start; see muster archive check.",
		func() float64 { return float64(len(x.archive.Damage())) }))
	if trouble := x.options.LogTrouble; trouble != nil {
		x.metrics.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "muster_log_lost_lines_total", Help: "Log lines lost since the start of the service because the output did not accept them.",
		}, func() float64 {
			lost, _ := trouble()
			return float64(lost)
		}))
	}
	x.metrics.Register(lastBackup{x.engine})
	if x.node != nil {
		x.metrics.Register(x.node)
	}
	x.beginTelemetry()
	return x.openLocalDoor()
}

// serve opens the doors.
func (x *opening) serve(context.Context) error {
	x.answerNodes(x.doors)
	if x.node != nil {
		x.node.Run(x.once, map[byte]exchange.Handler{exchange.Explain: x.operators.AnswerLeader, exchange.Attention: x.troubles.Answer, exchange.Cause: x.tracing.AnswerCause})
	} else {
		x.once.Lead()
	}
	go func() { x.served <- x.port.Serve() }()
	if x.acme != nil {
		x.acme.Start()
	}
	return nil
}

// apiLimits returns the limits of the API.
func apiLimits(s settings.Settings) (gamelift.Limits, error) {
	l, err := gamelift.LimitsNamed(s.Limits)
	l.Working = s.LimitWorkingRequests
	l.Clients = gamelift.ClientRates{PerKey: s.ClientKeyRate, PerAddress: s.ClientAddressRate}
	return l, err
}

// newSender returns the sender of notices to the receivers in the settings.
func (x *Service) newSender(s settings.Settings) *notify.Sender {
	return notify.New(notify.Config{
		Counts: x.ruleCounts, Panics: x.panics, Tracing: x.tracing,
		Engine: x.engine, Bus: s.NotifyEvents, Topics: s.Topics(), Log: x.log, ConfirmAt: confirmURL(x.publicURL),
		Keys: x.secret.WebhookKeys, Token: x.secret.SubscriptionToken, Confirms: x.secret.ConfirmsSubscription,
		Proxies: x.proxies, Signins: x.signins.Door("webhook_confirmations"),
	})
}
