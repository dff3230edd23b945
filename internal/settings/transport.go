package settings

import (
	"errors"
	"net/url"
	"strings"
)

// HasCertificate reports whether the service itself serves TLS with a certificate that the operator configured.
func (s Settings) HasCertificate() bool { return s.TLSCert != "" || s.TLSACMEEmail != "" }

// BehindTLS reports whether the public URL tells clients to use TLS.
func (s Settings) BehindTLS() bool {
	return strings.HasPrefix(s.PublicURL, "https:") || strings.HasPrefix(s.PublicURL, "wss:")
}

// TLSRequired reports whether requests from other machines must use TLS.
func (s Settings) TLSRequired() bool {
	if s.RequireTLS == "auto" {
		return s.HasCertificate() || s.BehindTLS()
	}
	return s.RequireTLS == "on"
}

// UnnamedProxy reports whether a proxy terminates TLS that trusted-proxies does not name. To limits by address, all clients are one then: the proxy.
func (s Settings) UnnamedProxy() bool {
	return s.BehindTLS() && !s.HasCertificate() && !s.Dev && s.TrustedProxies == ""
}

// PublicHost returns the host name or address of the public URL in lower case; empty without one.
func (s Settings) PublicHost() string {
	u, err := url.Parse(s.PublicURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func (s Settings) checkRequireTLS() error {
	err := oneOf("require-tls", s.RequireTLS, "auto", "on", "off")
	if s.RequireTLS == "on" && !s.HasCertificate() && !s.Dev && s.TrustedProxies == "" {
		err = errors.New(`require-tls "on" without tls-cert and trusted-proxies: no other machine could connect; want a certificate, or the address of the proxy that terminates TLS`)
	}
	return err
}
