package service

import (
	"errors"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/playerapi"
	"github.com/musterhq/muster/internal/playerhooks"
)

// openPlayerFlow opens the door of player flow, and the listeners that trusted servers and operators have for themselves.
func (x *Service) openPlayerFlow(doors *router) error {
	s := x.settings
	if !s.PlayerFlow {
		return nil
	}
	providers := map[string]playerapi.Provider{}
	switch {
	case s.PlayerOIDCIssuer != "":
		oidc, err := playerapi.NewOIDC(playerapi.OIDCConfig{
			Issuer: s.PlayerOIDCIssuer, Audiences: strings.Fields(s.PlayerOIDCAudience), JWKS: s.PlayerOIDCKeys, Claim: s.PlayerOIDCClaim, Prefix: s.PlayerOIDCPrefix,
		})
		if err != nil {
			return err
		}
		providers["oidc"] = oidc
	case s.Dev:
		// Not beside one that checks who somebody is: it would make that worthless.
		providers["dev"] = playerapi.Development{}
		x.log.Warn("players log in under any name that they like (provider dev); this is for one machine only")
	}
	hooks, err := playerhooks.ReadFile(s.PlayerHooks)
	if err != nil {
		return err
	}
	x.hooks = playerhooks.New(hooks, x.keys.CellSecret().WebhookKey(playerhooks.KeyTarget), x.log)
	x.players = playerapi.NewDoor(playerapi.Config{
		Hooks: x.hooks,
		Engine: x.engine, Secret: x.keys.CellSecret(), Keys: x.keys, Providers: providers, Dev: s.Dev,
		Secure:          strings.HasPrefix(s.PublicURL, "https:") || strings.HasPrefix(s.PublicURL, "wss:"),
		LoginsPerSecond: float64(s.PlayerLogins), LoginsPerAddress: s.PlayerLoginsPerAddress, OnlineMax: s.PlayersOnline,
		PublicURL: s.PublicURL, Log: x.log,
	})
	doors.players = x.players.Player()
	if s.Dev {
		doors.players = x.players
	}
	if err := x.openBeside(s.PartnerListen, x.players.Partner()); err != nil {
		return err
	}
	return x.openBeside(s.OperatorListen, x.players.Operator())
}

// openBeside serves a handler on an address of its own, with the certificate of the port.
func (x *Service) openBeside(address string, handler http.Handler) error {
	if address == "" {
		return nil
	}
	certificate, err := x.certificate()
	if err != nil {
		return err
	}
	port, err := listen.Open(listen.Config{Addr: address, Handler: handler, Log: x.log, Certificate: certificate})
	if err != nil {
		return err
	}
	x.beside = append(x.beside, port)
	x.log.Info("listening", "address", port.Addr().String())
	go func() {
		if err := port.Serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			x.log.Error("a port beside the main one is lost", "address", address, "err", err)
		}
	}()
	return nil
}

// Beside are the ports of trusted servers and operators, in this order, as far as they have their own.
func (x *Service) Beside() (addresses []string) {
	for _, port := range x.beside {
		addresses = append(addresses, port.Addr().String())
	}
	return addresses
}
