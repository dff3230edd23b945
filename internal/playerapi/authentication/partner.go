package authentication

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/signin"
)

// serverPrefix begins the tokens of game servers; the id of the game instance follows.
const serverPrefix = "pgs_"

// ServerToken returns the token with which a game server makes the calls of its game instance.
func (a *Authenticator) ServerToken(instance flow.InstanceID) string {
	name := objects.ID(instance)
	return serverPrefix + name + "_" + a.Secret.PartnerToken(name)
}

// Trusted authenticates a trusted server or, in the realm of operators, an operator, and writes its identity into p.
func (a *Authenticator) Trusted(r *http.Request, p *principal.Principal, realm string) *problem.Problem {
	problem := a.identified(r, p, realm)
	if problem == nil {
		connlimit.Prove(r.Context())
	}
	return problem
}

func (a *Authenticator) identified(r *http.Request, p *principal.Principal, realm string) *problem.Problem {
	if rest, ok := strings.CutPrefix(Bearer(r), serverPrefix); ok && realm != principal.OperatorRealm {
		return a.server(p, rest)
	}
	if a.Dev {
		p.ID = "dev"
		if keyID, _, ok := identity.Shown(r); ok {
			p.ID = keyID
		}
		return nil
	}
	key, refused := a.accessKey(r, p.Address, a.Signins.of(realm))
	if refused != nil {
		return refused
	}
	want := identity.Backend
	if realm == principal.OperatorRealm {
		want = identity.Admin
	}
	if key.Role != want && key.Role != identity.Admin && !(key.Role == identity.ReadOnly && slices.Contains(a.ReadCalls, r.URL.Path)) {
		return problem.New(flow.PermissionDenied, "access key %s has the role %s, want %s", key.ID, key.Role, want)
	}
	by := key.Principal(p.Address)
	if err := by.MayCall(ActionOf(r.URL.Path)); err != nil {
		return problem.New(flow.PermissionDenied, "%s", err)
	}
	p.Principal = by
	p.Used(r.URL.Path)
	return nil
}

// ActionOf returns the action under which policies know the call with a path: muster: and the last part of the path, except for streams.
func ActionOf(path string) string {
	switch path {
	case objects.ServerStreamPath:
		return "muster:GameServer.Connect"
	case objects.EventsPath:
		return "muster:Events.Stream"
	}
	return "muster:" + path[strings.LastIndexByte(path, '/')+1:]
}

// server verifies the rest of a game server's token.
func (a *Authenticator) server(p *principal.Principal, rest string) *problem.Problem {
	name, mac, _ := strings.Cut(rest, "_")
	instance, err := domain.ParseID[flow.InstanceID](name)
	proven := a.Secret.Accepts("token of a game server for its game", func(g identity.CellSecret) bool { return identity.Equal(mac, g.PartnerToken(name)) })
	if !proven || err != nil {
		return Failed(a.Signins.Partners, signin.Failure{From: p.Address, Reason: signin.WrongToken},
			problem.New(flow.Unauthenticated, "the token is not a game server's; Server.Exchange returns one"))
	}
	p.ID, p.Instance = name, instance
	return nil
}

// accessKey finds the access key of a request: the one in its Authorization header, or the one that its certificate names, which the
// port has verified. A revoked key invalidates the certificates that name it.
func (a *Authenticator) accessKey(r *http.Request, from string, door *signin.Door) (identity.AccessKey, *problem.Problem) {
	if keyID, certified := identity.Certified(r); certified && r.Header.Get("Authorization") == "" {
		key, err := a.Keys.With(keyID, "", from)
		if err != nil {
			return key, Failed(door, signin.Failure{From: from, Reason: signin.Certificate, KeyID: keyID, Cause: err},
				problem.New(flow.Unauthenticated, "the certificate names access key %.60q, which does not exist, was revoked, or has expired", keyID))
		}
		return key, nil
	}
	keyID, secret, ok := identity.Shown(r)
	if !ok {
		reason := signin.Malformed
		if r.Header.Get("Authorization") == "" {
			reason = signin.Missing
		}
		return identity.AccessKey{}, Failed(door, signin.Failure{From: from, Reason: reason},
			problem.New(flow.Unauthenticated, "want Authorization: Bearer KEYID.SECRET, or Basic with both, or a client certificate"))
	}
	key, err := door.Proven(a.Keys, from, keyID, secret)
	slow, ok := errors.AsType[*signin.Slowed](err)
	switch {
	case ok:
		return key, slowed(slow)
	case err != nil:
		return key, problem.New(flow.Unauthenticated, "%s", err)
	case !a.Transport.Private(r):
		return key, problem.New(flow.PermissionDenied, "access key %s was sent without TLS, so others may have read it: revoke it, and use TLS", keyID)
	}
	return key, nil
}
