package service

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/settings"
)

func TestWarningsAboutListening(t *testing.T) {
	const (
		plain   = "plain HTTP is served to other machines"
		refused = "requests from other machines are refused"
		name    = "connect to the name of this machine"
	)
	for _, c := range []struct {
		name   string
		change func(*settings.Settings)
		want   []string
	}{
		{"loopback", func(s *settings.Settings) {}, nil},
		{"loopback behind a proxy on this machine", func(s *settings.Settings) { s.PublicURL = "https://m.example" }, nil},
		{"everywhere", func(s *settings.Settings) { s.Listen = ":8080" }, []string{plain, name}},
		{"everywhere with a public URL", func(s *settings.Settings) { s.Listen, s.PublicURL = "0.0.0.0:8080", "ws://10.0.0.7:8080" }, []string{plain}},
		{"one address", func(s *settings.Settings) { s.Listen = "10.0.0.7:8080" }, []string{plain}},
		{"an https URL without a certificate", func(s *settings.Settings) { s.Listen, s.PublicURL = ":8080", "https://m.example" }, []string{refused}},
		{"a trusted proxy", func(s *settings.Settings) {
			s.Listen, s.PublicURL, s.TrustedProxies = ":8080", "https://m.example", "10.0.0.5"
		}, nil},
		{"a certificate", func(s *settings.Settings) {
			s.Listen, s.PublicURL, s.TLSCert = ":8443", "https://m.example", "chain.pem"
		}, nil},
		{"partners", func(s *settings.Settings) { s.PartnerListen = "[::]:8444" }, []string{plain}},
		{"TLS is not required", func(s *settings.Settings) { s.Listen, s.PublicURL, s.RequireTLS = ":8080", "https://m.example", "off" }, []string{plain}},
	} {
		log := &logtest.Log{}
		s := settings.Defaults()
		c.change(&s)
		x := &Service{settings: s, log: slog.New(slog.NewTextHandler(log, nil)), publicURL: "ws://host:8080"}
		x.warnOfListening()
		text := log.String()
		for _, w := range []string{plain, refused, name} {
			want := false
			for _, wanted := range c.want {
				want = want || w == wanted
			}
			if strings.Contains(text, w) != want {
				t.Errorf("%s: %q is said: %t, want %t:\n%s", c.name, w, !want, want, text)
			}
		}
	}
}
