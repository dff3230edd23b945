// Package settings is everything an operator can set about a Muster service: the names, what they mean, their
// defaults, and which values make no sense. Where a value comes from (flag, environment, file) is the command's matter.
package settings

import (
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Settings of one service. Each field is a flag, a variable and a key of the settings file by the same name:
// PublicURL is --public-url, MUSTER_PUBLIC_URL and "public-url".
type Settings struct {
	Data         string `name:"data" placeholder:"DIR" help:"Directory that holds everything Muster knows. One process at a time."`
	Listen       string `name:"listen" placeholder:"HOST:PORT" help:"Address of the one port, for clients and game servers."`
	PublicURL    string `name:"public-url" placeholder:"URL" help:"Where game servers reach this service, if that is not what --listen says: behind a proxy, in a container."`
	Dev          bool   `name:"dev" help:"For trying things out: any credentials are accepted, TLS with a certificate of our own. Loopback addresses only."`
	VirtualClock bool   `name:"virtual-clock" help:"With --dev: time stands still until a test moves it over /dev/clock. Deadlines only; connections and signatures stay on real time."`
	TLSCert      string `name:"tls-cert" placeholder:"FILE" help:"Certificate chain in PEM; read again when the file changes."`
	TLSKey       string `name:"tls-key" placeholder:"FILE" help:"Key of the certificate in PEM."`

	TLSACMEEmail     string `name:"tls-acme-email" placeholder:"ADDRESS" help:"Get the certificate of the public URL's host from an ACME authority (Let's Encrypt), whose terms are accepted, and renew it. The authority writes to this address, and connects to port 443 of the host."`
	TLSACMEDirectory string `name:"tls-acme-directory" placeholder:"URL" help:"Directory of another ACME authority."`

	RequireTLS string `name:"require-tls" placeholder:"WHEN" help:"Refuse requests from other machines that did not come over TLS, here or at a trusted proxy: on, off, or auto, which is on with a certificate or an https public URL."`

	LogLevel  string `name:"log-level" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat string `name:"log-format" placeholder:"FORMAT" help:"text or json."`
	LogEvents int    `name:"log-events" placeholder:"N" help:"Lines a minute that the log gets of each kind of event of server processes, game sessions and placements; the rest is summed in one line a minute. Level debug has all of them."`
	Pprof     string `name:"pprof" placeholder:"HOST:PORT" help:"Serve Go's profiler on this loopback address. Off when empty."`

	Reservation       time.Duration `name:"reservation" placeholder:"TIME" help:"How long a reserved seat waits for its player to connect."`
	ActivationTimeout time.Duration `name:"activation-timeout" placeholder:"TIME" help:"How long a game server may take to start a game session."`
	LinkGrace         time.Duration `name:"link-grace" placeholder:"TIME" help:"How long a game server may be disconnected before it counts as crashed. The server SDKs pause for up to 32 s between attempts to reconnect."`
	TokenLifetime     time.Duration `name:"token-lifetime" placeholder:"TIME" help:"How long a compute's auth token lets its game servers connect, at least 5m. It is replaced when a quarter of it is left, at most 15 minutes."`
	ServerClockSkew   time.Duration `name:"server-clock-skew" placeholder:"TIME" help:"How far the clock of a game server that signs with an access key may be off. The C# SDK signs with its host's local time: with a host in another time zone than UTC this needs to be up to 14h15m; a token needs no clock."`
	EndedLinger       time.Duration `name:"ended-linger" placeholder:"TIME" help:"How long what ended stays in memory before only the archive has it."`

	// The documented quotas (10 fleets, 20 locations, 4 of a fleet, 100 computes, 50 processes) protect nothing on own
	// hardware: see B023.
	LimitFleets              int `name:"limit-fleets" placeholder:"N" help:"Most fleets."`
	LimitLocations           int `name:"limit-locations" placeholder:"N" help:"Most custom locations."`
	LimitLocationsPerFleet   int `name:"limit-locations-per-fleet" placeholder:"N" help:"Most locations of a fleet."`
	LimitComputesPerFleet    int `name:"limit-computes-per-fleet" placeholder:"N" help:"Most computes of a fleet."`
	LimitProcessesPerCompute int `name:"limit-processes-per-compute" placeholder:"N" help:"Most game server processes of a compute."`
	LimitAccessKeys          int `name:"limit-access-keys" placeholder:"N" help:"Most access keys. A revoked one counts for 90 days after its end."`

	// The cloud service has 1,000 rule sets and 100 or 300 configurations, by the edition of its quota page.
	LimitQueues         int `name:"limit-queues" placeholder:"N" help:"Most game session queues."`
	LimitRuleSets       int `name:"limit-matchmaking-rule-sets" placeholder:"N" help:"Most matchmaking rule sets."`
	LimitConfigurations int `name:"limit-matchmaking-configurations" placeholder:"N" help:"Most matchmaking configurations."`

	LimitPlayersPerGameSession int32 `name:"limit-players-per-game-session" placeholder:"N" help:"Largest maximum of players that a game session may be created with."`

	LimitTicketBytes        Bytes `name:"limit-ticket-bytes" placeholder:"SIZE" help:"Memory that matchmaking tickets may hold, with those that ended a moment ago. One access key of the role client may have half."`
	LimitPlacementBytes     Bytes `name:"limit-placement-bytes" placeholder:"SIZE" help:"The same for placements."`
	LimitPlayerSessionBytes Bytes `name:"limit-player-session-bytes" placeholder:"SIZE" help:"The same for player sessions."`
	LimitPlayers            int   `name:"limit-players" placeholder:"N" help:"Most players whom player flow knows: those who logged in within 30 days, and those whom the studio described."`

	Limits               string `name:"limits" placeholder:"PROFILE" help:"Rates of API requests for each access key: default for none, gamelift for those of the cloud service."`
	LimitWorkingRequests int    `name:"limit-working-requests" placeholder:"N" help:"Most API requests that are worked on at a time; more are told to come again."`

	ClientKeyRate                  int   `name:"client-key-rate" placeholder:"N" help:"API requests a second with one access key of the role client, which all players of a game share; bursts of ten seconds' worth are taken. 0: no limit."`
	ClientAddressRate              int   `name:"client-address-rate" placeholder:"N" help:"API requests a second with such keys from one address, or one IPv6 network; bursts as above. 0: no limit."`
	LimitConnections               int   `name:"limit-connections" placeholder:"N" help:"Most open connections, at all ports. 0: what the descriptor limit leaves beside a reserve for the store, at most 100000."`
	LimitConnectionsUnproven       int   `name:"limit-connections-unproven" placeholder:"N" help:"Most of them that have presented no credential; then new ones take the place of the oldest. 0: three quarters."`
	LimitConnectionsPerAddress     int   `name:"limit-connections-per-address" placeholder:"N" help:"Most from one IPv4 address or IPv6 /64, and twice as many from an IPv6 /56; --trusted-proxies are exempt. 0: a quarter."`
	LimitConnectionsHTTP           int   `name:"limit-connections-http" placeholder:"N" help:"Most for requests. 0: three quarters."`
	LimitConnectionsGameServers    int   `name:"limit-connections-game-servers" placeholder:"N" help:"Most of game servers. 0: seven eighths."`
	LimitConnectionsPlayerStreams  int   `name:"limit-connections-player-streams" placeholder:"N" help:"Most event streams of players. 0: seven eighths."`
	LimitConnectionsPartnerStreams int   `name:"limit-connections-partner-streams" placeholder:"N" help:"Most event streams of the studio's servers. 0: one eighth."`
	LimitConnectionsEventStreams   int   `name:"limit-connections-event-streams" placeholder:"N" help:"Most event streams of session nodes. 0: one quarter."`
	DiskReserve                    Bytes `name:"disk-reserve" placeholder:"SIZE" help:"Free space in the data directory below which changes are refused until there is more; what is under way needs the rest."`

	NotifyEvents string        `name:"notify-events" placeholder:"URL" help:"Webhook that is told of the end of every placement, as the event bus would."`
	NotifyTopics string        `name:"notify-topics" placeholder:"ARN=URL…" help:"Webhooks of topics that queues name as their NotificationTarget; several are separated by spaces."`
	WebhookAllow string        `name:"webhook-allow" placeholder:"TARGET…" help:"Where webhooks may go that callers of the API name: host names, patterns such as *.example.com, addresses and networks, separated by spaces. Empty: any host with a public address."`
	NotifyMaxAge time.Duration `name:"notify-max-age" placeholder:"TIME" help:"How long a notification waits for a receiver that is away."`
	LimitNotices int           `name:"limit-notices" placeholder:"N" help:"Most notifications that wait for one receiver; then the oldest are given up."`

	MatchEvery time.Duration `name:"match-every" placeholder:"TIME" help:"Time between two passes of a matchmaker, at least; tickets that come meanwhile see each other first."`

	PlayerFlow       bool   `name:"player-flow" help:"Player flow: parties, searches, games and reconnects of players, over the player API."`
	PlayerFlowConfig string `name:"player-flow-config" placeholder:"FILE" help:"JSON file with the options of player flow; see the guide, and muster config for what is in force."`
	PartnerListen    string `name:"partner-listen" placeholder:"HOST:PORT" help:"Address for the studio's servers. Empty: none, but with --dev the one port."`
	OperatorListen   string `name:"operator-listen" placeholder:"HOST:PORT" help:"Address for operators of player flow. Empty: none, but with --dev the one port."`

	PlayerOIDCIssuer   string `name:"player-oidc-issuer" placeholder:"URL" help:"Identity provider whose tokens players log in with (provider oidc)."`
	PlayerOIDCAudience string `name:"player-oidc-audience" placeholder:"NAME…" help:"Whom its tokens must be for; several are separated by spaces."`
	PlayerOIDCKeys     string `name:"player-oidc-keys" placeholder:"URL" help:"Where its keys are, if its discovery document does not say."`
	PlayerOIDCClaim    string `name:"player-oidc-claim" placeholder:"NAME" help:"The claim that is the player's id."`
	PlayerOIDCPrefix   string `name:"player-oidc-prefix" placeholder:"TEXT" help:"What stands before that id, so that no other provider makes the same player."`

	PlayerLoginKeys     string `name:"player-login-keys" placeholder:"FILE" help:"Public keys, a JWK set, of backends that sign login tokens for their players (provider backend). Read again when the file changes."`
	PlayerLoginAudience string `name:"player-login-audience" placeholder:"NAME…" help:"Whom the tokens of backends must be for, their aud; several are separated by spaces. Empty: they must have none."`
	PlayerLoginIssuer   string `name:"player-login-issuer" placeholder:"NAME…" help:"Whom they must be from, their iss; several are separated by spaces. Empty: from whoever has the key."`
	PlayerDevLogins     bool   `name:"player-dev-logins" help:"Players log in under any name that they like (provider dev). On with --dev when no identity provider is named."`
	PlayerDevInsecure   bool   `name:"player-dev-allow-insecure" help:"Allows --player-dev-logins where others than this machine can connect."`
	PlayerDevMixed      bool   `name:"player-dev-allow-mixed" help:"Allows --player-dev-logins beside an identity provider, which it makes worthless."`
	PlayerOrigins       string `name:"player-origins" placeholder:"ORIGIN…" help:"Web pages that may call the player API, such as https://play.example.com; several are separated by spaces, * is for all."`
	TrustedProxies      string `name:"trusted-proxies" placeholder:"CIDR…" help:"Proxies whose X-Forwarded-For is believed, for limits by address; several are separated by spaces."`
	PartnerClientCA     string `name:"partner-client-ca" placeholder:"FILE" help:"Authorities in PEM of client certificates, for the addresses of the studio's servers and operators. A certificate names the access key that it stands for. Read again when the file changes."`

	PlayerLogins           int    `name:"player-logins" placeholder:"N" help:"Logins a second; more wait in line, players in a game first. 0: no limit."`
	PlayerLoginsPerAddress int    `name:"player-logins-per-address" placeholder:"N" help:"Logins a minute from one address. 0: no limit."`
	PlayerRates            string `name:"player-rates" placeholder:"KIND=CALLS/UNIT:BURST…" help:"Other rates of players' and trusted servers' calls, such as party=5/s:20 enter=12/m details=off; several are separated by spaces. The guide lists the kinds."`
	PlayersOnline          int    `name:"players-online" placeholder:"N" help:"Players that may be logged in. 0: no limit."`

	PlayerReconnect       string        `name:"player-reconnect" placeholder:"MODE" help:"What becomes of the seat of a player whose connection is lost: OFF, OPTIONAL or REQUIRED."`
	PlayerReconnectWindow time.Duration `name:"player-reconnect-window" placeholder:"TIME" help:"How long the seat is kept with OPTIONAL."`
	PlayerDirectCreate    string        `name:"player-direct-create" placeholder:"QUEUE" help:"Players may make game instances of their own, which this game session queue places. Empty: they may not."`
	PlayerHooks           string        `name:"player-hooks" placeholder:"FILE" help:"JSON file that says which hooks ask the studio's backend about players. Empty: none."`
	PlayerDirectJoin      bool          `name:"player-direct-join" help:"Players may join game instances that run, without matchmaking."`
	PlayerPenalties       string        `name:"player-penalties" placeholder:"MODE" help:"Penalties for leaving: OFF, REPORT_ONLY or ENFORCE."`

	SnapshotEvery Bytes `name:"snapshot-every" placeholder:"SIZE" help:"A snapshot is taken after this much journal: less makes restarts faster and costs disk writes."`
	HeapFloor     Bytes `name:"heap-floor" placeholder:"SIZE" help:"Garbage is not collected before the heap has this size: a small heap would be collected too often."`
	GCPercent     int   `name:"gc-percent" placeholder:"N" help:"Heap growth in percent between collections. More costs memory and saves processor time."`
}

// Defaults are what is in force when nobody says otherwise.
func Defaults() Settings {
	core, players := cell.DefaultConfig(), flow.DefaultConfig()
	return Settings{
		Data:       "data",
		Listen:     "127.0.0.1:8080",
		RequireTLS: "auto",

		LogLevel:  "info",
		LogFormat: "text",
		LogEvents: 20,

		Reservation:       core.Reservation,
		ActivationTimeout: core.Activation,
		LinkGrace:         core.LinkGrace,
		TokenLifetime:     core.TokenLife,
		ServerClockSkew:   15 * time.Minute,
		EndedLinger:       20 * time.Second,

		LimitFleets:                core.FleetsMax,
		LimitLocations:             core.LocationsMax,
		LimitLocationsPerFleet:     core.LocationsInFleetMax,
		LimitComputesPerFleet:      core.ComputesInFleetMax,
		LimitProcessesPerCompute:   core.ProcessesOnComputeMax,
		LimitQueues:                core.QueuesMax,
		LimitRuleSets:              core.RuleSetsMax,
		LimitConfigurations:        core.MatchmakersMax,
		LimitAccessKeys:            core.AccessKeysMax,
		LimitPlayersPerGameSession: core.PlayersInGameMax,
		LimitPlayers:               core.PlayersMax,

		LimitTicketBytes:        Bytes(core.TicketBytesMax),
		LimitPlacementBytes:     Bytes(core.PlacementBytesMax),
		LimitPlayerSessionBytes: Bytes(core.PlayerSessionBytesMax),

		Limits:               "default",
		LimitWorkingRequests: 8192,
		ClientKeyRate:        5000,
		ClientAddressRate:    100,

		DiskReserve: 64 << 20,

		NotifyMaxAge: cell.DefaultNoticeAge,
		LimitNotices: cell.DefaultNoticesMax,

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

// Cell gives the part that the core decides with.
func (s Settings) Cell() cell.Config {
	c := cell.DefaultConfig()
	c.Reservation = s.Reservation
	c.Activation = s.ActivationTimeout
	c.LinkGrace = s.LinkGrace
	c.TokenLife = s.TokenLifetime
	c.FleetsMax = s.LimitFleets
	c.LocationsMax = s.LimitLocations
	c.LocationsInFleetMax = s.LimitLocationsPerFleet
	c.ComputesInFleetMax = s.LimitComputesPerFleet
	c.ProcessesOnComputeMax = s.LimitProcessesPerCompute
	c.QueuesMax = s.LimitQueues
	c.RuleSetsMax = s.LimitRuleSets
	c.MatchmakersMax = s.LimitConfigurations
	c.AccessKeysMax = s.LimitAccessKeys
	c.PlayersInGameMax = s.LimitPlayersPerGameSession
	c.TicketBytesMax = int64(s.LimitTicketBytes)
	c.PlacementBytesMax = int64(s.LimitPlacementBytes)
	c.PlayerSessionBytesMax = int64(s.LimitPlayerSessionBytes)
	c.PlayersMax = s.LimitPlayers
	c.Notify = s.notify()
	c.Flow = s.playerFlow()
	return c
}
