package acmecert_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/acmecert"
	"github.com/musterhq/muster/internal/listen/acmetest"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

const host = "muster.example.test"

// scene is a port with a certificate of an authority, which finds every host there.
type scene struct {
	*testing.T
	authority *acmetest.Authority
	certs     *acmecert.Certificates
	port      *listen.Server
	logged    logtest.Log
}

func newScene(t *testing.T, dir string, authority *acmetest.Authority) *scene {
	t.Helper()
	s := &scene{T: t, authority: authority}
	log := slog.New(slog.NewTextHandler(&s.logged, nil))
	certs, err := acmecert.Open(acmecert.Config{
		Host: host, Email: "ops@example.test", Directory: authority.Directory(), Dir: dir, Log: log, Pause: time.Millisecond, Look: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.certs = certs
	s.port, err = listen.Open(listen.Config{Addr: "127.0.0.1:0", Certificate: certs.Certificate, Challenges: true, Log: log,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.port.Serve() }()
	t.Cleanup(func() {
		certs.Close()
		if err := s.port.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		<-served
	})
	authority.Resolve(s.port.Addr().String())
	return s
}

// shake does a handshake as a client that sends a server name, and offers protocols.
func (s *scene) shake(name string, protocols ...string) (*x509.Certificate, error) {
	s.Helper()
	conn, err := tls.Dial("tcp", s.port.Addr().String(), &tls.Config{ServerName: name, NextProtos: protocols, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: s.authority.Pool()})
	return leaf, err
}

func (s *scene) until(what string, ok func() bool) {
	s.Helper()
	waittest.Until(s, what, ok)
}

func (s *scene) untilServed() (leaf *x509.Certificate) {
	s.Helper()
	s.until("a certificate", func() (ok bool) {
		var err error
		leaf, err = s.shake(host)
		return err == nil
	})
	return leaf
}

// The certificate is obtained in the background; a client gets it for every name, and no other is ever requested.
func TestCertificateOfAnAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme")
	authority := acmetest.New(t)
	s := newScene(t, dir, authority)
	if _, err := s.shake(host); err == nil {
		t.Error("a handshake before there is a certificate")
	}
	if n := len(authority.Asked()); n != 0 {
		t.Errorf("a handshake made %d orders", n)
	}
	s.certs.Start()
	first := s.untilServed()
	for name, protocols := range map[string][]string{
		"": nil, "127.0.0.1": nil, "other.example.test": nil, "MUSTER.example.test": {"http/1.1"}, host: {"h2", "http/1.1"}, "localhost": {"h2"},
	} {
		if leaf, err := s.shake(name, protocols...); err != nil || !leaf.Equal(first) {
			t.Errorf("a client that says %q and offers %v: %v", name, protocols, err)
		}
	}
	for _, name := range []string{"other.example.test", host, ""} { // a stranger's challenge, which is unknown
		if _, err := s.shake(name, acmecert.Protocol); err == nil {
			t.Errorf("a challenge for %q is answered", name)
		}
	}
	if got := strings.Join(authority.Asked(), " "); got != host || authority.Issued() != 1 {
		t.Errorf("the authority was asked for %q and issued %d, want %s once", got, authority.Issued(), host)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: host}}}
	answer, err := client.Get("https://" + s.port.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v; want 0700", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want 0600", f.Name(), info.Mode(), err)
		}
	}
	if err != nil || len(files) < 2 {
		t.Errorf("files: %v, %v", files, err)
	}

	// The next start has it at once, without the authority.
	authority.Down(true)
	again := newScene(t, dir, authority)
	if leaf, err := again.shake(host); err != nil || !leaf.Equal(first) {
		t.Errorf("right after a restart: %v", err)
	}
	again.certs.Start()
	again.until("the certificate to be in force", func() bool { return strings.Contains(again.logged.String(), "certificate in force") })
	if leaf, err := again.shake(host); err != nil || !leaf.Equal(first) || authority.Issued() != 1 {
		t.Errorf("after a restart: %v, %d issued", err, authority.Issued())
	}
}

// An authority that is down is asked again and again, and the log says so.
func TestAuthorityThatIsDownAtTheStart(t *testing.T) {
	authority := acmetest.New(t)
	authority.Down(true)
	s := newScene(t, t.TempDir(), authority)
	s.certs.Start()
	s.until("two failed attempts", func() bool { return strings.Count(s.logged.String(), "no certificate from the authority yet") >= 2 })
	if _, err := s.shake(host); err == nil {
		t.Error("a handshake without a certificate")
	}
	authority.Down(false)
	s.untilServed()
}

// A host name that resolves to another machine is not validated.
func TestHostThatIsElsewhere(t *testing.T) {
	authority := acmetest.New(t)
	authority.Forgetful = true
	s := newScene(t, t.TempDir(), authority)
	newScene(t, t.TempDir(), authority) // where the authority finds the host from now on
	s.certs.Start()
	s.until("a failed attempt", func() bool { return strings.Contains(s.logged.String(), "no certificate from the authority yet") })
	if n := authority.Issued(); n != 0 {
		t.Errorf("%d certificates for a host that was not proven", n)
	}
	if why := "remote error: tls:"; !strings.Contains(s.logged.String(), why) { // what the authority met there
		t.Errorf("the log lacks %q:\n%s", why, s.logged.String())
	}
	authority.Resolve(s.port.Addr().String())
	s.untilServed()
}

// A certificate that is about to expire is replaced while the port is in use.
func TestRenewal(t *testing.T) {
	authority := acmetest.New(t)
	authority.Life = [2]time.Duration{2 * time.Hour, 10 * time.Minute} // less than a third is left
	s := newScene(t, t.TempDir(), authority)
	s.certs.Start()
	s.until("the second certificate", func() bool {
		leaf, err := s.shake(host)
		return err == nil && time.Until(leaf.NotAfter) > 24*time.Hour
	})
	if n := authority.Issued(); n != 2 {
		t.Errorf("%d certificates, want 2", n)
	}
	s.until("the log to tell", func() bool { return strings.Contains(s.logged.String(), "certificate renewed") })
	if log := s.logged.String(); strings.Count(log, "certificate renewed") != 1 || strings.Count(log, "certificate in force") != 1 {
		t.Errorf("the log tells of each certificate once? %s", log)
	}
}

func TestCloseEndsAttempts(t *testing.T) {
	authority := acmetest.New(t)
	authority.Down(true)
	certs, err := acmecert.Open(acmecert.Config{Host: host, Directory: authority.Directory(), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	certs.Start()
	certs.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := acmecert.Open(acmecert.Config{Host: host, Dir: filepath.Join(file, "acme")}); err == nil || !strings.Contains(err.Error(), "directory of certificates") {
		t.Errorf("a directory that cannot be made: %v", err)
	}
}
