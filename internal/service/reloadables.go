package service

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

// reloadable is a part of the service that can apply new values of some settings.
type reloadable struct {
	settings []string
	// files returns the files that the part reads and that other programs may change, by the setting that names them; nil: none.
	files func(s settings.Settings) map[string]string
	// restart returns why these values need a restart after all; empty: they do not. nil: no values do.
	restart func(now, next settings.Settings) string
	// prepare makes what the new values need. Nothing takes effect before the returned function is called, which cannot fail.
	prepare func(ctx context.Context, next settings.Settings) (apply func(), err error)
}

// coreSettings are the limits and periods of the core (see settings.Cell), and the settings of notices that the core needs.
var coreSettings = []string{
	"reservation", "activation-timeout", "link-grace", "token-lifetime", "audit-kept",
	"limit-fleets", "limit-locations", "limit-locations-per-fleet", "limit-computes-per-fleet", "limit-processes-per-compute", "limit-access-keys", "limit-queues",
	"limit-matchmaking-rule-sets", "limit-matchmaking-configurations", "limit-players-per-game-session", "limit-ticket-bytes", "limit-placement-bytes",
	"limit-player-session-bytes", "limit-players", "notify-max-age", "limit-notices",
}

// reloadables returns all parts that can apply new values. Settings that are not listed here need a restart; a test compares the list with the
// declared settings.
func (x *Service) reloadables() []reloadable {
	return []reloadable{
		{settings: []string{"log-level"}, restart: func(_, _ settings.Settings) string {
			if x.reload.level == nil {
				return "the log of this service has no level of its own"
			}
			return ""
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			var level slog.Level
			err := level.UnmarshalText([]byte(s.LogLevel))
			return func() { x.reload.level.Set(level) }, err
		}},
		{settings: []string{"log-format"}, restart: func(_, _ settings.Settings) string {
			if x.reload.json == nil {
				return "the log of this service has no format of its own"
			}
			return ""
		}, prepare: plain(func(s settings.Settings) { x.reload.json.Store(s.LogFormat == "json") })},
		{settings: []string{"backup-age-max"}, prepare: plain(func(settings.Settings) {})}, // it is read at each look
		{settings: []string{"log-events"}, prepare: plain(func(s settings.Settings) { x.events.SetEach(s.LogEvents) })},
		{settings: coreSettings, prepare: plain(func(s settings.Settings) { engine.Configure(x.engine, s.Cell()) })},
		// The core comes before the sender, which would find no notices otherwise.
		{settings: []string{"notify-events", "notify-topics"}, prepare: plain(func(s settings.Settings) {
			engine.Configure(x.engine, s.Cell())
			x.notify.Set(x.newSender(s))
		})},
		{settings: []string{"quotas"}, prepare: plain(func(s settings.Settings) { _ = x.quotas.Set(s.Quotas) })}, // Check has parsed it
		{settings: []string{"server-clock-skew"}, prepare: plain(func(s settings.Settings) { x.link.SetClockSkew(s.ServerClockSkew) })},
		{settings: []string{"match-every"}, prepare: plain(func(s settings.Settings) { x.matches.SetPassEvery(s.MatchEvery) })},
		{settings: []string{"limits", "limit-working-requests", "client-key-rate", "client-address-rate"}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			limits, err := apiLimits(s)
			return func() {
				x.api.SetLimits(limits)
				x.scripts.SetWorking(s.LimitWorkingRequests)
			}, err
		}},
		{settings: []string{
			"limit-connections", "limit-connections-unproven", "limit-connections-per-address", "limit-connections-http", "limit-connections-game-servers",
			"limit-connections-player-streams", "limit-connections-partner-streams", "limit-connections-event-streams", "trusted-proxies",
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			limits, err := connlimit.Derive(x.descriptors, s.Connections())
			return func() {
				x.limits.Set(limits, s.SharedAddresses())
				x.proxies.Set(s.Proxies())
			}, err
		}},
		{settings: []string{"disk-reserve", "builds-max", "session-logs-max", "metrics-max", "metrics-series"}, restart: func(now, next settings.Settings) string {
			if (now.BuildsMax == 0) != (next.BuildsMax == 0) || (now.SessionLogsMax == 0) != (next.SessionLogsMax == 0) || (now.MetricsMax == 0) != (next.MetricsMax == 0) {
				return "a store is turned on or off when builds-max, session-logs-max or metrics-max changes from or to 0"
			}
			return ""
		}, prepare: plain(func(s settings.Settings) {
			x.room.reserve.Store(uint64(s.DiskReserve))
			if x.parts != nil {
				x.parts.SetLimits(int64(s.BuildsMax), 2*int64(s.DiskReserve))
			}
			if x.sessionLogs != nil {
				x.sessionLogs.SetLimits(int64(s.SessionLogsMax), 2*int64(s.DiskReserve))
			}
			if x.kept != nil {
				x.kept.SetLimits(int64(s.MetricsMax), s.MetricsSeries)
			}
		})},
		{settings: []string{"require-tls"}, prepare: plain(func(s settings.Settings) { x.requireTLS.Set(s.TLSRequired()) })},
		{settings: []string{"tls-cert", "tls-key"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"tls-cert": s.TLSCert, "tls-key": s.TLSKey}
		}, restart: func(now, next settings.Settings) string {
			if (now.TLSCert == "") != (next.TLSCert == "") {
				return "TLS with certificate files is turned on or off"
			}
			return ""
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			if s.TLSCert == "" {
				return func() {}, nil
			}
			pair, err := listen.LoadFiles(s.TLSCert, s.TLSKey, x.log)
			return func() { x.pair.Set(pair) }, about("tls-cert", err)
		}},
		{settings: []string{"partner-client-ca"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"partner-client-ca": s.PartnerClientCA}
		}, restart: func(now, next settings.Settings) string {
			if (now.PartnerClientCA == "") != (next.PartnerClientCA == "") {
				return "client certificates are turned on or off"
			}
			return ""
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			if x.authorities.Get() == nil {
				return func() {}, nil
			}
			authorities, err := listen.LoadAuthorities(s.PartnerClientCA, x.log)
			return func() { x.authorities.Set(authorities) }, about("partner-client-ca", err)
		}},
		{settings: []string{"people"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"people": s.People}
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			file, err := providers.ReadFile(s.People)
			return func() { x.people.SetFile(file) }, about("people", err)
		}},
		{settings: []string{"web-identities"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"web-identities": s.WebIdentities}
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			issuers, err := openIssuers(s, x.log)
			if issuers != nil {
				issuers.KeepKeys(x.machines.Get())
			}
			return func() { x.machines.Set(issuers) }, err
		}},
		{settings: []string{"client-certificates"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"client-certificates": s.ClientCertificates}
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			authorities, err := openCertificates(s, x.log)
			return func() { x.backends.Set(authorities) }, err
		}},
		{settings: []string{"otlp-endpoint", "audit-export"}, prepare: func(ctx context.Context, s settings.Settings) (func(), error) {
			ctx = context.WithoutCancel(ctx)
			exporter, err := x.newAuditExport(ctx, s)
			if err != nil || s.OTLPEndpoint == x.reload.current.Get().OTLPEndpoint {
				return func() { x.exports.Set(exporter) }, err
			}
			collector, err := otlp.Open(ctx, x.collector(s))
			return func() {
				x.exports.Set(exporter)
				x.exportTo(ctx, collector)
			}, about("otlp-endpoint", err)
		}},
		{settings: []string{
			"webhook-allow", "player-oidc-issuer", "player-oidc-audience", "player-oidc-keys", "player-oidc-claim", "player-oidc-prefix",
			"player-login-keys", "player-login-audience", "player-login-issuer", "player-origins", "player-logins-per-address", "player-rates",
		}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"player-login-keys": s.PlayerLoginKeys}
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			if x.players == nil {
				return func() {}, nil
			}
			oidc, err := x.playersOIDC.with(s)
			if err != nil {
				return nil, err
			}
			c, err := x.changeable(s, oidc)
			return func() {
				x.playersOIDC = oidc
				x.players.Change(c)
			}, err
		}},
		{settings: []string{"player-hooks"}, files: func(s settings.Settings) map[string]string {
			return map[string]string{"player-hooks": s.PlayerHooks}
		}, restart: func(_, next settings.Settings) string {
			// The questions about penalties follow the journal from the start on.
			if c, err := playerhooks.ReadFile(next.PlayerHooks); err == nil && x.hooks != nil {
				if _, asks := c.Hooks[playerhooks.DecidePenalty]; asks != x.hooks.On(playerhooks.DecidePenalty) {
					return "the hook " + string(playerhooks.DecidePenalty) + " is turned on or off"
				}
			}
			return ""
		}, prepare: func(_ context.Context, s settings.Settings) (func(), error) {
			if x.hooks == nil {
				return func() {}, nil
			}
			c, err := playerhooks.ReadFile(s.PlayerHooks)
			return func() { x.hooks.Set(c) }, about("player-hooks", err)
		}},
	}
}

// plain returns a prepare function for values that cannot be refused once they have been checked.
func plain(apply func(s settings.Settings)) func(context.Context, settings.Settings) (func(), error) {
	return func(_ context.Context, s settings.Settings) (func(), error) { return func() { apply(s) }, nil }
}

// about adds the name of the setting to an error.
func about(setting string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), setting) {
		return err
	}
	return fmt.Errorf("%s: %w", setting, err)
}
