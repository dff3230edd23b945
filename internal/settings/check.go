package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/webidentity"
)

// publicURLMax is the API model's maximum length of a server SDK endpoint.
const publicURLMax = 128

// Check finds invalid values and combinations, and reports all of them at once. It checks only the settings: missing files and
// ports in use are found when the service uses them.
func (s Settings) Check() error {
	return errors.Join(
		s.checkData(),
		s.checkListen(),
		s.checkPublicURL(),
		s.checkClock(),
		s.checkCluster(),
		s.checkTLS(),
		s.checkACME(),
		s.checkRequireTLS(),
		s.checkPprof(),
		s.checkOTLP(),
		oneOf("log-level", s.LogLevel, "debug", "info", "warn", "error"),
		oneOf("log-format", s.LogFormat, "text", "json"),
		atLeast("log-events", s.LogEvents, 0),
		atLeast("reservation", s.Reservation, time.Second),
		atLeast("activation-timeout", s.ActivationTimeout, time.Second),
		atLeast("link-grace", s.LinkGrace, time.Second),
		atLeast("token-lifetime", s.TokenLifetime, tokenLifetimeMin),
		s.checkClockSkew(),
		atLeast("ended-linger", s.EndedLinger, time.Millisecond),
		atLeast("audit-kept", s.AuditKept, audit.KeptMin),
		atLeast("backup-age-max", s.BackupAgeMax, 0),
		s.checkAuditExport(),
		atLeast("limit-fleets", s.LimitFleets, 1),
		atLeast("limit-locations", s.LimitLocations, 1),
		atLeast("limit-locations-per-fleet", s.LimitLocationsPerFleet, 1),
		atLeast("limit-computes-per-fleet", s.LimitComputesPerFleet, 1),
		atLeast("limit-processes-per-compute", s.LimitProcessesPerCompute, 1),
		atLeast("limit-queues", s.LimitQueues, 1),
		atLeast("limit-matchmaking-rule-sets", s.LimitRuleSets, 1),
		atLeast("limit-matchmaking-configurations", s.LimitConfigurations, 1),
		atLeast("limit-access-keys", s.LimitAccessKeys, 1),
		atLeast("limit-players-per-game-session", s.LimitPlayersPerGameSession, 1),
		atLeast("limit-players", s.LimitPlayers, 1),
		oneOf("limits", s.Limits, "default", "gamelift"),
		s.checkQuotas(),
		atLeast("limit-working-requests", s.LimitWorkingRequests, 1),
		atLeast("limit-ticket-bytes", s.LimitTicketBytes, 1<<20),
		atLeast("limit-placement-bytes", s.LimitPlacementBytes, 4<<20),
		atLeast("limit-player-session-bytes", s.LimitPlayerSessionBytes, 1<<20),
		atLeast("client-key-rate", s.ClientKeyRate, 0),
		atLeast("client-address-rate", s.ClientAddressRate, 0),
		s.checkConnections(),
		atLeast("disk-reserve", s.DiskReserve, 0),
		atLeast("builds-max", s.BuildsMax, 0),
		s.checkObjects(),
		atLeast("session-logs-max", s.SessionLogsMax, 0),
		atLeast("metrics-series", s.MetricsSeries, 1),
		s.checkMetrics(),
		checkNotify(s.NotifyEvents, s.NotifyTopics),
		s.checkWebhookAllow(),
		atLeast("notify-max-age", s.NotifyMaxAge, time.Second),
		atLeast("limit-notices", s.LimitNotices, 1),
		s.checkMatchEvery(),
		s.checkPlayerFlow(),
		s.checkPeople(),
		atLeast("snapshot-every", s.SnapshotEvery, 1<<20),
		atLeast("heap-floor", s.HeapFloor, 0),
		atLeast("gc-percent", s.GCPercent, 10),
	)
}

// checkQuotas checks the quotas of one holder.
func (s Settings) checkQuotas() error {
	_, err := quotas.Parse(s.Quotas)
	return err
}

// tokenLifetimeMin leaves time to replace a token in its last quarter: RefreshConnection is repeated after a minute without a new
// connection.
const tokenLifetimeMin = 5 * time.Minute

// metricsMin is the space that the store of metrics needs for its own files, with some room for metrics.
const metricsMin = 16 << 20

func (s Settings) checkMetrics() error {
	if s.MetricsMax != 0 && s.MetricsMax < metricsMin {
		return fmt.Errorf("metrics-max %s: want at least 16MiB, or 0 to keep none", s.MetricsMax)
	}
	return nil
}

// clockSkewMax is the largest offset of a time zone plus the usual tolerance.
const clockSkewMax = 14*time.Hour + 15*time.Minute

// checkClockSkew bounds how long an intercepted signature can be used.
func (s Settings) checkClockSkew() error {
	if s.ServerClockSkew < time.Minute || s.ServerClockSkew > clockSkewMax {
		return fmt.Errorf("server-clock-skew %s: want 1m to 14h15m", s.ServerClockSkew)
	}
	return nil
}

// checkMatchEvery keeps matching passes from using a whole processor, and players from waiting too long.
func (s Settings) checkMatchEvery() error {
	if s.MatchEvery < 10*time.Millisecond || s.MatchEvery > 10*time.Second {
		return fmt.Errorf("match-every %s: want 10ms to 10s", s.MatchEvery)
	}
	return nil
}

// checkPeople reads the files of people and machines, so that mistakes in them are found before the service starts.
func (s Settings) checkPeople() error {
	file, err := providers.ReadFile(s.People)
	if err != nil {
		return fmt.Errorf("people: %w", err)
	}
	var issuers, authorities []string
	if s.WebIdentities != "" {
		if issuers, err = webidentity.Check(s.WebIdentities); err != nil {
			return fmt.Errorf("web-identities: %w", err)
		}
	}
	if s.ClientCertificates != "" {
		if authorities, err = clientcert.Check(s.ClientCertificates); err != nil {
			return fmt.Errorf("client-certificates: %w", err)
		}
	}
	taken := map[string]string{people.Own: "the service's own people have"}
	for _, p := range file.Providers {
		taken[p.Name] = "a provider of people has"
	}
	for _, x := range []struct {
		setting, source string
		names           []string
	}{{"web-identities", "an issuer", issuers}, {"client-certificates", "an authority", authorities}} {
		for _, name := range x.names {
			if by, ok := taken[name]; ok {
				return fmt.Errorf("%s: %s has the name %q, which %s as well: want different names, or two holders of credentials could be confused", x.setting, x.source, name, by)
			}
			taken[name] = x.source + " has"
		}
	}
	return nil
}

// named is the value of a setting with its name.
type named struct{ name, value string }

func (s Settings) checkData() error {
	if s.Data == "" {
		return fmt.Errorf("data is empty: want a directory")
	}
	return nil
}

func (s Settings) checkListen() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("listen %q: want HOST:PORT, such as 127.0.0.1:8080 or :8080 for all addresses", s.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen %q: port %q: want a number from 0 (any free port) to 65535", s.Listen, port)
	}
	if s.Dev && !hostname.IsLoopback(host) {
		return fmt.Errorf("listen %q with dev: dev accepts any credentials, so it listens on loopback only: want 127.0.0.1, [::1] or localhost, or no dev", s.Listen)
	}
	return nil
}

func (s Settings) checkPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	shown := Shown("public-url", s.PublicURL)
	switch {
	case err != nil:
		return fmt.Errorf("public-url %q: want a URL such as https://muster.example.com", shown)
	case !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Hostname() == "":
		return fmt.Errorf("public-url %q: want a URL such as https://muster.example.com, or ws://10.0.0.5:8080", shown)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		// Server SDKs append their own query to the URL.
		return fmt.Errorf("public-url %q: want a URL without a user, query or fragment", shown)
	case len(s.PublicURL) > publicURLMax:
		return fmt.Errorf("public-url has %d characters, want at most %d, which clients accept", len(s.PublicURL), publicURLMax)
	}
	return nil
}

// checkClock allows the virtual clock only with dev, which listens on loopback: every client can move a virtual clock.
func (s Settings) checkClock() error {
	if s.VirtualClock && !s.Dev {
		return fmt.Errorf("virtual-clock without dev: every client could move the time; want dev as well, or no virtual-clock")
	}
	return nil
}

func (s Settings) checkTLS() error {
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return fmt.Errorf("tls-cert %q, tls-key %q: want both or neither", s.TLSCert, s.TLSKey)
	}
	return nil
}

// checkPprof keeps the profiler on this machine: it shows memory, and memory contains secrets.
func (s Settings) checkPprof() error {
	if s.Pprof == "" {
		return nil
	}
	if host, _, err := net.SplitHostPort(s.Pprof); err != nil || !hostname.IsLoopback(host) {
		return fmt.Errorf("pprof %q: want HOST:PORT with a loopback address, such as 127.0.0.1:6060", s.Pprof)
	}
	return nil
}

func oneOf(name, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q: want one of %s", name, value, strings.Join(allowed, ", "))
}

func atLeast[T int | int32 | Bytes | time.Duration](name string, value, least T) error {
	if value >= least {
		return nil
	}
	return fmt.Errorf("%s %v: want at least %v", name, value, least)
}
