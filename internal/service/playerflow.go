package service

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/playerapi"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/playerwatch"
	"github.com/musterhq/muster/internal/settings"
)

// openPlayerFlow opens the door of player flow, and the separate listeners of trusted servers and operators.
func (x *Service) openPlayerFlow(doors *router, calls *callstats.Calls) error {
	s := x.settings
	if !s.PlayerFlow {
		return nil
	}
	oidc, err := x.playersOIDC.with(s)
	if err != nil {
		return err
	}
	may, err := x.changeable(s, oidc)
	if err != nil {
		return err
	}
	x.playersOIDC = oidc
	x.beginWarning()
	hooks, err := playerhooks.ReadFile(s.PlayerHooks)
	if err != nil {
		return err
	}
	x.hooks = playerhooks.New(hooks, func() []string { return x.secret.WebhookKeys(playerhooks.KeyTarget) }, x.log)
	x.players = playerapi.NewDoor(playerapi.Config{
		Hooks: x.hooks, Webhooks: may.Webhooks, Transport: x.transport, Origins: may.Origins,
		Engine: x.engine, Secret: x.secret, Keys: x.keys, Providers: may.Logins.Providers, LoginKeys: may.Logins.Keys, Dev: s.Dev,
		Signins: authentication.Signins{
			Players: x.signins.Door("players"), Partners: x.signins.Door("partners"), Operators: x.signins.Door("player_operators"),
		},
		LoginsPerAddress: may.LoginsPerAddress, Rates: may.Rates,
		PublicURL: s.PublicURL, Panics: x.panics, Calls: calls, Tracing: x.tracing, Log: x.log, Node: x.incarnation(), Audit: x.audit, Ready: x.Ready,
	})
	x.watch = playerwatch.Start(playerwatch.Config{Engine: x.engine, Log: x.log})
	x.once = append(x.once, x.players, x.watch)
	x.metrics.Register(append(x.players.Collectors(), x.watch)...)
	x.metrics.Register(x.hooks.Collectors()...)
	doors.players = x.players.Player()
	if s.Dev {
		doors.players = x.players.All()
	}
	var clients func() *x509.CertPool
	if s.PartnerClientCA != "" {
		authorities, err := listen.LoadAuthorities(s.PartnerClientCA, x.log)
		if err != nil {
			return fmt.Errorf("partner-client-ca: %w", err)
		}
		x.authorities.Set(authorities)
		clients = func() *x509.CertPool { return x.authorities.Get().Pool() }
	}
	if err := x.openBeside("--partner-listen", s.PartnerListen, clients, x.players.Partner()); err != nil {
		return err
	}
	return x.openBeside("--operator-listen", s.OperatorListen, clients, x.players.Operator())
}

// changeable returns the part of the players' settings that a reload can change.
func (x *Service) changeable(s settings.Settings, oidc playersOIDC) (c playerapi.Changeable, err error) {
	c.Origins, c.LoginsPerAddress = s.Origins(), s.PlayerLoginsPerAddress
	c.Logins.Providers = playerProviders(s, oidc)
	if s.PlayerLoginKeys != "" {
		if c.Logins.Keys, err = authentication.OpenLoginKeys(authentication.LoginKeysConfig{
			Path: s.PlayerLoginKeys, Audiences: strings.Fields(s.PlayerLoginAudience), Issuers: strings.Fields(s.PlayerLoginIssuer), Now: x.engine.Now, Log: x.log,
		}); err != nil {
			return c, fmt.Errorf("player-login-keys: %w", err)
		}
	}
	if c.Rates, err = playerrates.Parse(s.PlayerRates); err != nil {
		return c, fmt.Errorf("player-rates: %w", err)
	}
	c.Webhooks, err = s.WebhookTargets()
	return c, err
}

// playersOIDC is the identity provider of players, and the settings that it was made with.
type playersOIDC struct {
	settings [5]string
	*authentication.OIDC
}

// with returns the provider with new settings. A provider whose settings have not changed stays, with the keys that were fetched from it: it may be down.
func (p playersOIDC) with(s settings.Settings) (playersOIDC, error) {
	made := [...]string{s.PlayerOIDCIssuer, s.PlayerOIDCAudience, s.PlayerOIDCKeys, s.PlayerOIDCClaim, s.PlayerOIDCPrefix}
	if s.PlayerOIDCIssuer == "" || p.OIDC != nil && p.settings == made {
		return p, nil
	}
	oidc, err := authentication.NewOIDC(authentication.OIDCConfig{
		Issuer: s.PlayerOIDCIssuer, Audiences: strings.Fields(s.PlayerOIDCAudience), JWKS: s.PlayerOIDCKeys, Claim: s.PlayerOIDCClaim, Prefix: s.PlayerOIDCPrefix,
	})
	return playersOIDC{made, oidc}, err
}

// playerProviders returns the identity providers of players.
func playerProviders(s settings.Settings, oidc playersOIDC) map[string]authentication.Provider {
	providers := map[string]authentication.Provider{}
	if s.PlayerOIDCIssuer != "" {
		providers["oidc"] = oidc.OIDC
	}
	if s.PlayerDev() {
		providers["dev"] = authentication.Development{}
	}
	return providers
}

// beginWarning starts to log a repeated warning while players need no credentials, which a reload can change.
func (x *Service) beginWarning() {
	ctx, stop := context.WithCancel(context.Background())
	x.stopWarning = stop
	x.warning.Go(func() { warnOfDevLogins(ctx, x.log, func() bool { return x.reload.current.Get().PlayerDev() }) })
}

// warnEvery is how often the log repeats a warning that must not be overlooked.
const warnEvery = time.Minute

// warnOfDevLogins repeats the warning until the service stops, while logins need no credentials.
func warnOfDevLogins(ctx context.Context, log *slog.Logger, open func() bool) {
	again := time.NewTicker(warnEvery)
	defer again.Stop()
	for {
		if open() {
			log.Warn("players may log in under any name (provider dev); use this on one machine only")
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// openBeside serves a handler on an address of its own, with the certificate of the port.
func (x *Service) openBeside(flag, address string, clients func() *x509.CertPool, handler http.Handler) error {
	if address == "" {
		return nil
	}
	certificate, err := x.certificate()
	if err != nil {
		return err
	}
	port, err := listen.Open(listen.Config{
		Addr: address, Handler: x.guarded(handler, refusePlayers), Limits: x.limits, Panics: x.panics, Log: x.log,
		Certificate: certificate, Clients: clients, ReleaseBuffers: x.settings.TLSReleaseBuffers,
	})
	if err != nil {
		return portError(err, flag)
	}
	x.beside = append(x.beside, port)
	x.log.Info("listening", "address", port.Addr().String())
	go func() {
		if err := port.Serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			x.log.Error("an additional port failed", "address", address, "error", err)
		}
	}()
	return nil
}

// Beside returns the addresses of the separate ports for trusted servers and for operators, in this order.
func (x *Service) Beside() (addresses []string) {
	for _, port := range x.beside {
		addresses = append(addresses, port.Addr().String())
	}
	return addresses
}
