package agentlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/signin"
)

// joinBodyMax bounds the body of a join request, in bytes.
const joinBodyMax = 4 << 10

// IsJoin reports whether a request is from a machine that wants to join.
func IsJoin(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, hostproof.JoinPath)
}

// errJoinToken is the answer to every invalid token, so that guessing reveals nothing.
var errJoinToken = fmt.Errorf("%w: %s", errForbidden, hosts.ErrToken.Detail)

// ServeJoin makes a machine that presents a join token a host.
func (s *Server) ServeJoin(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Err() != nil {
		s.refuse(w, http.StatusServiceUnavailable, errors.New("the service is stopping"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, joinBodyMax))
	if err != nil {
		s.refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the body cannot be read, or has more than %d bytes", joinBodyMax))
		return
	}
	var in hostproof.Join
	if err := json.Unmarshal(body, &in); err != nil {
		s.refuse(w, http.StatusBadRequest, fmt.Errorf("body: %w", err))
		return
	}
	host, err := s.join(r, &in)
	if err != nil {
		s.refuse(w, connectStatus(err), err)
		return
	}
	s.log.Info("host joined", "host", host.ID, "name", host.Name, "location", host.Location, "fleet", host.Fleet, "token", host.Token)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(hostproof.Joined{Host: host.ID, Name: host.Name, Location: host.Location, Fleet: host.Fleet}) // the machine retries if it gets no answer
}

func (s *Server) join(r *http.Request, in *hostproof.Join) (hosts.Host, error) {
	h := &hello{from: s.config.Proxies.Of(r)}
	var issuer quota.Holder
	id, hash, ok := hostproof.ReadToken(strings.TrimSpace(in.Token))
	if ok { // a nonexistent token costs no command
		err := s.engine.Read(r.Context(), func(v *cell.View) error {
			tokens := v.HostTokens()
			at := slices.IndexFunc(tokens, func(x hosts.Token) bool { return x.ID == id && x.Hash == hash })
			if ok = at >= 0; ok {
				issuer = tokens[at].Holder
			}
			return nil
		})
		if err != nil {
			return hosts.Host{}, err
		}
	}
	if !ok {
		return hosts.Host{}, s.failed(h, signin.WrongToken, errJoinToken)
	}
	if err := s.permitted(r.Context(), h); err != nil {
		return hosts.Host{}, err
	}
	cmd := hosts.Join{Token: id, Hash: hash, Name: in.Name, Location: in.Location, Fleet: in.Fleet, Key: in.Key}
	err := s.engine.Do(s.countedFor(r.Context(), issuer), &cmd)
	if refusal, refused := errors.AsType[*domain.Refusal](err); refused && refusal.Reason == domain.NotFound && refusal.Detail == hosts.ErrToken.Detail {
		return cmd.Host, s.failed(h, signin.WrongToken, errJoinToken)
	}
	return cmd.Host, err
}

// issuer is the holder for whom a host counts: the issuer of its join token. Its name is only looked up for refusals.
type issuer struct {
	holder quota.Holder
	name   func(quota.Holder) string
}

// Quota implements quotas.Caller.
func (i issuer) Quota() string { return i.name(i.holder) }

func (s *Server) countedFor(ctx context.Context, h quota.Holder) context.Context {
	if h == 0 || s.config.Holder == nil {
		return ctx
	}
	return quotas.With(ctx, issuer{h, s.config.Holder})
}

// refusalStatus returns the HTTP status for a refusal of the core.
func refusalStatus(err error) (int, bool) {
	refusal, ok := errors.AsType[*domain.Refusal](err)
	switch {
	case errors.Is(err, engine.ErrStopped) || !ok:
		return 0, false
	case refusal.Reason == domain.Invalid:
		return http.StatusBadRequest, true
	case refusal.Reason == domain.NotFound:
		return http.StatusNotFound, true
	case refusal.Reason == domain.Conflict, refusal.Reason == domain.LimitExceeded, refusal.Reason == domain.NotReady:
		return http.StatusConflict, true
	}
	return http.StatusServiceUnavailable, true
}
