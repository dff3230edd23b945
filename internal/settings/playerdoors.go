package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/hostname"
)

// PlayerDev reports whether players may log in under any name.
func (s Settings) PlayerDev() bool {
	return s.PlayerDevLogins || s.Dev && s.PlayerOIDCIssuer == ""
}

// Origins returns the sites whose web pages may call the player API.
func (s Settings) Origins() []string { return strings.Fields(s.PlayerOrigins) }

// Proxies returns the trusted proxies. Check has reported entries that cannot be parsed.
func (s Settings) Proxies() (all []netip.Prefix) {
	for _, text := range strings.Fields(s.TrustedProxies) {
		if p, err := hostname.Network(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// checkPlayerDoors checks the settings that decide which clients reach the doors of player flow.
func (s Settings) checkPlayerDoors() error {
	var errs []error
	for _, origin := range s.Origins() {
		if origin == "*" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) || strings.Contains(origin, "*") {
			errs = append(errs, fmt.Errorf("player-origins %q: want scheme, host and port as browsers send them, such as https://play.example.com, or *", origin))
		}
	}
	for _, text := range strings.Fields(s.TrustedProxies) {
		if _, err := hostname.Network(text); err != nil {
			errs = append(errs, fmt.Errorf("trusted-proxies %q: want an address or a network, such as 10.0.0.0/8", text))
		}
	}
	if s.PlayerLoginKeys == "" && s.PlayerLoginAudience+s.PlayerLoginIssuer != "" {
		errs = append(errs, errors.New("player-login-audience or player-login-issuer without player-login-keys: want the keys that sign these tokens"))
	}
	switch {
	case s.PartnerClientCA == "":
	case s.PartnerListen == "" && s.OperatorListen == "":
		errs = append(errs, errors.New("partner-client-ca without partner-listen and operator-listen: want one of these, because the main port does not use client certificates"))
	case !s.HasCertificate() && !s.Dev:
		errs = append(errs, errors.New("partner-client-ca without a certificate (tls-cert or tls-acme-email): want one of them, because client certificates need TLS"))
	}
	return errors.Join(errs...)
}

// checkDevLogins restricts logins without authentication to this machine and to services without an identity provider.
func (s Settings) checkDevLogins() error {
	if !s.PlayerDevLogins {
		return nil
	}
	var errs []error
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && !hostname.IsLoopback(host) && !s.PlayerDevInsecure {
		errs = append(errs, fmt.Errorf("player-dev-logins with listen %q: every client could log in as any player; want a loopback address, or player-dev-allow-insecure", s.Listen))
	}
	if (s.PlayerOIDCIssuer != "" || s.PlayerLoginKeys != "") && !s.PlayerDevMixed {
		errs = append(errs, errors.New("player-dev-logins beside player-oidc-issuer or player-login-keys: a client could log in as any player without a token; want one of them, or player-dev-allow-mixed"))
	}
	return errors.Join(errs...)
}
