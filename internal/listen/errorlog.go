package listen

import (
	"bytes"
	"log"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
)

// errorLog receives net/http's messages about connections. Strangers cause most of them, so they are logged at level debug. The exceptions
// are messages that an operator can act on: about a client that does not trust our certificate, and one whose certificate we do not trust.
type errorLog struct {
	log       *slog.Logger
	panics    *panics.Guard
	untrusted *rate.Lines
	refused   *rate.Lines
}

func newErrorLog(l *slog.Logger, g *panics.Guard) *log.Logger {
	return log.New(errorLog{l, g, newWarnings(), newWarnings()}, "", 0)
}

// newWarnings limits warnings of one kind that any client can cause.
func newWarnings() *rate.Lines { return &rate.Lines{Most: 1, Period: 10 * time.Second} }

func (e errorLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if bytes.HasPrefix(line, []byte("http: panic serving")) && e.panics != nil { // not in one of our handlers: see panics.Handler
		e.panics.Note(panicDoor, text)
		return len(line), nil
	}
	switch {
	case bytes.Contains(line, []byte("failed to verify certificate")): // crypto/tls's message about a client's certificate
		if write, silent := e.refused.Note(time.Now()); write {
			e.log.Warn("the certificate of a TLS client is refused", "detail", text, "unlogged", silent)
		}
	case bytes.Contains(line, []byte("unknown certificate")), bytes.Contains(line, []byte("bad certificate")), bytes.Contains(line, []byte("expired certificate")):
		if write, silent := e.untrusted.Note(time.Now()); write {
			e.log.Warn("a TLS client does not trust this service's certificate; under --dev, `muster ca` tells how to trust it",
				"detail", text, "unlogged", silent)
		}
	default:
		e.log.Debug("connection error", "detail", text)
	}
	return len(line), nil
}
