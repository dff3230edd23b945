// Package settings has every setting of a Muster service: its name, meaning, default, and checks. The commands
// read the values from flags, the environment and the settings file.
package settings

import (
	"time"

	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/sigv4"
)

// Settings of one service. Each field is a flag, a variable and a key of the settings file by the same name:
// PublicURL is --public-url, MUSTER_PUBLIC_URL and "public-url". `muster reload` applies new values of fields with reload:"yes"; see
// internal/service/reloadables.go. Support bundles contain the values of texts with bundle:"yes"; see bundle.go.
type Settings struct {
	Data               string `name:"data" nodes:"own" bundle:"yes" placeholder:"DIR" help:"Directory for all of Muster's data. One process at a time uses it."`
	SecretKeyFile      string `name:"secret-key-file" nodes:"own" placeholder:"FILE" help:"Key of muster secret-key create, kept outside the data directory, that encrypts the secrets in it and in backups: a file, env:NAME for an environment variable, or command:PROGRAM ARGUMENT… for a program that prints it. Empty: they are not encrypted."`
	Listen             string `name:"listen" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Address of the one port, for clients and game servers."`
	PublicURL          string `name:"public-url" nodes:"own" bundle:"yes" placeholder:"URL" help:"URL under which game servers reach this service, if it differs from --listen: behind a proxy, in a container."`
	Dev                bool   `name:"dev" help:"For trying Muster: accepts any credentials, and TLS with a certificate from its own authority. Loopback addresses only."`
	VirtualClock       bool   `name:"virtual-clock" nodes:"own" help:"With --dev: the clock stands still until a test advances it through /dev/clock. This applies to deadlines; connections and signatures stay on real time."`
	People             string `name:"people" reload:"yes" bundle:"yes" placeholder:"FILE" help:"JSON file with the identity providers for people, and the roles that groups give; see the guide. Empty: only Muster's own people."`
	WebIdentities      string `name:"web-identities" reload:"yes" bundle:"yes" placeholder:"FILE" help:"JSON file with the issuers whose tokens machines exchange for temporary credentials, such as Kubernetes and CI systems, and the roles that they get; see the guide. Empty: none."`
	ClientCertificates string `name:"client-certificates" reload:"yes" bundle:"yes" placeholder:"FILE" help:"JSON file with the authorities whose client certificates backends exchange for temporary credentials, and the roles that they get; see the guide. Empty: none."`
	TLSCert            string `name:"tls-cert" nodes:"own" reload:"yes" bundle:"yes" placeholder:"FILE" help:"Certificate chain in PEM; read again after changes."`
	TLSKey             string `name:"tls-key" nodes:"own" reload:"yes" bundle:"yes" placeholder:"FILE" help:"Key of the certificate in PEM."`

	TLSACMEEmail     string `name:"tls-acme-email" nodes:"own" placeholder:"ADDRESS" help:"Get the certificate of the public URL's host from an ACME authority (Let's Encrypt), whose terms you accept, and renew it. The authority sends mail to this address, and connects to port 443 of the host."`
	TLSACMEDirectory string `name:"tls-acme-directory" nodes:"own" bundle:"yes" placeholder:"URL" help:"Directory of another ACME authority."`

	TLSReleaseBuffers bool `name:"tls-release-buffers" nodes:"own" help:"Save 5.5 KiB for each idle WebSocket over TLS. This reaches into private fields of Go's crypto/tls, by their names and types."`

	ClusterListen    string `name:"cluster-listen" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Run as a node of a cluster that other nodes reach at this address: an empty data directory starts a cluster, or joins one with --join; that of a single machine becomes a cluster of one. Empty: a single machine."`
	ClusterAdvertise string `name:"cluster-advertise" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Address by which other nodes reach this one, if it differs from --cluster-listen."`
	Join             string `name:"join" nodes:"own" placeholder:"TOKEN" help:"Join a cluster with the token from muster cluster join-token. It has no effect on a node that has joined."`
	Observer         bool   `name:"observer" nodes:"own" help:"Join without a vote: the node takes connections, but does not count towards a majority."`

	RequireTLS string `name:"require-tls" nodes:"own" reload:"yes" bundle:"yes" placeholder:"on|off|auto" help:"Refuse requests from other machines that did not use TLS, to this service or to a trusted proxy: on, off, or auto, which is on with a certificate or an https public URL."`

	LogLevel     string `name:"log-level" nodes:"own" reload:"yes" bundle:"yes" placeholder:"debug|info|warn|error" help:"Least severe level that is logged."`
	LogFormat    string `name:"log-format" nodes:"own" reload:"yes" bundle:"yes" placeholder:"text|json" help:"Format of log lines."`
	LogEvents    int    `name:"log-events" nodes:"own" reload:"yes" placeholder:"N" help:"Log lines per minute for each kind of event of server processes, game sessions and placements; one line a minute summarizes the rest. Level debug has all of them."`
	OTLPEndpoint string `name:"otlp-endpoint" nodes:"own" reload:"yes" placeholder:"URL" help:"Export traces and metrics to this OpenTelemetry collector, by OTLP over HTTP, such as http://127.0.0.1:4318. Empty: use the standard variables (OTEL_EXPORTER_OTLP_ENDPOINT); without them nothing is exported."`
	Pprof        string `name:"pprof" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Serve Go's profiler on this loopback address. Off when empty."`

	Reservation       time.Duration `name:"reservation" reload:"yes" placeholder:"TIME" help:"Time that a reserved seat waits for its player to connect."`
	ActivationTimeout time.Duration `name:"activation-timeout" reload:"yes" placeholder:"TIME" help:"Maximum time for a game server to activate a game session."`
	LinkGrace         time.Duration `name:"link-grace" reload:"yes" placeholder:"TIME" help:"Maximum time that a game server may be disconnected before it counts as crashed. The server SDKs pause for up to 32 s between attempts to reconnect."`
	TokenLifetime     time.Duration `name:"token-lifetime" reload:"yes" placeholder:"TIME" help:"Validity of a compute's auth token, at least 5m. The service replaces a token when a quarter of its validity is left, at most 15 minutes."`
	ServerClockSkew   time.Duration `name:"server-clock-skew" reload:"yes" placeholder:"TIME" help:"Maximum clock error of a game server that signs with an access key. The C# SDK signs with its host's local time: a host in a time zone other than UTC needs up to 14h15m, or a token, which does not depend on the clock."`
	AuditKept         time.Duration `name:"audit-kept" reload:"yes" placeholder:"TIME" help:"How long entries of the audit log are kept, 720h (30 days) at least."`
	BackupAgeMax      time.Duration `name:"backup-age-max" reload:"yes" bundle:"yes" placeholder:"TIME" help:"How old the last backup may be before the console, muster top and muster doctor warn. 0: never, because another program makes the backups. With --dev they never warn."`
	AuditExport       string        `name:"audit-export" reload:"yes" placeholder:"RECEIVER…" help:"Send the audit log to these receivers, separated by spaces: syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT, syslog+udp://HOST:PORT, or otlp for the OpenTelemetry collector. syslog+tls takes ?ca=FILE, and cert=FILE&key=FILE for a client certificate. Empty: none."`
	EndedLinger       time.Duration `name:"ended-linger" placeholder:"TIME" help:"Time that ended records stay in memory before only the archive has them."`

	// The documented quotas (10 fleets, 20 locations, 4 per fleet, 100 computes, 50 processes) protect nothing on the operator's own
	// hardware: see B023.
	LimitFleets              int `name:"limit-fleets" reload:"yes" placeholder:"N" help:"Maximum number of fleets."`
	LimitLocations           int `name:"limit-locations" reload:"yes" placeholder:"N" help:"Maximum number of custom locations."`
	LimitLocationsPerFleet   int `name:"limit-locations-per-fleet" reload:"yes" placeholder:"N" help:"Maximum number of locations of a fleet."`
	LimitComputesPerFleet    int `name:"limit-computes-per-fleet" reload:"yes" placeholder:"N" help:"Maximum number of computes of a fleet."`
	LimitProcessesPerCompute int `name:"limit-processes-per-compute" reload:"yes" placeholder:"N" help:"Maximum number of game server processes of a compute."`
	LimitAccessKeys          int `name:"limit-access-keys" reload:"yes" placeholder:"N" help:"Maximum number of access keys. A revoked one counts for 90 days after its end."`

	// The cloud service has 1,000 rule sets and 100 or 300 configurations, by the edition of its quota page.
	LimitQueues         int `name:"limit-queues" reload:"yes" placeholder:"N" help:"Maximum number of game session queues."`
	LimitRuleSets       int `name:"limit-matchmaking-rule-sets" reload:"yes" placeholder:"N" help:"Maximum number of matchmaking rule sets."`
	LimitConfigurations int `name:"limit-matchmaking-configurations" reload:"yes" placeholder:"N" help:"Maximum number of matchmaking configurations."`

	LimitPlayersPerGameSession int32 `name:"limit-players-per-game-session" reload:"yes" placeholder:"N" help:"Largest maximum of players that a game session may be created with."`

	LimitTicketBytes        Bytes `name:"limit-ticket-bytes" reload:"yes" placeholder:"SIZE" help:"Memory for matchmaking tickets, including those that have just ended. One access key of the role client may use half of it."`
	LimitPlacementBytes     Bytes `name:"limit-placement-bytes" reload:"yes" placeholder:"SIZE" help:"The same for placements."`
	LimitPlayerSessionBytes Bytes `name:"limit-player-session-bytes" reload:"yes" placeholder:"SIZE" help:"The same for player sessions."`
	LimitPlayers            int   `name:"limit-players" reload:"yes" placeholder:"N" help:"Maximum number of known players of player flow: those who logged in within 30 days, and those whom the studio described."`

	Quotas string `name:"quotas" reload:"yes" placeholder:"LIST" help:"How many records one access key may have, including all its temporary credentials: KIND=N for every key and HOLDER/KIND=N for one, separated by spaces. Empty: the defaults in docs/guide/limits.md."`

	Limits               string `name:"limits" reload:"yes" bundle:"yes" placeholder:"default|gamelift" help:"Rates of API requests for each access key: default for none, gamelift for those of the cloud service."`
	LimitWorkingRequests int    `name:"limit-working-requests" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of API requests in progress; further ones get an error that clients retry."`

	ClientKeyRate                  int   `name:"client-key-rate" reload:"yes" placeholder:"N" help:"API requests per second with one access key of the role client, which all players of a game share; allows bursts of ten seconds. 0: no limit."`
	ClientAddressRate              int   `name:"client-address-rate" reload:"yes" placeholder:"N" help:"API requests per second with such keys from one address, or one IPv6 network; bursts as above. 0: no limit."`
	LimitConnections               int   `name:"limit-connections" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of open connections, on all ports. 0: the descriptor limit minus a reserve for the store, at most 100000."`
	LimitConnectionsUnproven       int   `name:"limit-connections-unproven" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of these without a credential; beyond it new ones replace the oldest. 0: three quarters."`
	LimitConnectionsPerAddress     int   `name:"limit-connections-per-address" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number from one IPv4 address or IPv6 /64, and twice as many from an IPv6 /56; --trusted-proxies are exempt. 0: a quarter."`
	LimitConnectionsHTTP           int   `name:"limit-connections-http" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number for requests. 0: three quarters."`
	LimitConnectionsGameServers    int   `name:"limit-connections-game-servers" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of game servers. 0: seven eighths."`
	LimitConnectionsPlayerStreams  int   `name:"limit-connections-player-streams" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of event streams of players. 0: seven eighths."`
	LimitConnectionsPartnerStreams int   `name:"limit-connections-partner-streams" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of event streams of the studio's servers. 0: one eighth."`
	LimitConnectionsEventStreams   int   `name:"limit-connections-event-streams" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of event streams of session nodes. 0: one quarter."`
	BuildsMax                      Bytes `name:"builds-max" nodes:"own" reload:"yes" placeholder:"SIZE" help:"Space for the files of builds in the data directory, uploads included. Content that builds share counts once. 0: none can be uploaded."`
	SessionLogsMax                 Bytes `name:"session-logs-max" nodes:"own" reload:"yes" placeholder:"SIZE" help:"Space in the data directory for the game session logs that agents upload. They are kept for 14 days; if space runs out, the oldest are deleted. 0: none are kept."`
	MetricsMax                     Bytes `name:"metrics-max" nodes:"own" reload:"yes" placeholder:"SIZE" help:"Space for stored metrics in the data directory: each minute for 15 days and each hour for 455 days, as long as there is space. 0: none are stored."`
	MetricsSeries                  int   `name:"metrics-series" nodes:"own" reload:"yes" placeholder:"N" help:"Maximum number of stored metric series. A location of a fleet has about 31, a fleet and a metric group 27 each, a queue 12, a matchmaking configuration 14."`
	DiskReserve                    Bytes `name:"disk-reserve" nodes:"own" reload:"yes" placeholder:"SIZE" help:"Free space in the data directory below which the service refuses changes; it needs the rest for changes in progress."`

	Objects string `name:"objects" placeholder:"s3://BUCKET/PREFIX" help:"Store the files of builds and the logs of game sessions in this object store instead of the data directory. Query parameters: endpoint (a store other than AWS), region, style (path or host). Credentials are found as by the AWS tools: environment, profile files, machine role."`

	NotifyEvents string        `name:"notify-events" reload:"yes" placeholder:"URL" help:"Webhook for the result of every placement and for matchmaking events, in the format of the event bus."`
	NotifyTopics string        `name:"notify-topics" reload:"yes" placeholder:"ARN=URL…" help:"Webhooks of topics that queues name as their NotificationTarget, separated by spaces."`
	WebhookAllow string        `name:"webhook-allow" reload:"yes" bundle:"yes" placeholder:"TARGET…" help:"Allowed targets of webhooks that callers of the API name: host names, patterns such as *.example.com, addresses and networks, separated by spaces. Empty: any host with a public address."`
	NotifyMaxAge time.Duration `name:"notify-max-age" reload:"yes" placeholder:"TIME" help:"Time that a notification waits for a receiver that does not answer."`
	LimitNotices int           `name:"limit-notices" reload:"yes" placeholder:"N" help:"Maximum number of notifications that wait for one receiver; beyond it the oldest are dropped."`

	MatchEvery time.Duration `name:"match-every" reload:"yes" placeholder:"TIME" help:"Minimum time between two passes of a matchmaker; a pass considers all tickets that have arrived since."`

	PlayerFlow       bool   `name:"player-flow" help:"Player flow: parties, searches, games and reconnects of players, over the player API."`
	PlayerFlowConfig string `name:"player-flow-config" bundle:"yes" placeholder:"FILE" help:"JSON file with the options of player flow; see the guide. muster config shows the values in force."`
	PartnerListen    string `name:"partner-listen" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Address for the studio's servers. Empty: none, but with --dev the one port."`
	OperatorListen   string `name:"operator-listen" nodes:"own" bundle:"yes" placeholder:"HOST:PORT" help:"Address for operators of player flow. Empty: none, but with --dev the one port."`

	PlayerOIDCIssuer   string `name:"player-oidc-issuer" reload:"yes" bundle:"yes" placeholder:"URL" help:"Identity provider whose tokens players log in with (provider oidc)."`
	PlayerOIDCAudience string `name:"player-oidc-audience" reload:"yes" bundle:"yes" placeholder:"NAME…" help:"Audiences (aud) of its tokens, separated by spaces."`
	PlayerOIDCKeys     string `name:"player-oidc-keys" reload:"yes" bundle:"yes" placeholder:"URL" help:"URL of its keys, if its discovery document does not have it."`
	PlayerOIDCClaim    string `name:"player-oidc-claim" reload:"yes" bundle:"yes" placeholder:"NAME" help:"The claim that is the player's id."`
	PlayerOIDCPrefix   string `name:"player-oidc-prefix" reload:"yes" bundle:"yes" placeholder:"TEXT" help:"Prefix of the player's id, so that no other provider can produce the same id."`

	PlayerLoginKeys     string `name:"player-login-keys" reload:"yes" bundle:"yes" placeholder:"FILE" help:"JWK set with the public keys of backends that sign login tokens for their players (provider backend). Read again after changes."`
	PlayerLoginAudience string `name:"player-login-audience" reload:"yes" bundle:"yes" placeholder:"NAME…" help:"Audiences (aud) of the backends' tokens, separated by spaces. Empty: the tokens must have none."`
	PlayerLoginIssuer   string `name:"player-login-issuer" reload:"yes" bundle:"yes" placeholder:"NAME…" help:"Issuers (iss) of these tokens, separated by spaces. Empty: any issuer that signs with a known key."`
	PlayerDevLogins     bool   `name:"player-dev-logins" help:"Players may log in under any name (provider dev). On with --dev unless an identity provider is set."`
	PlayerDevInsecure   bool   `name:"player-dev-allow-insecure" help:"Allows --player-dev-logins on an address that other machines can reach."`
	PlayerDevMixed      bool   `name:"player-dev-allow-mixed" help:"Allows --player-dev-logins beside an identity provider. Players can then log in without that provider's tokens."`
	PlayerOrigins       string `name:"player-origins" reload:"yes" bundle:"yes" placeholder:"ORIGIN…" help:"Sites whose web pages may call the player API, such as https://play.example.com, separated by spaces; * for all."`
	TrustedProxies      string `name:"trusted-proxies" nodes:"own" reload:"yes" bundle:"yes" placeholder:"CIDR…" help:"Proxies whose X-Forwarded-For and X-Forwarded-Proto the service trusts, separated by spaces."`
	PartnerClientCA     string `name:"partner-client-ca" nodes:"own" reload:"yes" bundle:"yes" placeholder:"FILE" help:"Authorities in PEM of client certificates, for the addresses of the studio's servers and operators. A certificate names its access key. Read again after changes."`

	PlayerLogins           int    `name:"player-logins" placeholder:"N" help:"Logins per second; further players wait in a queue, those in a game first. 0: no limit."`
	PlayerLoginsPerAddress int    `name:"player-logins-per-address" reload:"yes" placeholder:"N" help:"Logins per minute from one address. 0: no limit."`
	PlayerRates            string `name:"player-rates" reload:"yes" bundle:"yes" placeholder:"KIND=CALLS/UNIT:BURST…" help:"Changes to the call rates of players and trusted servers, such as party=5/s:20 enter=12/m details=off, separated by spaces. The guide lists the kinds."`
	PlayersOnline          int    `name:"players-online" placeholder:"N" help:"Maximum number of players logged in at a time. 0: no limit."`

	PlayerReconnect       string        `name:"player-reconnect" bundle:"yes" placeholder:"OFF|OPTIONAL|REQUIRED" help:"Whether a player who lost the connection keeps the seat: OFF, OPTIONAL or REQUIRED."`
	PlayerReconnectWindow time.Duration `name:"player-reconnect-window" placeholder:"TIME" help:"Time that the seat is kept with OPTIONAL."`
	PlayerDirectCreate    string        `name:"player-direct-create" bundle:"yes" placeholder:"QUEUE" help:"Game session queue that places the game instances that players create. Empty: they may not create any."`
	PlayerHooks           string        `name:"player-hooks" reload:"yes" bundle:"yes" placeholder:"FILE" help:"JSON file with the hooks that call the studio's backend about players. Empty: none."`
	PlayerDirectJoin      bool          `name:"player-direct-join" help:"Players may join running game instances, without matchmaking."`
	PlayerPenalties       string        `name:"player-penalties" bundle:"yes" placeholder:"OFF|REPORT_ONLY|ENFORCE" help:"Penalties for leaving."`

	SnapshotEvery Bytes `name:"snapshot-every" nodes:"own" placeholder:"SIZE" help:"Size of the journal after which the service takes a snapshot: a smaller size makes restarts faster and costs disk writes."`
	HeapFloor     Bytes `name:"heap-floor" nodes:"own" placeholder:"SIZE" help:"Heap size below which garbage is not collected: a small heap would be collected too often. Under sustained load, up to eight times as much, but at most an eighth of the memory."`
	GCPercent     int   `name:"gc-percent" nodes:"own" placeholder:"N" help:"Heap growth in percent between collections. More costs memory and saves CPU time."`
}

// Defaults returns the default of every setting.
func Defaults() Settings {
	core, players := cell.DefaultConfig(), flow.DefaultConfig()
	return Settings{
		Data:       "data",
		Listen:     "127.0.0.1:8080",
		RequireTLS: "auto",

		LogLevel:  "info",
		LogFormat: "text",
		LogEvents: 20,

		Reservation:       core.Hosting.Reservation,
		ActivationTimeout: core.Hosting.Activation,
		LinkGrace:         core.Hosting.LinkGrace,
		TokenLifetime:     core.Hosting.TokenLife,
		ServerClockSkew:   sigv4.ServerSkew,
		EndedLinger:       20 * time.Second,
		AuditKept:         audit.DefaultConfig().Kept,
		BackupAgeMax:      48 * time.Hour,

		LimitFleets:                core.Hosting.FleetsMax,
		LimitLocations:             core.Hosting.LocationsMax,
		LimitLocationsPerFleet:     core.Hosting.LocationsInFleetMax,
		LimitComputesPerFleet:      core.Hosting.ComputesInFleetMax,
		LimitProcessesPerCompute:   core.Hosting.ProcessesOnComputeMax,
		LimitQueues:                core.Hosting.QueuesMax,
		LimitRuleSets:              core.Matchmaking.RuleSetsMax,
		LimitConfigurations:        core.Matchmaking.MatchmakersMax,
		LimitAccessKeys:            core.Access.AccessKeysMax,
		LimitPlayersPerGameSession: core.Hosting.PlayersInGameMax,
		LimitPlayers:               core.PlayerFlow.PlayersMax,

		LimitTicketBytes:        Bytes(core.Matchmaking.TicketBytesMax),
		LimitPlacementBytes:     Bytes(core.Hosting.PlacementBytesMax),
		LimitPlayerSessionBytes: Bytes(core.Hosting.PlayerSessionBytesMax),

		Limits:               "default",
		LimitWorkingRequests: 8192,
		ClientKeyRate:        5000,
		ClientAddressRate:    100,

		BuildsMax: 50 << 30, SessionLogsMax: 5 << 30, MetricsMax: 1 << 30, MetricsSeries: 20_000, DiskReserve: 64 << 20,

		NotifyMaxAge: notice.DefaultNoticeAge,
		LimitNotices: notice.DefaultNoticesMax,

		MatchEvery: 100 * time.Millisecond,

		PlayerOIDCClaim:        "sub",
		PlayerLogins:           50,
		PlayerLoginsPerAddress: 30,
		PlayerReconnect:        players.Games.Reconnect.String(),
		PlayerReconnectWindow:  players.Games.ReconnectWindow,
		PlayerPenalties:        "REPORT_ONLY",

		SnapshotEvery: 128 << 20,
		HeapFloor:     64 << 20,
		GCPercent:     100,
	}
}

// Cell returns the part of the settings that the core needs.
func (s Settings) Cell() cell.Config {
	c := cell.DefaultConfig()
	c.Hosting.Reservation = s.Reservation
	c.Hosting.Activation = s.ActivationTimeout
	c.Hosting.LinkGrace = s.LinkGrace
	c.Hosting.TokenLife = s.TokenLifetime
	c.Hosting.FleetsMax = s.LimitFleets
	c.Hosting.LocationsMax = s.LimitLocations
	c.Hosting.LocationsInFleetMax = s.LimitLocationsPerFleet
	c.Hosting.ComputesInFleetMax = s.LimitComputesPerFleet
	c.Hosting.ProcessesOnComputeMax = s.LimitProcessesPerCompute
	c.Hosting.QueuesMax = s.LimitQueues
	c.Matchmaking.RuleSetsMax = s.LimitRuleSets
	c.Matchmaking.MatchmakersMax = s.LimitConfigurations
	c.Access.AccessKeysMax = s.LimitAccessKeys
	c.Audit.Kept = s.AuditKept
	c.Hosting.PlayersInGameMax = s.LimitPlayersPerGameSession
	c.Matchmaking.TicketBytesMax = int64(s.LimitTicketBytes)
	c.Hosting.PlacementBytesMax = int64(s.LimitPlacementBytes)
	c.Hosting.PlayerSessionBytesMax = int64(s.LimitPlayerSessionBytes)
	c.PlayerFlow.PlayersMax = s.LimitPlayers
	c.Notify = s.notify()
	c.PlayerFlow.Flow = s.playerFlow()
	return c
}

// ExpectedBackups returns how old the last backup may be; 0: no backups are expected.
func (s Settings) ExpectedBackups() time.Duration {
	if s.Dev {
		return 0
	}
	return s.BackupAgeMax
}
