package settings

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestPlayerDoors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Settings)
		want   string // in the error; empty: none
	}{
		{"origins", func(s *Settings) { s.PlayerOrigins = "https://play.example.com http://localhost:5173 *" }, ""},
		{"an origin with a path", func(s *Settings) { s.PlayerOrigins = "https://play.example.com/" }, "player-origins"},
		{"an origin without a scheme", func(s *Settings) { s.PlayerOrigins = "play.example.com" }, "player-origins"},
		{"an origin with capitals, which no browser sends", func(s *Settings) { s.PlayerOrigins = "https://Play.example.com" }, "player-origins"},
		{"a pattern", func(s *Settings) { s.PlayerOrigins = "https://*.example.com" }, "player-origins"},
		{"proxies", func(s *Settings) { s.TrustedProxies = "10.0.0.0/8 192.0.2.1 fd00::/8" }, ""},
		{"a proxy by name", func(s *Settings) { s.TrustedProxies = "proxy.example.com" }, "trusted-proxies"},
		{"a network that is none", func(s *Settings) { s.TrustedProxies = "10.0.0.0/33" }, "trusted-proxies"},
		{"certificates that no door asks for", func(s *Settings) { s.PartnerClientCA, s.TLSCert, s.TLSKey = "ca.pem", "c", "k" }, "partner-client-ca"},
		{"whom tokens are for, and no keys", func(s *Settings) { s.PlayerLoginAudience = "muster" }, "player-login-audience"},
		{"whom tokens are from, and no keys", func(s *Settings) { s.PlayerLoginIssuer = "lobby" }, "player-login-issuer"},
		{"tokens of backends", func(s *Settings) {
			s.PlayerLoginKeys, s.PlayerLoginAudience, s.PlayerLoginIssuer = "keys.json", "muster", "lobby shop"
		}, ""},
		{"certificates without TLS", func(s *Settings) { s.PartnerClientCA, s.PartnerListen = "ca.pem", "127.0.0.1:0" }, "partner-client-ca"},
		{"certificates", func(s *Settings) {
			s.PartnerClientCA, s.PartnerListen, s.TLSCert, s.TLSKey = "ca.pem", "127.0.0.1:0", "c", "k"
		}, ""},
		{"development logins on this machine", func(s *Settings) { s.PlayerDevLogins = true }, ""},
		{"development logins for all", func(s *Settings) { s.PlayerDevLogins, s.Listen = true, ":8080" }, "player-dev-logins"},
		{"development logins for all who know", func(s *Settings) { s.PlayerDevLogins, s.Listen, s.PlayerDevInsecure = true, ":8080", true }, ""},
		{"development logins beside a provider", func(s *Settings) {
			s.PlayerDevLogins, s.PlayerOIDCIssuer, s.PlayerOIDCAudience = true, "https://id.example.com", "game"
		}, "player-dev-logins"},
		{"development logins mixed", func(s *Settings) {
			s.PlayerDevLogins, s.PlayerOIDCIssuer, s.PlayerOIDCAudience, s.PlayerDevMixed = true, "https://id.example.com", "game", true
		}, ""},
		{"development logins beside signed ones", func(s *Settings) { s.PlayerDevLogins, s.PlayerLoginKeys = true, "keys.json" }, "player-dev-logins"},
	} {
		s := Defaults()
		s.PlayerFlow = true
		c.change(&s)
		err := s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	s := Settings{TrustedProxies: "10.1.2.3/8 192.0.2.1 ::ffff:172.16.1.0/108"}
	if got := s.Proxies(); !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("172.16.0.0/12")}) {
		t.Errorf("proxies: %v", got)
	}
	for _, c := range []struct {
		s    Settings
		want bool
	}{
		{Settings{}, false}, {Settings{Dev: true}, true}, {Settings{Dev: true, PlayerOIDCIssuer: "https://a"}, false}, {Settings{PlayerDevLogins: true, PlayerOIDCIssuer: "https://a"}, true},
	} {
		if got := c.s.PlayerDev(); got != c.want {
			t.Errorf("%+v: development logins %t", c.s, got)
		}
	}
}
