package service

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/acmecert"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/socketerror"
)

// socketURL returns a URL with the scheme ws or wss.
func socketURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "http"); ok {
		return "ws" + rest
	}
	return url
}

// openPort binds the port with the certificate that the settings name or, for development, with a self-issued one.
func (x *Service) openPort(doors *router) (*listen.Server, error) {
	config := listen.Config{Addr: x.settings.Listen, Handler: x.guarded(doors, doors.refuse), Limits: x.limits, Panics: x.panics, Log: x.log, ReleaseBuffers: x.settings.TLSReleaseBuffers}
	if err := x.openACME(); err != nil {
		return nil, err
	}
	certificate, err := x.certificate()
	if err != nil {
		return nil, err
	}
	config.Certificate, config.Challenges = certificate, x.acme != nil
	port, err := listen.Open(config)
	if err != nil {
		return nil, portError(err, "--listen")
	}
	return port, nil
}

// portError adds the remedy to the error of a port, and the flag that names another port.
func portError(err error, flag string) error {
	switch {
	case socketerror.InUse(err):
		return fmt.Errorf("%w: another program, or another Muster, uses this port; choose a free one with %s HOST:PORT", err, flag)
	case socketerror.NotLocal(err):
		return fmt.Errorf("%w: this machine does not have the address; name one of its own with %s HOST:PORT, or :PORT for all", err, flag)
	case isBind(err) && errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: this user may not bind the port; give the program the right (AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd unit, or setcap cap_net_bind_service=+ep FILE), "+
			"or choose a port from 1024 on with %s HOST:PORT", err, flag)
	}
	return err
}

// isBind reports whether an error is one of binding the port, rather than of reading a file.
func isBind(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

// openACME prepares to get a certificate from an ACME authority, if the settings name one.
func (x *Service) openACME() (err error) {
	s := x.settings
	if s.TLSACMEEmail == "" {
		return nil
	}
	x.acme, err = acmecert.Open(acmecert.Config{
		Host: s.PublicHost(), Email: s.TLSACMEEmail, Directory: s.TLSACMEDirectory, Dir: filepath.Join(s.Data, "acme"), Log: x.log,
	})
	return err
}

func (x *Service) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	s := x.settings
	switch {
	case s.TLSCert != "":
		if x.pair.Get() == nil {
			files, err := listen.LoadFiles(s.TLSCert, s.TLSKey, x.log)
			if err != nil {
				return nil, err
			}
			x.pair.Set(files)
		}
		return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return x.pair.Get().Certificate(hello) }, nil
	case s.TLSACMEEmail != "":
		return x.acme.Certificate, nil
	case s.Dev:
		var hosts []string
		if u, err := url.Parse(s.PublicURL); err == nil {
			hosts = append(hosts, u.Hostname())
		}
		authority, err := devca.Open(s.Data, hosts...)
		if err != nil {
			return nil, err
		}
		return authority.Certificate, nil
	}
	return nil, nil
}

// publicURL returns the URL to which game servers connect.
func publicURL(s settings.Settings, bound net.Addr) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	host, port, _ := net.SplitHostPort(bound.String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	scheme := "ws"
	if s.HasCertificate() {
		scheme = "wss"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// confirmURL returns the URL at which receivers of notifications confirm their subscriptions: the public URL with the
// scheme http or https.
func confirmURL(publicURL string) string {
	return webURL(strings.TrimRight(publicURL, "/") + notify.ConfirmPath)
}

// webURL returns a URL with the scheme http or https.
func webURL(url string) string {
	if rest, ok := strings.CutPrefix(url, "ws"); ok { // ws, wss
		return "http" + rest
	}
	return url
}
