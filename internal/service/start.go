package service

import (
	"net"

	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// checkPermissions refuses to start if other users of the machine can read the secret or the key that encrypts it, and warns of lesser problems.
func (x *Service) checkPermissions() (err error) {
	if x.key, err = secretkey.Read(x.settings.SecretKeyFile, x.settings.Data); err != nil {
		return err
	}
	warnings, err := identity.CheckPermissions(x.settings.Data)
	for _, w := range warnings {
		x.log.Warn(w)
	}
	return err
}

// warnOfListening logs a warning if limits take a proxy for the client of all requests, and one for each address that other machines reach without
// TLS: what happens to their requests and, if no setting names one, to which address game servers connect.
func (x *Service) warnOfListening() {
	s := x.settings
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && hostname.IsLoopback(host) && s.UnnamedProxy() {
		x.log.Warn("the proxy that terminates TLS is not in --trusted-proxies: limits by address count all clients together; if it runs on this machine, "+
			"set --trusted-proxies 127.0.0.1", "listen", s.Listen, "public_url", s.PublicURL)
	}
	for name, address := range map[string]string{"listen": s.Listen, "partner-listen": s.PartnerListen, "operator-listen": s.OperatorListen} {
		host, _, err := net.SplitHostPort(address)
		switch {
		case err != nil || hostname.IsLoopback(host) || s.HasCertificate(): // not set, or not reached without TLS
		case !s.TLSRequired():
			x.log.Warn("plain HTTP is served to other machines: others on the network can read keys, tokens and players' data; "+
				"set --tls-cert and --tls-key, or --tls-acme-email, or let a proxy terminate TLS, name it in --trusted-proxies and set an https --public-url", name, address)
		case s.TrustedProxies == "":
			x.log.Warn("no certificate and no trusted proxy: requests from other machines are refused; set --tls-cert and --tls-key, "+
				"or --tls-acme-email, or name the proxy that terminates TLS in --trusted-proxies, also if it runs on this machine", name, address, "public_url", s.PublicURL)
		}
	}
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && s.PublicURL == "" && hostname.IsUnspecified(host) {
		x.log.Warn("game servers connect to the name of this machine and must be able to resolve it; --public-url sets another address", "url", x.publicURL)
	}
}
