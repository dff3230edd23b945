// Package acmecert gets the certificate of the public host from a certificate authority that speaks ACME (RFC 8555), proves control of the host
// by a TLS handshake on the service's own port (TLS-ALPN-01, RFC 8737), and renews the certificate before it expires.
//
// Only a background goroutine contacts the authority. A handshake gets the current certificate, so that no client can use up the authority's rate limits.
package acmecert

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

const (
	// firstPause and pauseMax bound the pause between attempts to get the first certificate. Let's Encrypt allows five failed validations an hour.
	firstPause = 2 * time.Minute
	pauseMax   = time.Hour

	// closeWait bounds how long a running attempt may delay the end of the service.
	closeWait = 5 * time.Second

	// lookEvery is the interval between checks of the current certificate: autocert reports neither the success nor the failure of a renewal.
	lookEvery = time.Hour
)

// Protocol is the ALPN protocol with which an authority validates the host.
const Protocol = acme.ALPNProto

// Config names the host and the authority of a certificate.
type Config struct {
	Host      string // a DNS name
	Email     string // for the authority's messages about the certificate
	Directory string // URL of the authority; empty: Let's Encrypt
	Dir       string // for the account's key and the certificate, readable only for the service's user

	Log   *slog.Logger
	HTTP  http.RoundTripper // nil: http.DefaultTransport
	Pause time.Duration     // before the second attempt; 0: 2 minutes
	Look  time.Duration     // between two checks of the current certificate; 0: an hour
}

// Certificates gets and renews the certificate of one host.
type Certificates struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	runs   sync.WaitGroup

	manager atomic.Pointer[autocert.Manager]
	renewed atomic.Bool                     // the manager has a certificate and renews it
	stored  atomic.Pointer[tls.Certificate] // from an earlier start, used until then; nil: none
	trouble atomic.Pointer[string]          // the last error from the authority or the connection to it
}

// errNone fails the handshakes of clients while there is no certificate.
var errNone = errors.New("acmecert: there is no certificate yet")

// Open reads the certificate of an earlier start. Start gets a missing one.
func Open(c Config) (*Certificates, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of certificates: %w", err)
	}
	c.HTTP = cmp.Or(c.HTTP, http.DefaultTransport)
	c.Pause = cmp.Or(c.Pause, firstPause)
	c.Look = cmp.Or(c.Look, lookEvery)
	x := &Certificates{config: c}
	x.ctx, x.stop = context.WithCancel(context.Background())
	x.manager.Store(x.newManager())
	text, err := os.ReadFile(filepath.Join(c.Dir, c.Host))
	if err != nil {
		return x, nil // the first start; if the file is unreadable, writing it will report that
	}
	pair, err := tls.X509KeyPair(text, text)
	if err == nil && pair.Leaf.VerifyHostname(c.Host) == nil && time.Now().Before(pair.Leaf.NotAfter) {
		x.stored.Store(&pair)
	}
	return x, nil
}

// newManager returns a fresh manager, because a manager remembers a failed attempt for a minute.
func (x *Certificates) newManager() *autocert.Manager {
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(x.config.Dir), HostPolicy: autocert.HostWhitelist(x.config.Host), Email: x.config.Email,
		Client: &acme.Client{
			DirectoryURL: x.config.Directory, HTTPClient: &http.Client{Transport: watched{x}}, UserAgent: "muster", RetryBackoff: x.retry,
		},
	}
}

// retry returns the pause before repeating a request that the authority could not serve or whose nonce was too old. By default the client
// repeats requests for five minutes without a log line.
func (x *Certificates) retry(n int, _ *http.Request, _ *http.Response) time.Duration {
	if n > 3 || x.ctx.Err() != nil {
		return -1
	}
	return min(time.Duration(n)*time.Second, x.config.Pause)
}

// Start begins to get the certificate. The port must already be served, because the authority connects to it.
func (x *Certificates) Start() { x.runs.Go(x.run) }

// Close ends the attempts. It waits a short time for a running one, which ends at its next request or pause.
func (x *Certificates) Close() {
	x.stop()
	ended := make(chan struct{})
	go func() {
		x.runs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeWait):
	}
}

// Certificate is for tls.Config.GetCertificate. It ignores the server name, except in challenges: C++ game servers send
// an IP literal or another name, and verify nothing.
func (x *Certificates) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if slices.Equal(hello.SupportedProtos, []string{Protocol}) {
		if !strings.EqualFold(hello.ServerName, x.config.Host) {
			return nil, fmt.Errorf("acmecert: challenge for %.100q, want %s", hello.ServerName, x.config.Host)
		}
		return x.manager.Load().GetCertificate(hello)
	}
	if x.renewed.Load() {
		return x.manager.Load().GetCertificate(x.hello())
	}
	if stored := x.stored.Load(); stored != nil {
		return stored, nil
	}
	return nil, errNone
}

// hello returns the hello of a client that accepts an elliptic-curve certificate, the only kind that we request.
func (x *Certificates) hello() *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: x.config.Host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
}

// run gets the certificate, with increasing pauses between attempts, and then monitors its renewal.
func (x *Certificates) run() {
	var inForce *x509.Certificate
	for pause := x.config.Pause; ; pause = min(2*pause, pauseMax) {
		got, err := x.get()
		if x.ctx.Err() != nil {
			return
		}
		if err == nil {
			x.renewed.Store(true)
			inForce = got.Leaf
			x.config.Log.Info("certificate in force", "host", x.config.Host, "expires", inForce.NotAfter)
			break
		}
		x.config.Log.Warn("no certificate from the authority yet; it connects to port 443 of the host to check it", "host", x.config.Host, "error", err,
			"last_error", x.lastError(), "retry_in", pause, "stored", x.stored.Load() != nil)
		x.manager.Store(x.newManager())
		if !x.wait(pause) {
			return
		}
	}
	for x.wait(x.config.Look) {
		inForce = x.look(inForce, time.Now())
	}
}

// get requests the certificate. Close interrupts it.
func (x *Certificates) get() (*tls.Certificate, error) {
	type answer struct {
		got *tls.Certificate
		err error
	}
	came := make(chan answer, 1)
	x.runs.Go(func() {
		got, err := x.manager.Load().GetCertificate(x.hello())
		came <- answer{got, err}
	})
	select {
	case a := <-came:
		return a.got, a.err
	case <-x.ctx.Done():
		return nil, x.ctx.Err()
	}
}

// look returns the current certificate and logs if it has changed. It warns if the certificate should have been renewed: renewal begins when a third of its
// life is left.
func (x *Certificates) look(before *x509.Certificate, now time.Time) *x509.Certificate {
	got, err := x.manager.Load().GetCertificate(x.hello())
	if err != nil {
		x.config.Log.Error("the certificate cannot be used", "host", x.config.Host, "error", err)
		return before
	}
	if !got.Leaf.Equal(before) {
		x.config.Log.Info("certificate renewed", "host", x.config.Host, "expires", got.Leaf.NotAfter)
	}
	life := min(got.Leaf.NotAfter.Sub(got.Leaf.NotBefore), 90*24*time.Hour)
	if left := got.Leaf.NotAfter.Sub(now); left < life/4 {
		x.config.Log.Warn("the certificate is not renewed", "host", x.config.Host, "expires", got.Leaf.NotAfter, "last_error", x.lastError())
	}
	return got.Leaf
}

func (x *Certificates) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}
