package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// PlayerDev reports whether players log in under any name.
func (s Settings) PlayerDev() bool {
	return s.PlayerDevLogins || s.Dev && s.PlayerOIDCIssuer == ""
}

// Origins are the web pages that may call as players.
func (s Settings) Origins() []string { return strings.Fields(s.PlayerOrigins) }

// Proxies are those that are trusted; what is none Check has named.
func (s Settings) Proxies() (all []netip.Prefix) {
	for _, text := range strings.Fields(s.TrustedProxies) {
		if p, err := proxy(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// proxy reads a network, or one address.
func proxy(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// checkPlayerDoors is about who reaches the doors of player flow, and how.
func (s Settings) checkPlayerDoors() error {
	var errs []error
	for _, origin := range s.Origins() {
		if origin == "*" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) || strings.Contains(origin, "*") {
			errs = append(errs, fmt.Errorf("player-origins %q: want scheme, host and port as browsers say them, such as https://play.example.com, or *", origin))
		}
	}
	for _, text := range strings.Fields(s.TrustedProxies) {
		if _, err := proxy(text); err != nil {
			errs = append(errs, fmt.Errorf("trusted-proxies %q: want an address or a network, such as 10.0.0.0/8", text))
		}
	}
	if s.PlayerLoginKeys == "" && s.PlayerLoginAudience+s.PlayerLoginIssuer != "" {
		errs = append(errs, errors.New("player-login-audience or player-login-issuer without player-login-keys: want the keys that such tokens are signed with"))
	}
	switch {
	case s.PartnerClientCA == "":
	case s.PartnerListen == "" && s.OperatorListen == "":
		errs = append(errs, errors.New("partner-client-ca without partner-listen and operator-listen: the one port asks nobody for a certificate"))
	case !s.HasCertificate() && !s.Dev:
		errs = append(errs, errors.New("partner-client-ca without a certificate (tls-cert or tls-acme-email): client certificates are shown over TLS only"))
	}
	return errors.Join(errs...)
}

// checkDevLogins keeps logins without any proof from strangers, and from weakening those with one.
func (s Settings) checkDevLogins() error {
	if !s.PlayerDevLogins {
		return nil
	}
	var errs []error
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && !loopback(host) && !s.PlayerDevInsecure {
		errs = append(errs, fmt.Errorf("player-dev-logins with listen %q: anybody could be any player; want a loopback address, or player-dev-allow-insecure", s.Listen))
	}
	if (s.PlayerOIDCIssuer != "" || s.PlayerLoginKeys != "") && !s.PlayerDevMixed {
		errs = append(errs, errors.New("player-dev-logins beside player-oidc-issuer or player-login-keys: whoever names a player would be that player; want one of them, or player-dev-allow-mixed"))
	}
	return errors.Join(errs...)
}
