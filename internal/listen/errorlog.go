package listen

import (
	"bytes"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/panics"
)

// errorLog receives what net/http has to say about connections. Strangers cause most of it, so it is quiet, save for the
// one case that an operator can mend: a client that does not trust our certificate.
type errorLog struct {
	log       *slog.Logger
	panics    *panics.Guard
	untrusted *occasional
}

func newErrorLog(l *slog.Logger, g *panics.Guard) *log.Logger {
	return log.New(errorLog{l, g, &occasional{}}, "", 0)
}

func (e errorLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if bytes.HasPrefix(line, []byte("http: panic serving")) && e.panics != nil { // it was no handler of ours: see panics.Handler
		e.panics.Note(panicDoor, text)
		return len(line), nil
	}
	if bytes.Contains(line, []byte("unknown certificate")) || bytes.Contains(line, []byte("bad certificate")) {
		if write, silent := e.untrusted.note(time.Now()); write {
			e.log.Warn("a TLS client does not trust this service's certificate; under --dev, `muster ca` tells how to trust it",
				"detail", text, "unreported", silent)
		}
	} else {
		e.log.Debug("connection", "detail", text)
	}
	return len(line), nil
}

// occasionalEvery is the time between two warnings of one kind that any client can cause.
const occasionalEvery = 10 * time.Second

// occasional limits the rate of such a warning. The zero value lets the first one through.
type occasional struct {
	mu     sync.Mutex
	next   time.Time
	silent int
}

// note counts a cause, and says whether to write the warning, and of how many causes since the last one nothing was written.
func (o *occasional) note(now time.Time) (write bool, silent int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Before(o.next) {
		o.silent++
		return false, 0
	}
	silent, o.silent, o.next = o.silent, 0, now.Add(occasionalEvery)
	return true, silent
}
