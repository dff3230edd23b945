package listen

import (
	"errors"
	"log/slog"
	"net"
	"time"
)

// Accept passes the connections of a port to admit, which must not block, until closing is closed. If the process has run out of
// descriptors, it waits until other connections close. It returns nil once closing is closed, otherwise the reason why the port is
// lost.
func Accept(port *net.TCPListener, closing <-chan struct{}, log *slog.Logger, admit func(*net.TCPConn)) error {
	var pause time.Duration
	var trouble acceptTrouble
	for {
		tcp, err := port.AcceptTCP()
		if err == nil {
			pause = 0
			trouble.over(log)
			admit(tcp)
			continue
		}
		select {
		case <-closing:
			return nil
		default:
		}
		if !passing(err) {
			return err
		}
		// Most likely the process has run out of descriptors. Only waiting helps, and it must not become a busy loop.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		trouble.note(log, err)
		select {
		case <-time.After(pause):
		case <-closing:
			return nil
		}
	}
}

// passing reports whether accept may succeed later, once other connections have closed.
func passing(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// acceptTrouble limits log lines about a port that cannot accept, because every other accept may fail.
type acceptTrouble struct {
	logged time.Time // time of the last line; zero while there is no problem
	silent int       // failures since then
	fine   time.Time // since when accepting has succeeded again
}

// acceptLogEvery is the minimum interval between two lines.
const acceptLogEvery = 10 * time.Second

func (t *acceptTrouble) note(log *slog.Logger, err error) {
	t.silent++
	t.fine = time.Time{}
	if now := time.Now(); now.Sub(t.logged) >= acceptLogEvery {
		log.Warn("the service cannot accept connections", "error", err, "failures", t.silent)
		t.logged, t.silent = now, 0
	}
}

// over logs that the port has been accepting again for a while.
func (t *acceptTrouble) over(log *slog.Logger) {
	if t.logged.IsZero() {
		return
	}
	now := time.Now()
	if t.fine.IsZero() {
		t.fine = now
	}
	if now.Sub(t.fine) >= acceptLogEvery {
		log.Info("the service accepts connections again", "failures", t.silent)
		*t = acceptTrouble{}
	}
}
