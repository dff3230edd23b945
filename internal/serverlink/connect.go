package serverlink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
	"unique"

	"github.com/musterhq/muster/internal/computetoken"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/steady"
)

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// sdkText bounds the kept part of an SDK's name and version.
const sdkText = 64

// ServeHTTP accepts a game server's connection. After any refusal, all SDKs retry on the same schedule; C++ mentions 403 in its error.
// docs/spec/server-sdk.md#refusals.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Err() != nil {
		s.refuse(w, http.StatusServiceUnavailable, errors.New("the service is stopping"))
		return
	}
	h, err := parseHello(r.URL.RawQuery)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	h.from = s.config.Proxies.Of(r)
	shown, err := s.authorise(r.Context(), &h)
	if err != nil {
		s.refuse(w, connectStatus(err), err)
		return
	}
	if p := s.known(h.key); p != nil && p.bansNow(s.now()) {
		s.refuse(w, http.StatusForbidden, fmt.Errorf("process %s counted as crashed and did not end when the service told it to", h.key.Process))
		return
	}
	// Checked after the credentials, so that a game server can test its credentials without a connection by sending an unsupported WebSocket version.
	if err := frames.CheckUpgrade(r, ""); err != nil {
		frames.RefuseUpgrade(w, r, err)
		return
	}
	connlimit.Prove(r.Context())
	if err := connlimit.Use(r.Context(), connlimit.GameServers); err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	h.key = kept(h.key)
	connect := hosting.ConnectProcess{Process: h.key, Link: newLinkID(), SDK: h.sdk(), Token: shown.generation, Node: s.config.Node()}
	if err := s.engine.Do(r.Context(), &connect); err != nil {
		if _, refused := errors.AsType[*domain.Refusal](err); !refused { // the core may have recorded the connection
			s.loseLink(h.key, connect.Link, func() {})
		}
		connlimit.Leave(r.Context())
		s.refuse(w, connectStatus(err), err)
		return
	}
	s.warnOfSDK(&h)
	conn, err := frames.Upgrade(w, r, "")
	if err != nil {
		s.log.Debug("the upgrade of a game server's connection failed", "process", h.key, "error", err)
		s.loseLink(h.key, connect.Link, func() {})
		return
	}
	l := &link{id: connect.Link, node: connect.Node, conn: conn, shown: shown, endpoint: s.endpoint(r)}
	l.heard.Store(steady.Nanos(s.now()))
	s.open(l, &h, connect.Found)
}

// kept returns a key for the core, which keeps it as long as the process. The query's strings would keep the whole request line in memory, and
// thousands of processes share fleets and computes.
func kept(k fleet.Key) fleet.Key {
	return fleet.Key{Fleet: unique.Make(k.Fleet).Value(), Compute: unique.Make(k.Compute).Value(), Process: strings.Clone(k.Process)}
}

// newLinkID returns a number that no other connection of the cell has.
func newLinkID() uint64 { return max(rand.Uint64(), 1) }

// open registers the upgraded connection, starts reading from it and sends the pushes that are owed.
func (s *Server) open(l *link, h *hello, found fleet.Process) {
	reading := false
	defer s.config.Panics.Confine(panicDoor, func() {
		l.drop()
		if !reading && l.process != nil {
			l.gone(errPanicked)
		}
	})
	key := found.Key // the core's strings: the query's would keep the whole request in memory
	if key == (fleet.Key{}) {
		key = h.key
	}
	p := s.attach(l, key)
	if p == nil {
		l.drop()
		return
	}
	defer s.running.Done()
	if s.voidNow(l) || l.lost() {
		l.drop()
	}
	if l.shown.life != nil {
		s.followKey(l, l.shown.life)
	}
	_ = p.look(func(now fleet.Process, ok bool) { // an error means that the engine has stopped, which also ends the link
		if ok {
			found = now
		}
		newest := l.id
		if found.State != fleet.Ended {
			newest = found.Link // two connections may arrive at once; the core knows which is newer
		}
		p.settle(l, newest, found)
	})
	reading = true
	frames.Read(l.conn, &s.reading, incoming{l})
	s.log.Debug("game server connected", "process", key, "sdk", found.SDK, "state", found.State)
	if p.currentLink() == l {
		s.pushOwed(p, l)
	}
}

// endpoint returns the URL by which this game server reached the service.
func (s *Server) endpoint(r *http.Request) string {
	if s.config.Endpoint != "" {
		return s.config.Endpoint
	}
	scheme := "ws://"
	if r.TLS != nil {
		scheme = "wss://"
	}
	return unique.Make(scheme + r.Host + r.URL.EscapedPath()).Value() // thousands of links share a few texts
}

const signedAuthorization = "SigV4"

// errForbidden marks refusals that get HTTP status 403.
var errForbidden = errors.New("forbidden")

// authorise checks that the game server may connect for its compute. docs/spec/server-sdk.md#authentication.
//
// A C++ process that was started with SigV4 and reconnects because its requests timed out sends neither a token nor its signature. Such a connection
// proves nothing, so it is refused like any other without credentials; see B053.
func (s *Server) authorise(ctx context.Context, h *hello) (credential, error) {
	var compute fleet.Compute
	var process fleet.Process
	var found, known bool
	err := s.engine.Read(ctx, func(v *cell.View) error {
		compute, found = v.Compute(h.key.Fleet, h.key.Compute)
		process, known = v.Process(h.key)
		return nil
	})
	live := known && process.State != fleet.Ended
	switch {
	case err != nil:
		return credential{}, err
	case !found:
		return credential{}, s.failed(h, signin.WrongToken, fmt.Errorf("%w: compute %s is not registered in fleet %s", errForbidden, h.key.Compute, h.key.Fleet))
	case h.authorization == signedAuthorization:
		return s.checkSignature(ctx, h, live)
	}
	return s.checkToken(h, &compute, live && !process.Linked)
}

// checkToken accepts an expired token only if cutOff reports that the process is live and has no connection, because the token may have expired while
// the process could not reach the service.
func (s *Server) checkToken(h *hello, compute *fleet.Compute, cutOff bool) (credential, error) {
	shown, err := computetoken.Check(s.config.Secret, compute, h.authorization, domain.TimeOf(s.engine.Now()), cutOff)
	expired, late := errors.AsType[*computetoken.Expired](err)
	switch {
	case err == nil:
		return credential{registration: shown.Registration, generation: shown.Generation, expires: shown.Expires}, nil
	case late:
		return credential{}, s.failed(h, signin.Expired, fmt.Errorf("%w: %w", errForbidden, expired))
	case h.authorization == "":
		return credential{}, s.failed(h, signin.Missing, fmt.Errorf("%w: the auth token is not one of compute %s", errForbidden, h.key.Compute))
	}
	return credential{}, s.failed(h, signin.WrongToken, fmt.Errorf("%w: the auth token is not one of compute %s", errForbidden, h.key.Compute))
}

// failed counts a failed sign-in and returns the error to answer with: the reason, or that there were too many failures.
func (s *Server) failed(h *hello, reason signin.Reason, err error) error {
	if slow := s.config.Signins.Fail(signin.Failure{From: h.from, Reason: reason, KeyID: h.signature.accessKey(), Cause: err}); slow != nil {
		return slow
	}
	return err
}

func (s *Server) checkSignature(ctx context.Context, h *hello, live bool) (credential, error) {
	id := h.signature.accessKey()
	key, err := s.config.Keys.With(id, h.signature.token, h.from)
	switch {
	case err != nil && s.config.AnyKey:
		return credential{accessKey: id, fleeting: h.signsOnce()}, nil
	case errors.Is(err, identity.ErrExpired):
		return credential{}, s.failed(h, signin.Expired, fmt.Errorf("%w: %w", errForbidden, err))
	case errors.Is(err, identity.ErrElsewhere):
		return credential{}, s.failed(h, signin.Elsewhere, fmt.Errorf("%w: no access key %.40q", errForbidden, id))
	case err != nil:
		return credential{}, s.failed(h, signin.UnknownKey, fmt.Errorf("%w: no access key %.40q", errForbidden, id))
	}
	if slow := s.config.Signins.Refuse(h.from, key); slow != nil {
		return credential{}, slow
	}
	skew := s.skew.Get()
	allowed := skew
	if live {
		allowed += signatureReturn
	}
	if err := h.signature.check(h.key, key.Secret); err != nil {
		return credential{}, s.failed(h, signin.WrongSecret, fmt.Errorf("%w: %w", errForbidden, err))
	}
	// Not the engine's clock, which tests move, because a signature uses real time.
	age, err := h.signature.checkAge(time.Now(), allowed, skew)
	if err != nil {
		return credential{}, s.failed(h, signin.Clock, fmt.Errorf("%w: %w", errForbidden, err))
	}
	left := skew + signatureReturn - age // how long the process may still reconnect with it
	s.config.Signins.Trust(h.from, key)
	if key.Role != identity.Admin && key.Role != identity.Backend {
		return credential{}, fmt.Errorf("%w: access key %s has role %s; a game server needs %s or %s", errForbidden, key.ID, key.Role, identity.Backend, identity.Admin)
	}
	by := key.Principal(h.from)
	again := func() (identity.AccessKey, error) { return s.config.Keys.With(id, h.signature.token, h.from) }
	if err := s.mayConnect(ctx, &by, h.key.Fleet); err != nil {
		return credential{}, fmt.Errorf("%w: %w", errForbidden, err)
	}
	by.Used("game server connects")
	return credential{
		accessKey: key.ID, life: key.Life(), expires: domain.TimeOf(s.engine.Now().Add(left)), fleeting: h.signsOnce(), again: again, from: h.from,
	}, nil
}

func (s *Server) refuse(w http.ResponseWriter, status int, err error) {
	s.counters.refused.Add(1)
	s.refusals.Refuse(w, s.now(), status, err)
}

// loseLink reports to the core that a connection is lost, and calls recorded when the core knows it. When the service itself stops, that is not the game
// server's fault: the core does not count the downtime against it.
func (s *Server) loseLink(key fleet.Key, id uint64, recorded func()) {
	if s.stopping.Err() != nil {
		return
	}
	s.counters.lost.Add(1)
	warned := false
	s.reports.Make(func() error {
		err := s.engine.Do(s.ctx, &hosting.LoseLink{Process: key, Link: id})
		switch {
		case err == nil:
			recorded()
		case !warned:
			warned = true
			s.log.Warn("the loss of a game server's connection could not be recorded; the service tries again", "process", key, "error", err)
		}
		return err
	})
}

// gone cleans up after a connection that has ended.
func (l *link) gone(err error) {
	l.out.Lock()
	l.out.closed = true
	l.out.Unlock()
	l.unfollow()
	p := l.process
	s := p.server
	s.log.Debug("a game server's connection ended", "process", p.key, "error", err)
	over := func() { l.over.Store(true) }
	if p.remove(l) && !l.lost() {
		s.loseLink(p.key, l.id, over)
	} else {
		over()
	}
}
