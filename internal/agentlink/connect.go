package agentlink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/computetoken"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/steady"
)

// hello contains the query parameters of an agent's connection request.
type hello struct {
	host          string      // id; empty: the agent uses a compute's token
	name          string      // of the host
	signed        domain.Time // the time in its proof
	compute       compute
	authorization string
	native        bool // `muster agent`, which supports the additions to the protocol
	from          string
}

const (
	queryBytes   = 8 << 10
	computeBytes = 256
)

var (
	fleetForm   = regexp.MustCompile(`^[a-zA-Z0-9.-]{1,256}$`)
	computeForm = regexp.MustCompile(`^[a-zA-Z0-9-]+(/[a-zA-Z0-9-]+)?$`)
)

// parseHello parses the query, which agents encode as a form. It ignores unknown parameters.
func parseHello(query string) (hello, error) {
	if len(query) > queryBytes {
		return hello{}, fmt.Errorf("the query has %d bytes; want at most %d", len(query), queryBytes)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return hello{}, fmt.Errorf("the query is malformed: %w", err)
	}
	h := hello{
		compute:       compute{strings.Clone(values.Get("FleetId")), strings.Clone(values.Get("ComputeName"))},
		authorization: values.Get("Authorization"),
		native:        values.Get("AgentKind") == "native" && values.Get("AgentProto") == "1",
	}
	switch {
	case !fleetForm.MatchString(h.compute.fleet):
		return hello{}, fmt.Errorf("FleetId %.300q must match %s", h.compute.fleet, fleetForm)
	case len(h.compute.name) > computeBytes || !computeForm.MatchString(h.compute.name):
		return hello{}, fmt.Errorf("ComputeName %.300q must match %s, %d characters at most", h.compute.name, computeForm, computeBytes)
	}
	return h, nil
}

// errForbidden marks refusals with HTTP status 403, errWrongQuery those with 400, and errRevoked those of an authenticated host that was revoked.
var (
	errForbidden  = errors.New("forbidden")
	errWrongQuery = errors.New("wrong query")
	errRevoked    = errors.New("revoked")
)

// ServeHTTP accepts an agent's connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Err() != nil {
		s.refuse(w, http.StatusServiceUnavailable, errors.New("the service is stopping"))
		return
	}
	h, shown, err := s.welcome(r)
	if err != nil {
		s.refuse(w, connectStatus(err), err)
		return
	}
	if err := frames.CheckUpgrade(r, ""); err != nil {
		frames.RefuseUpgrade(w, r, err)
		return
	}
	connlimit.Prove(r.Context())
	if err := connlimit.Use(r.Context(), connlimit.HostAgents); err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	node := s.config.Node()
	conn, err := frames.Upgrade(w, r, "")
	if err != nil {
		s.log.Debug("the upgrade of a host agent's connection failed", "fleet", h.compute.fleet, "compute", h.compute.name, "error", err)
		return
	}
	l := &link{server: s, from: h.from, host: h.host, name: h.name, signed: h.signed, latest: h.signed, native: h.native, shown: shown, conn: conn, node: node, opened: time.Now()}
	l.at.Store(&h.compute)
	l.heard.Store(steady.Nanos(l.opened))
	s.open(l)
}

// welcome checks whether an agent may connect as the compute or host that it claims to be.
func (s *Server) welcome(r *http.Request) (h hello, shown computetoken.Accepted, err error) {
	if hostproof.Present(r) {
		h = hello{native: true, from: s.config.Proxies.Of(r)}
		if err := s.welcomeHost(r, &h); err != nil {
			return h, shown, err
		}
		return h, shown, s.permitted(r.Context(), &h)
	}
	if h, err = parseHello(r.URL.RawQuery); err != nil {
		return h, shown, fmt.Errorf("%w: %w", errWrongQuery, err)
	}
	h.from = s.config.Proxies.Of(r)
	found, shown, err := s.authorise(r.Context(), &h)
	h.compute = compute{found.FleetID, found.Name}
	if err == nil {
		err = s.permitted(r.Context(), &h)
	}
	return h, shown, err
}

// open registers the upgraded connection, starts reading from it, and sends what the agent should know.
func (s *Server) open(l *link) {
	defer s.config.Panics.Confine(panicDoor, l.drop)
	if !s.attach(l) {
		l.drop()
		return
	}
	frames.Read(l.conn, &s.reading, incoming{l}) // from here on, End detaches the link
	if l.node != s.config.Node() || s.voidNow(l) {
		l.drop() // the agent learns the reason when it reconnects
		return
	}
	s.log.Debug("host agent connected", "fleet", l.compute().fleet, "compute", l.compute().name, "native", l.native)
	switch {
	case l.host != "":
		l.enqueue((*link).settle)
	case l.native:
		l.enqueue((*link).resume)
	}
	l.enqueue((*link).pushOwed)
}

// authorise checks whether the agent may connect for its compute.
func (s *Server) authorise(ctx context.Context, h *hello) (fleet.Compute, computetoken.Accepted, error) {
	var x fleet.Compute
	var found bool
	err := s.engine.Read(ctx, func(v *cell.View) error { x, found = v.Compute(h.compute.fleet, h.compute.name); return nil })
	if err != nil {
		return x, computetoken.Accepted{}, err
	}
	wrong := fmt.Errorf("%w: compute %s of fleet %s is not registered, or the auth token is not one of it", errForbidden, h.compute.name, h.compute.fleet)
	if !found {
		return x, computetoken.Accepted{}, s.failed(h, signin.WrongToken, wrong)
	}
	shown, err := computetoken.Check(s.config.Secret, &x, h.authorization, domain.TimeOf(s.engine.Now()), false)
	expired, late := errors.AsType[*computetoken.Expired](err)
	switch {
	case err == nil:
		return x, shown, nil
	case late:
		return x, shown, s.failed(h, signin.Expired, fmt.Errorf("%w: %w", errForbidden, expired))
	case h.authorization == "":
		return x, shown, s.failed(h, signin.Missing, wrong)
	}
	return x, shown, s.failed(h, signin.WrongToken, wrong)
}

// failed counts a failed sign-in and returns the error to answer with: the reason, or that there were too many failures.
func (s *Server) failed(h *hello, reason signin.Reason, err error) error {
	if slow := s.config.Signins.Fail(signin.Failure{From: h.from, Reason: reason, Cause: err}); slow != nil {
		return slow
	}
	return err
}

// connectStatus returns the HTTP status for a refused connection.
func connectStatus(err error) int {
	_, slowed := errors.AsType[*signin.Slowed](err)
	switch {
	case slowed:
		return http.StatusTooManyRequests
	case errors.Is(err, errForbidden):
		return http.StatusForbidden
	case errors.Is(err, errRevoked):
		return hostproof.StatusRevoked
	case errors.Is(err, errWrongQuery):
		return http.StatusBadRequest
	}
	if status, ok := refusalStatus(err); ok {
		return status
	}
	return http.StatusServiceUnavailable
}

func (s *Server) refuse(w http.ResponseWriter, status int, err error) {
	s.counters.refused.Add(1)
	s.refusals.Refuse(w, time.Now(), status, err)
}

// voidNow reports whether the token of a link has become void since it was checked, or the host was revoked.
func (s *Server) voidNow(l *link) (void bool) {
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // an error means that the engine has stopped, which also ends the link
		if l.host != "" {
			h, ok := v.Host(l.host)
			void = !ok || h.Revoked != 0
			return nil
		}
		x, ok := v.Compute(l.compute().fleet, l.compute().name)
		void = !ok || l.shown.Void(&x)
		return nil
	})
	return void
}
