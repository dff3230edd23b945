package playerapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/signin"
)

func (d *Door) servePartner(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case ServerStreamPath:
		d.serveServerStream(w, r)
		return
	case EventsPath:
		d.serveEvents(w, r)
		return
	}
	d.serveTrusted(w, r, d.partner, identity.Backend)
}

func (d *Door) serveOperator(w http.ResponseWriter, r *http.Request) {
	d.serveTrusted(w, r, d.operator, identity.Admin)
}

// serveTrusted serves callers with an access key of the role, or one of an administrator; and game servers, which have a
// token for their own game.
func (d *Door) serveTrusted(w http.ResponseWriter, r *http.Request, to *realm, role identity.Role) {
	if isDocument(r.URL.Path, Prefix+to.name+"/") {
		to.mux.ServeHTTP(w, r)
		return
	}
	w, answered := to.calls.Note(w, to.nameOf(r.URL.Path))
	defer answered()
	echo(w, r)
	_, known := to.classes[r.URL.Path]
	problem := d.wrongCall(r, known)
	x := d.stranger(r)
	if problem == nil && r.URL.Path != exchangePath {
		problem = d.trust(r, x, to, role)
	}
	if problem == nil {
		if wait, ok := d.buckets.takeFor(classPartner, cmp.Or(x.partner, x.address), w.Header()); !ok {
			problem = later(flow.RateLimited, wait, "too many calls with one credential")
		}
	}
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	ctx, cancel := identity.Within(r.Context(), x.life) // for calls that wait
	defer cancel()
	to.serve(w, r.WithContext(ctx), x)
}

// serverPrefix is how the tokens of game servers begin; behind it comes the game instance.
const serverPrefix = "pgs_"

// trust finds out who asks, and whether it may.
func (d *Door) trust(r *http.Request, x *who, to *realm, role identity.Role) *Problem {
	problem := d.identified(r, x, to, role)
	if problem == nil {
		connlimit.Prove(r.Context())
	}
	return problem
}

func (d *Door) identified(r *http.Request, x *who, to *realm, role identity.Role) *Problem {
	token := bearer(r)
	if rest, ok := strings.CutPrefix(token, serverPrefix); ok && to == d.partner {
		name, mac, _ := strings.Cut(rest, "_")
		instance, ok := domain.ParseUUID(strings.TrimPrefix(name, "gi-"))
		if !identity.Equal(mac, d.config.Secret.PartnerToken(name)) || !ok {
			return failed(d.config.Signins.Partners, signin.Failure{From: x.address, Reason: signin.WrongToken}, refusal(flow.Unauthenticated, "the token is not one of a game server"))
		}
		x.partner, x.instance = name, instance
		return nil
	}
	if d.config.Dev {
		// Without credentials any page in the developer's browser could call, or open a stream, which takes a GET.
		asked := r.WithContext(r.Context())
		asked.Method = http.MethodPost
		if err := new(http.CrossOriginProtection).Check(asked); err != nil {
			return refusal(flow.PermissionDenied, "%s", err)
		}
		x.partner = "dev"
		if keyID, _, ok := identity.Shown(r); ok {
			x.partner = keyID
		}
		return nil
	}
	key, problem := d.keyOf(r, d.config.Signins.of(d, to), x.address)
	if problem != nil {
		return problem
	}
	if key.Role != role && key.Role != identity.Admin && !(key.Role == identity.ReadOnly && changesNothing(r)) {
		return refusal(flow.PermissionDenied, "access key %s has the role %s, want %s", key.ID, key.Role, role)
	}
	x.partner, x.life = key.ID, key.Life()
	return nil
}

// keyOf finds the access key of a request: one that it shows, or that its certificate stands for, which the port has checked.
// A key that is revoked ends its certificates with it.
func (d *Door) keyOf(r *http.Request, door *signin.Door, from string) (identity.AccessKey, *Problem) {
	if keyID, certified := identity.Certified(r); certified && r.Header.Get("Authorization") == "" {
		key, ok := d.config.Keys.Find(keyID)
		if !ok {
			return key, failed(door, signin.Failure{From: from, Reason: signin.Certificate, KeyID: keyID},
				refusal(flow.Unauthenticated, "there is no access key %.60q, for which the certificate stands", keyID))
		}
		return key, nil
	}
	keyID, secret, ok := identity.Shown(r)
	if !ok {
		reason := signin.Malformed
		if r.Header.Get("Authorization") == "" {
			reason = signin.Missing
		}
		return identity.AccessKey{}, failed(door, signin.Failure{From: from, Reason: reason},
			refusal(flow.Unauthenticated, "want Authorization: Bearer KEYID.SECRET, or Basic with both, or a client certificate"))
	}
	key, err := door.Proven(d.config.Keys, from, keyID, secret)
	slow, ok := errors.AsType[*signin.Slowed](err)
	switch {
	case ok:
		return key, slowed(slow)
	case err != nil:
		return key, refusal(flow.Unauthenticated, "%s", err)
	case !d.config.Transport.Private(r):
		return key, refusal(flow.PermissionDenied, "access key %s was sent without TLS: whoever listens has it now", keyID)
	}
	return key, nil
}

// looking are the calls that keys of the role readonly may make as well.
var looking = []string{
	"operator/Operator.Audit", "operator/Operator.ExplainStuck", "operator/Operator.GetConfig", "operator/Operator.GetPlayer", "operator/Operator.ListPlayers",
	"partner/Flow.GetPlayers",
}

func changesNothing(r *http.Request) bool {
	return slices.Contains(looking, strings.TrimPrefix(r.URL.Path, Prefix))
}

// instanceFor reads the game instance of a call, and checks that a game server means its own.
func instanceFor(ctx context.Context, text string) (domain.UUID, error) {
	own := whoOf(ctx).instance
	if text == "" && !own.IsZero() {
		return own, nil
	}
	instance, err := parseID("game_instance_id", "gi-", text)
	if err == nil && !own.IsZero() && own != instance {
		err = refusal(flow.PermissionDenied, "the token is for game instance %s", objects.GameInstanceID(own))
	}
	return instance, err
}

// backendOnly refuses game servers.
func backendOnly(ctx context.Context) error {
	if own := whoOf(ctx).instance; !own.IsZero() {
		return refusal(flow.PermissionDenied, "the token of a game server is for the calls of its own game")
	}
	return nil
}
