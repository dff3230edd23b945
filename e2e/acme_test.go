package e2e

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/listen/acmetest"
	"github.com/musterhq/muster/internal/waittest"
)

// The binary gets its certificate from an authority, requires TLS from then on, serves game servers and clients over it, and has the certificate
// at once after a restart.
func TestCertificateByACME(t *testing.T) {
	t.Parallel()
	const host = "muster.example.test"
	authority := acmetest.New(t)
	s := newService(t, "--dev=false", "--tls-acme-email", "ops@example.test", "--tls-acme-directory", authority.Directory(), "--public-url", "https://"+host)
	listen := s.address
	authority.Resolve(listen)
	s.start()
	trusted := &tls.Config{RootCAs: authority.Pool(), ServerName: host}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}}
	healthy := func() bool {
		answer, err := client.Get("https://" + listen + "/healthz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK && answer.Header.Get("Strict-Transport-Security") != ""
	}
	waittest.Until(t, "an answer over TLS", healthy)
	_, err := linkclient.Dial(t.Context(), linkclient.Options{URL: "wss://" + listen, Process: "p", Compute: "c", Fleet: "fleet-1", Token: "t", TLS: trusted})
	if err == nil || !strings.Contains(err.Error(), "compute c is not registered") {
		t.Errorf("a game server over TLS: %v, want the refusal of an unknown compute", err)
	}
	if info, err := os.Stat(filepath.Join(s.data, "acme")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of certificates: %v, %v", info, err)
	}
	if strings.Contains(s.logs.tail(200), "plain HTTP is served") {
		t.Error("a service with a certificate warns of plain HTTP")
	}
	s.kill()
	authority.Down(true)
	s.start()
	if !healthy() {
		t.Error("no certificate right after a restart without the authority")
	}
	if n := authority.Issued(); n != 1 {
		t.Errorf("%d certificates, want 1", n)
	}
}
