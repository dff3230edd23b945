package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerrates"
)

var (
	reconnectModes = map[string]flow.Reconnect{"OFF": flow.ReconnectOff, "OPTIONAL": flow.ReconnectOptional, "REQUIRED": flow.ReconnectRequired}
	penaltyModes   = map[string]flow.PenaltyMode{"OFF": flow.PenaltiesOff, "REPORT_ONLY": flow.PenaltiesReported, "ENFORCE": flow.PenaltiesEnforced}
)

// playerFlow returns the part of the settings that the core needs; nil without player flow.
func (s Settings) playerFlow() *flow.Config {
	if !s.PlayerFlow {
		return nil
	}
	c := flow.DefaultConfig()
	c.Logins.PerSecond, c.Logins.OnlineMax = s.PlayerLogins, s.PlayersOnline
	c.Games.Reconnect, c.Games.ReconnectWindow = reconnectModes[s.PlayerReconnect], s.PlayerReconnectWindow
	c.Games.DirectJoin = s.PlayerDirectJoin
	if s.PlayerDirectCreate != "" {
		c.Games.DirectCreate, c.Games.DirectQueue = true, s.PlayerDirectCreate
	}
	c.Penalties.Mode = penaltyModes[s.PlayerPenalties]
	return &c
}

func (s Settings) checkPlayerFlow() error {
	errs := []error{
		oneOf("player-reconnect", s.PlayerReconnect, "OFF", "OPTIONAL", "REQUIRED"),
		oneOf("player-penalties", s.PlayerPenalties, "OFF", "REPORT_ONLY", "ENFORCE"),
		atLeast("player-logins", s.PlayerLogins, 0),
		atLeast("player-logins-per-address", s.PlayerLoginsPerAddress, 0),
		atLeast("players-online", s.PlayersOnline, 0),
	}
	if _, err := playerrates.Parse(s.PlayerRates); err != nil {
		errs = append(errs, fmt.Errorf("player-rates: %w", err))
	}
	if _, err := playerhooks.ReadFile(s.PlayerHooks); err != nil {
		errs = append(errs, fmt.Errorf("player-hooks: %w", err))
	}
	if s.PlayerReconnectWindow < 0 || s.PlayerReconnectWindow > 2*time.Hour {
		errs = append(errs, fmt.Errorf("player-reconnect-window %s: want 0s to 2h", s.PlayerReconnectWindow))
	}
	for _, x := range []named{{"partner-listen", s.PartnerListen}, {"operator-listen", s.OperatorListen}} {
		if x.value == "" {
			continue
		}
		if host, _, err := net.SplitHostPort(x.value); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: want HOST:PORT", x.name, x.value))
		} else if s.Dev && !hostname.IsLoopback(host) {
			errs = append(errs, fmt.Errorf("%s %q with dev: dev accepts any credentials, so it listens on loopback only; want a loopback address", x.name, x.value))
		}
	}
	if s.PlayerFlowConfig != "" && !s.PlayerFlow {
		errs = append(errs, fmt.Errorf("player-flow-config %q without player-flow: want both or neither", s.PlayerFlowConfig))
	}
	errs = append(errs, s.checkPlayerDoors(), s.checkDevLogins())
	if s.PlayerOIDCIssuer == "" {
		return errors.Join(errs...)
	}
	for _, x := range []named{{"player-oidc-issuer", s.PlayerOIDCIssuer}, {"player-oidc-keys", s.PlayerOIDCKeys}} {
		if u, err := url.Parse(x.value); x.value != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
			errs = append(errs, fmt.Errorf("%s %q: want an https URL", x.name, Shown(x.name, x.value)))
		}
	}
	if len(strings.Fields(s.PlayerOIDCAudience)) == 0 {
		errs = append(errs, errors.New("player-oidc-audience is empty: want the audience of the tokens, so that tokens for other services are refused"))
	}
	return errors.Join(errs...)
}
