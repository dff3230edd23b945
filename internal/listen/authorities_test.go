package listen

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

// signer is an authority for clients.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T, name string) *signer {
	t.Helper()
	s := &signer{t: t}
	s.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, &x509.Certificate{Subject: pkix.Name{CommonName: name}}, s.key.Public(), s.key)
	if err == nil {
		s.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

func (s *signer) client(name string) tls.Certificate {
	s.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, s.cert, key.Public(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Authorities are removed from and added to a running port while clients connect. Unusable files change nothing.
func TestChangedAuthoritiesAreReadAgain(t *testing.T) {
	old, next := newSigner(t, "old"), newSigner(t, "next")
	path := filepath.Join(t.TempDir(), "clients.pem")
	stamp := time.Now()
	write := func(content ...[]byte) {
		t.Helper()
		stamp = stamp.Add(time.Hour) // file systems may keep whole seconds only
		half := path + ".half"
		if err := os.WriteFile(half, bytes.Join(content, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(half, stamp, stamp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(half, path); err != nil {
			t.Fatal(err)
		}
	}
	write(old.pem())
	var logged logtest.Log
	f, err := LoadAuthorities(path, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	look := func() { // as if the last check was long ago
		f.mu.Lock()
		f.checkedAt = time.Time{}
		f.mu.Unlock()
		f.Pool()
	}
	server := authority(t)
	s := serve(t, Config{Certificate: server.Certificate, Clients: f.Pool, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) > 0 {
			_, _ = io.WriteString(w, r.TLS.VerifiedChains[0][0].Subject.CommonName)
		}
	})})
	trusted := server.Pool()
	client := func(own ...tls.Certificate) func() (string, error) {
		config := &tls.Config{RootCAs: trusted, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		if len(own) > 0 { // sent for every request of the port
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own[0], nil }
		}
		c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
		return func() (string, error) { return fetch(c, s) }
	}
	ann, bob, nobody := client(old.client("ann")), client(next.client("bob")), client()
	polite := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: trusted, Certificates: []tls.Certificate{next.client("cem")}, ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}}}
	cem := func() (string, error) { return fetch(polite, s) } // shows a certificate only to those who name its authority
	wants := func(when string, get func() (string, error), want string) {
		t.Helper()
		if got, err := get(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", when, got, err, want)
		}
	}
	refused := func(when string, get func() (string, error)) {
		t.Helper()
		if got, err := get(); err == nil {
			t.Errorf("%s: let in as %q", when, got)
		}
	}
	wants("at the start", ann, "ann")
	wants("a second time", ann, "ann")
	refused("before its authority is there", bob)
	wants("before its authority is named", cem, "")

	write(old.pem(), []byte("\nand the next one:\n\n"), next.pem())
	look()
	wants("of the old authority", ann, "ann")
	wants("of the added authority", bob, "bob")
	wants("of the authority that is named now", cem, "cem")

	var ended atomic.Bool
	var others sync.WaitGroup
	made := make(chan struct{})
	for name, get := range map[string]func() (string, error){"bob": bob, "": nobody} {
		others.Go(func() {
			for !ended.Load() {
				if got, err := get(); err != nil || got != name {
					t.Errorf("meanwhile: %q, %v, want %q", got, err, name)
				}
				select {
				case made <- struct{}{}:
				default:
				}
			}
		})
	}
	awaitSome := func() {
		for range 5 {
			<-made
		}
	}
	awaitSome()
	write(next.pem())
	look()
	refused("of the authority that was taken away", ann)
	awaitSome()
	for when, content := range map[string][]byte{
		"half a certificate":                  next.pem()[:200],
		"one and a half":                      append(next.pem(), old.pem()[:200]...),
		"one that is damaged, before another": append(bytes.Replace(old.pem(), []byte("MI"), []byte("!!"), 1), next.pem()...),
		"one that is none":                    append(old.pem(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})...),
		"no certificate":                      []byte("soon\n"),
		"an empty file":                       nil,
		"a key":                               pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
	} {
		logged.Reset()
		write(content)
		look()
		if text := logged.String(); !strings.Contains(text, "stay in force") || !strings.Contains(text, path) {
			t.Errorf("%s: the log says %q", when, text)
		}
		refused(when, client(old.client("ann")))
		wants(when, client(next.client("bob")), "bob")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	look()
	wants("without the file", client(next.client("bob")), "bob")
	write(old.pem(), next.pem())
	look()
	wants("of the authority that is back", client(old.client("ann")), "ann")
	ended.Store(true)
	others.Wait()
}

// The service's log has the cause if a backend's certificate has expired or is from another authority.
func TestRefusedClientCertificateIsLogged(t *testing.T) {
	known, other := newSigner(t, "known"), newSigner(t, "other")
	server, clients := authority(t), x509.NewCertPool()
	clients.AddCert(known.cert)
	var logged logtest.Log
	s := serve(t, Config{
		Certificate: server.Certificate, Clients: func() *x509.CertPool { return clients }, Handler: http.HandlerFunc(hello), Log: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	own := other.client("eve")
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: server.Pool(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil },
	}}}
	for range 3 {
		if got, err := fetch(c, s); err == nil {
			t.Fatalf("let in: %q", got)
		}
	}
	waittest.Until(t, "the warning", func() bool { return strings.Contains(logged.String(), "unknown authority") })
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 || !strings.Contains(logged.String(), "the certificate of a TLS client is refused") {
		t.Errorf("%d warnings:\n%s", n, logged.String())
	}
}

func TestAuthoritiesThatAreNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.pem")
	if _, err := LoadAuthorities(path, quiet()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAuthorities(path, quiet()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file without certificates: %v", err)
	}
}

func fetch(c *http.Client, from *Server) (string, error) {
	answer, err := c.Get("https://" + from.Addr().String())
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
