package signin

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Bound of the log lines about refused connections of one door: refusalsLogged in each refusalsWithin.
const (
	refusalsLogged = 20
	refusalsWithin = 10 * time.Second
)

// Refusals refuses requests for connections that stay, such as WebSockets, at one door.
type Refusals struct {
	log   *slog.Logger
	line  string
	lines rate.Lines
}

// NewRefusals returns the refusals of a door, which write this line to the log.
func NewRefusals(log *slog.Logger, line string) *Refusals {
	return &Refusals{log: log, line: line, lines: rate.Lines{Most: refusalsLogged, Period: refusalsWithin}}
}

// Refuse answers a request at the time now, and logs it unless there were too many. A *Slowed says in Retry-After when to try again.
func (r *Refusals) Refuse(w http.ResponseWriter, now time.Time, status int, err error) {
	if slow, ok := errors.AsType[*Slowed](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
	}
	switch write, silent := r.lines.Note(now); {
	case write && silent > 0:
		r.log.Info(r.line, "status", status, "error", err, "unlogged", silent)
	case write:
		r.log.Info(r.line, "status", status, "error", err)
	}
	w.Header().Set("Connection", "close") // or net/http would wait for a body first, if one was announced
	http.Error(w, err.Error(), status)
}
