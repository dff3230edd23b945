package listen

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/authorities"
)

// FileAuthorities holds the CA certificates of a PEM file. A changed file is read again without a restart.
type FileAuthorities struct {
	path string
	log  *slog.Logger

	mu        sync.Mutex
	current   *x509.CertPool // replaced as a whole
	version   fileVersion
	checkedAt time.Time
}

// LoadAuthorities reads the file once, and fails if the file is unusable.
func LoadAuthorities(path string, log *slog.Logger) (*FileAuthorities, error) {
	f := &FileAuthorities{path: path, log: log, checkedAt: time.Now()}
	version, err := versionOf(path)
	if err == nil {
		_, err = f.load(version)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Pool returns the current authorities; it is the Config.Clients of this file. If a changed file cannot be used, the
// previous authorities stay in force.
func (f *FileAuthorities) Pool() *x509.CertPool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checkedAt) >= recheckAfter {
		f.checkedAt = now
		f.reload()
	}
	return f.current
}

func (f *FileAuthorities) reload() {
	version, err := versionOf(f.path)
	if err == nil && version == f.version {
		return
	}
	n := 0
	if err == nil {
		n, err = f.load(version)
	}
	if err != nil {
		f.log.Error("the changed file of client certificate authorities cannot be used: the previous authorities stay in force", "error", err)
		return
	}
	f.log.Info("client certificate authorities were read again", "file", f.path, "authorities", n)
}

func (f *FileAuthorities) load(version fileVersion) (n int, err error) {
	pool := x509.NewCertPool()
	if n, err = authorities.Add(pool, f.path); err != nil { // with only some of them, some servers would be locked out
		return 0, err
	}
	f.current, f.version = pool, version
	return n, nil
}

// askClients allows clients to present a certificate, and verifies it with the current authorities. It disables session
// resumption, which would restore the earlier certificate, or none, without a check against the current authorities.
func askClients(base *tls.Config, authorities func() *x509.CertPool) *tls.Config {
	var current atomic.Pointer[tls.Config] // shared by all connections while the authorities are the same
	asking := base.Clone()
	asking.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, c := authorities(), current.Load()
		if c == nil || c.ClientCAs != pool {
			c = base.Clone()
			c.ClientAuth, c.ClientCAs, c.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, pool, true
			current.Store(c)
		}
		return c, nil
	}
	return asking
}
