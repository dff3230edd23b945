// Package devclock is the door to the service's clock for tests in any language. It exists only in development mode with
// a virtual clock: a client that can move the time can end all games.
package devclock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"time"
)

// Prefix is where every path of this door begins.
const Prefix = "/dev/clock"

// bodyMax is far above what a request needs.
const bodyMax = 1 << 10

// Clock is what the door moves. *service.Service is one.
type Clock interface {
	Now() time.Time
	// Advance moves the deadlines of fleets, game sessions, players, placements and matches.
	Advance(ctx context.Context, d time.Duration) error
	// AdvanceLinks lets time pass for the connections of game servers.
	AdvanceLinks(ctx context.Context, d time.Duration) error
}

// Door answers over HTTP, with JSON.
type Door struct {
	clock  Clock
	log    *slog.Logger
	routes http.ServeMux
}

// NewDoor makes a Door.
func NewDoor(clock Clock, log *slog.Logger) *Door {
	d := &Door{clock: clock, log: log}
	d.routes.HandleFunc("GET "+Prefix, func(w http.ResponseWriter, _ *http.Request) { d.tell(w) })
	d.routes.HandleFunc("POST "+Prefix+"/advance", d.advance)
	return d
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.routes.ServeHTTP(w, r) }

// Present is the answer to every request that is not refused.
type Present struct {
	Now              time.Time `json:"now"`
	UnixMilliseconds int64     `json:"unixMilliseconds"`
}

// Problem is the body of every other answer.
type Problem struct {
	Message string `json:"message"`
}

func (d *Door) tell(w http.ResponseWriter) {
	now := d.clock.Now().UTC()
	answer(w, http.StatusOK, Present{now, now.UnixMilli()})
}

// Step is how far the clock is to be moved, and which.
type Step struct {
	Seconds *float64 `json:"seconds"`
	Links   bool     `json:"links"` // the connections' clock in place of the other
}

// The most that one Step moves the deadlines' clock, and the connections' clock, which sends pings meanwhile.
const (
	secondsMax      = 10 * 365 * 24 * 3600
	linksSecondsMax = 24 * 3600
)

func (d *Door) advance(w http.ResponseWriter, r *http.Request) {
	by, links, err := readStep(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	// Deadlines may be many: this answer takes as long as it takes.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	move := d.clock.Advance
	if links {
		move = d.clock.AdvanceLinks
	}
	// Not with the request's own context: a step must not end halfway.
	if err := move(context.WithoutCancel(r.Context()), by); err != nil {
		d.log.Warn("the virtual clock did not advance as far as requested", "duration", by, "links", links, "error", err)
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	d.log.Info("the virtual clock advanced", "duration", by, "links", links, "now", d.clock.Now())
	d.tell(w)
}

func readStep(w http.ResponseWriter, r *http.Request) (by time.Duration, links bool, err error) {
	kind := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
		return 0, false, fmt.Errorf("Content-Type %.100q: want application/json", kind)
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax))
	decoder.DisallowUnknownFields()
	var step Step
	if err := decoder.Decode(&step); err != nil {
		return 0, false, fmt.Errorf("body: want {\"seconds\": 60}, with \"links\": true for the connections' clock: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return 0, false, errors.New("body: want nothing after the object")
	}
	most := secondsMax
	if step.Links {
		most = linksSecondsMax
	}
	switch s := step.Seconds; {
	case s == nil:
		return 0, false, errors.New("seconds: required; want the time by which the clock moves")
	case !(*s >= 0 && *s <= float64(most)): // also what is no number
		return 0, false, fmt.Errorf("seconds: %g; want 0 to %d", *s, most)
	default:
		return time.Duration(math.Round(*s*1000)) * time.Millisecond, step.Links, nil
	}
}

// Refuse answers a request that does not reach the door.
func Refuse(w http.ResponseWriter, message string) {
	answer(w, http.StatusForbidden, Problem{message})
}

func refuse(w http.ResponseWriter, status int, err error) { answer(w, status, Problem{err.Error()}) }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone if it fails
}
