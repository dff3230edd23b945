package settings

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"

	"github.com/musterhq/muster/internal/hostname"
)

// hostForm is a full host name in the form that certificates and TLS clients use.
var hostForm = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)

// checkACME finds mistakes that an authority would report only later and less clearly.
func (s Settings) checkACME() error {
	if s.TLSACMEEmail == "" {
		if s.TLSACMEDirectory != "" {
			return fmt.Errorf("tls-acme-directory %q without tls-acme-email: want an address for the authority to write to", s.TLSACMEDirectory)
		}
		return nil
	}
	var errs []error
	if a, err := mail.ParseAddress(s.TLSACMEEmail); err != nil || a.Address != s.TLSACMEEmail {
		errs = append(errs, fmt.Errorf("tls-acme-email %q: want an address such as ops@example.com", s.TLSACMEEmail))
	}
	if s.TLSCert != "" {
		errs = append(errs, errors.New("tls-acme-email with tls-cert: want one of them"))
	}
	if s.Dev {
		errs = append(errs, errors.New("tls-acme-email with dev: dev has a certificate of its own; want one of them"))
	}
	host := s.PublicHost()
	_, notName := netip.ParseAddr(host)
	if !s.BehindTLS() || notName == nil || !hostForm.MatchString(host) {
		errs = append(errs, fmt.Errorf("tls-acme-email with public-url %q: want https and a host name that the authority can resolve, such as https://muster.example.com (non-ASCII names as xn--…)", Shown("public-url", s.PublicURL)))
	}
	here, err := s.checkDirectory()
	if err != nil {
		errs = append(errs, err)
	}
	if listens, _, err := net.SplitHostPort(s.Listen); err == nil && hostname.IsLoopback(listens) && !here {
		errs = append(errs, fmt.Errorf("tls-acme-email with listen %q: the authority connects to this service; want an address that other machines can reach, such as :443", s.Listen))
	}
	return errors.Join(errs...)
}

// checkDirectory checks the authority's URL. here reports whether the authority is on this machine, as in tests: then it needs no TLS, and may connect to loopback.
func (s Settings) checkDirectory() (here bool, err error) {
	if s.TLSACMEDirectory == "" {
		return false, nil
	}
	u, err := url.Parse(s.TLSACMEDirectory)
	here = err == nil && hostname.IsLoopback(u.Hostname())
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !here) {
		return here, fmt.Errorf("tls-acme-directory %q: want an https URL, such as https://acme.example.com/directory", Shown("tls-acme-directory", s.TLSACMEDirectory))
	}
	return here, nil
}
