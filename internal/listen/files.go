package listen

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// recheckAfter is the minimum interval between two checks of the files. Renewal tools replace them weeks before the old ones expire, so seconds do
// not matter.
const recheckAfter = 5 * time.Second

// soon is how long before its expiry a certificate should have been replaced, at most a quarter of its validity. remindEvery is the minimum interval
// between log lines about that.
const (
	soon        = 21 * 24 * time.Hour
	remindEvery = 24 * time.Hour
)

// FileCertificate is a certificate and key in PEM files that another program maintains, such as an ACME client. Changed files are read again without
// a restart.
type FileCertificate struct {
	certPath, keyPath string
	log               *slog.Logger

	mu        sync.Mutex
	current   *tls.Certificate
	stamp     fileStamp
	checkedAt time.Time
	reminded  time.Time // when the expiry of the current one was last logged; zero: not yet
}

type fileStamp struct{ cert, key fileVersion }

type fileVersion struct {
	modified time.Time
	size     int64
}

// LoadFiles reads the pair once. It fails if a file cannot be read or if certificate and key do not match.
func LoadFiles(certPath, keyPath string, log *slog.Logger) (*FileCertificate, error) {
	f := &FileCertificate{certPath: certPath, keyPath: keyPath, log: log, checkedAt: time.Now()}
	stamp, err := f.look()
	if err != nil {
		return nil, err
	}
	if err := f.load(stamp); err != nil {
		return nil, err
	}
	f.remind(time.Now())
	return f, nil
}

// Certificate returns the current certificate; it is the Config.Certificate of this pair. It ignores the server name: the C++ SDK sends an IP
// literal, others nothing. While changed files cannot be used (renewal tools write one after the other), the previous pair stays in force.
func (f *FileCertificate) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checkedAt) >= recheckAfter {
		f.checkedAt = now
		f.reload()
		f.remind(now)
	}
	return f.current, nil
}

// remind logs that the certificate has expired or will soon, because clients see only a failed handshake.
func (f *FileCertificate) remind(now time.Time) {
	c := f.current.Leaf
	left := c.NotAfter.Sub(now)
	if left >= min(soon, c.NotAfter.Sub(c.NotBefore)/4) || now.Sub(f.reminded) < remindEvery {
		return
	}
	f.reminded = now
	if left <= 0 {
		f.log.Error("the certificate has expired, and clients refuse it: renew it", "file", f.certPath, "expired", c.NotAfter)
	} else {
		f.log.Warn("the certificate expires soon: renew it", "file", f.certPath, "expires", c.NotAfter)
	}
}

func (f *FileCertificate) reload() {
	stamp, err := f.look()
	if err == nil && stamp == f.stamp {
		return
	}
	if err == nil {
		err = f.load(stamp)
	}
	if err != nil {
		f.log.Error("the changed certificate cannot be used: the previous one stays in force", "error", err)
		return
	}
	f.log.Info("the certificate was read again", "file", f.certPath, "expires", f.current.Leaf.NotAfter)
}

func (f *FileCertificate) look() (fileStamp, error) {
	var s fileStamp
	var err error
	if s.cert, err = versionOf(f.certPath); err == nil {
		s.key, err = versionOf(f.keyPath)
	}
	if err != nil {
		return fileStamp{}, fmt.Errorf("certificate files: %w", err)
	}
	return s, nil
}

func versionOf(path string) (fileVersion, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{}, err
	}
	return fileVersion{info.ModTime(), info.Size()}, nil
}

func (f *FileCertificate) load(stamp fileStamp) error {
	pair, err := tls.LoadX509KeyPair(f.certPath, f.keyPath)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.certPath, f.keyPath, err)
	}
	f.current, f.stamp, f.reminded = &pair, stamp, time.Time{}
	return nil
}
