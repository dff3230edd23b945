package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// issuer is the keys of a cell with the access key LOBBY of the role backend, and a clock that the test moves.
type issuer struct {
	*Keys
	at  time.Time
	all []access.Key
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	secret, err := OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &issuer{at: time.UnixMilli(1_795_000_000_123)}
	x.Keys = NewKeys(secret, func() time.Time { return x.at })
	x.all = []access.Key{{ID: "LOBBY", Role: Backend, Account: DefaultAccount}}
	x.Publish(x.all)
	return x
}

func (x *issuer) issue(name string, role Role, valid time.Duration) Credentials {
	return x.Issue(Session{Source: FromKey, Holder: "LOBBY", Name: name, Role: role, Account: DefaultAccount}, valid)
}

func TestSessionSaysWhatWasIssued(t *testing.T) {
	x := newIssuer(t)
	c := x.Issue(Session{Source: FromWebIdentity, Holder: "ci/repo:acme/game:ref:refs/heads/main", Name: "deploy-1", Role: Client, Account: DefaultAccount}, time.Hour)
	key, err := x.With(c.ID, c.Token, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Expires.Equal(x.at.Add(time.Hour)) {
		t.Errorf("the client is told %s, want an hour after %s", c.Expires, x.at)
	}
	c.Expires = c.Expires.Add(Grace)
	if !reflect.DeepEqual(*key.Session(), c.Session) || key.Secret != c.Secret {
		t.Errorf("the key has %+v, want %+v", *key.Session(), c.Session)
	}
	by := key.Principal("192.0.2.1")
	if want := "ci/repo:acme/game:ref:refs/heads/main:deploy-1"; by.ID != want || by.Role != Client {
		t.Errorf("the principal is %s with %s, want %s with client", by.ID, by.Role, want)
	}
	if want := "arn:aws:sts::000000000000:assumed-role/client/deploy-1"; by.ARN() != want {
		t.Errorf("ARN %s, want %s", by.ARN(), want)
	}
	if !strings.HasPrefix(c.ID, "ASIA") || len(c.ID) != 20 || len(c.Secret) != 40 {
		t.Errorf("id %s and a secret of %d characters, want the forms of AWS", c.ID, len(c.Secret))
	}
	own, _ := x.With(x.issue("", Backend, time.Hour).pair())
	if by := own.Principal(""); by.ID != "LOBBY" || by.ARN() != "arn:aws:iam::000000000000:user/backend/LOBBY" {
		t.Errorf("without a name of the session, the principal is %s, %s; want that of the key", by.ID, by.ARN())
	}
}

// All temporary credentials of a key are one holder, whatever the names of their sessions.
func TestHolder(t *testing.T) {
	x := newIssuer(t)
	for _, c := range []Credentials{x.issue("a-1", Backend, time.Hour), x.issue("a-2", Client, time.Hour), x.issue("", Backend, time.Hour)} {
		key, err := x.With(c.pair())
		if err != nil {
			t.Fatal(err)
		}
		if by := key.Principal("192.0.2.1"); by.Holder() != "LOBBY" {
			t.Errorf("%s is held by %s", by.ID, by.Holder())
		}
	}
	key, _ := x.With("LOBBY", "", "192.0.2.1")
	if by := key.Principal("192.0.2.1"); by.Holder() != "LOBBY" {
		t.Errorf("the key itself: %s", by.Holder())
	}
}

func (c Credentials) pair() (id, token, from string) { return c.ID, c.Token, "192.0.2.1" }

func TestAttackSessionTokens(t *testing.T) {
	x, other := newIssuer(t), newIssuer(t)
	c := x.issue("a", Backend, time.Hour)
	text, _ := base64.RawURLEncoding.DecodeString(c.Token)
	refused := func(what, id, token string) {
		t.Helper()
		if key, err := x.With(id, token, "192.0.2.1"); !errors.Is(err, ErrUnknown) || key.Secret != "" {
			t.Errorf("%s: %v, want ErrUnknown", what, err)
		}
	}
	for i := range text { // also while the right token is remembered
		text[i] ^= 1
		refused(fmt.Sprint("byte ", i, " changed"), c.ID, base64.RawURLEncoding.EncodeToString(text))
		text[i] ^= 1
		if i == len(text)/2 {
			if _, err := x.With(c.ID, c.Token, "192.0.2.1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range text {
		refused("cut", c.ID, base64.RawURLEncoding.EncodeToString(text[:n]))
	}
	refused("longer", c.ID, c.Token+"AAAA")
	refused("padded", c.ID, c.Token+"=")
	refused("huge", c.ID, strings.Repeat("A", 1<<20))
	refused("the token of another session", c.ID, x.issue("b", Backend, time.Hour).Token)
	refused("the id of another session", x.issue("b", Backend, time.Hour).ID, c.Token)
	id, token, _ := other.issue("a", Backend, time.Hour).pair()
	refused("another cell's", id, token)
	refused("an access key with a token", "LOBBY", c.Token)
	refused("no token", c.ID, "")
	refused("above the role of its key", x.issue("a", Admin, time.Hour).ID, x.issue("a", Admin, time.Hour).Token)
	above := x.issue("a", Admin, time.Hour)
	refused("above the role of its key", above.ID, above.Token)
}

func TestSessionExpires(t *testing.T) {
	x := newIssuer(t)
	c := x.issue("a", Backend, time.Hour)
	late := x.issue("late", Backend, time.Hour)
	key, err := x.With(c.pair())
	if err != nil {
		t.Fatal(err)
	}
	life := key.Life()
	x.at = c.Expires.Add(Grace - 2*time.Millisecond)
	x.Expire()
	if _, err := x.With(c.pair()); err != nil || life.Err() != nil {
		t.Errorf("just before the end of the grace: %v, %v", err, life.Err())
	}
	x.at = x.at.Add(2 * time.Millisecond)
	for _, c := range []Credentials{c, late} {
		if _, err := x.With(c.pair()); !errors.Is(err, ErrExpired) {
			t.Errorf("at its end: %v, want ErrExpired", err)
		}
	}
	x.Expire()
	if n, _ := x.Sessions(); n != 0 || !errors.Is(context.Cause(life), ErrExpired) {
		t.Errorf("%d sessions are remembered, and the life has ended with %v; want none, and ErrExpired", n, context.Cause(life))
	}
}

// A revocation is dropped when the last credentials to which it can apply have expired, so the grace does not extend the life of any.
func TestGraceKeepsWithinTheLongestLife(t *testing.T) {
	x := newIssuer(t)
	c := x.issue("a", Backend, access.CredentialsLifeMax)
	x.at = c.Expires
	if _, err := x.With(c.pair()); !errors.Is(err, ErrExpired) || !c.Expires.Equal(c.Issued.Add(access.CredentialsLifeMax)) {
		t.Errorf("at the end of the longest life, %s: %v, want ErrExpired", c.Expires, err)
	}
	x.all[0].Expires = domain.TimeOf(x.at.Add(time.Hour))
	x.Publish(x.all)
	c = x.issue("b", Backend, 2*time.Hour)
	if x.at = x.all[0].Expires.Std(); !c.Expires.Equal(x.at) {
		t.Errorf("the client is told %s, want the end of the access key, %s", c.Expires, x.at)
	}
	if _, err := x.With(c.pair()); err == nil {
		t.Error("the credentials outlive their access key by the grace")
	}
}

func TestRevokedSessions(t *testing.T) {
	x := newIssuer(t)
	first, second := x.issue("a", Backend, time.Hour), x.issue("b", Client, time.Hour)
	alive := func(what string, c Credentials, want bool) {
		t.Helper()
		if _, err := x.With(c.pair()); (err == nil) != want || err != nil && !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v; want valid %t", what, err, want)
		}
	}
	key, err := x.With(first.pair())
	if err != nil {
		t.Fatal(err)
	}
	life := key.Life()
	until := domain.TimeOf(x.at.Add(36 * time.Hour))
	one := access.Revocation{Session: first.ID, Until: until}
	x.Revoke([]access.Revocation{one})
	alive("the revoked one", first, false)
	alive("another one", second, true)
	if !errors.Is(context.Cause(life), ErrRevoked) {
		t.Errorf("the life of the revoked one has ended with %v", context.Cause(life))
	}
	x.Revoke([]access.Revocation{one, {Holder: "LOBBY", IssuedUntil: domain.TimeOf(x.at), Until: until}})
	alive("of the holder", second, false)
	x.at = x.at.Add(time.Millisecond)
	third := x.issue("c", Client, time.Hour)
	alive("issued later", third, true)
	x.at = until.Std()
	if left := x.Revoke([]access.Revocation{one}); len(left) != 0 {
		t.Errorf("%d revocations are left whose credentials have expired", len(left))
	}

	fourth := x.issue("d", Client, time.Hour)
	alive("before its key is revoked", fourth, true)
	x.Publish(nil)
	alive("after its key was revoked", fourth, false)
	x.Publish([]access.Key{{ID: "LOBBY", Role: ReadOnly}})
	alive("after its key has another role", fourth, false)
}

// A sign-in session ends at the same moment at which its credentials are used for the first time.
func TestAttackFirstUseAtSignOut(t *testing.T) {
	x := newIssuer(t)
	for range 200 {
		x.PublishSignIns(map[string]SignIn{"signin-1": {access.Roles(Backend), nil}})
		c := x.issueTo("signin-1", Backend)
		var used sync.WaitGroup
		var key AccessKey
		used.Go(func() { key, _ = x.With(c.pair()) })
		x.ChangeSignIns(nil, []string{"signin-1"})
		if _, err := x.With(c.pair()); err == nil {
			t.Fatal("the credentials work after the sign-out")
		}
		used.Wait()
		if key.Secret != "" && key.Life().Err() == nil {
			t.Fatal("the credentials were found, and their life goes on after the sign-out")
		}
	}
}

// A revocation must not miss a session that is used for the first time at this moment.
func TestAttackFirstUseAtRevocation(t *testing.T) {
	x := newIssuer(t)
	until := domain.TimeOf(x.at.Add(36 * time.Hour))
	for range 200 {
		c := x.issue("a", Backend, time.Hour)
		var used sync.WaitGroup
		var key AccessKey
		used.Go(func() { key, _ = x.With(c.pair()) })
		x.Revoke([]access.Revocation{{Session: c.ID, Until: until}})
		used.Wait()
		if key.Secret != "" && key.Life().Err() == nil {
			t.Fatal("the session was found, and its life goes on after the revocation")
		}
		if _, err := x.With(c.pair()); err == nil {
			t.Fatal("the session works after the revocation")
		}
	}
}

func TestSessionsMax(t *testing.T) {
	x := newIssuer(t)
	x.sessions.most = 64
	use := func() AccessKey {
		key, err := x.With(x.issue("a", Client, time.Hour).pair())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	held, late := use(), use()
	life := held.Life()
	for range x.sessions.most {
		use()
	}
	if late.Life().Err() == nil {
		t.Error("the life of a session that was forgotten during a request goes on, and no revocation would end it")
	}
	if n, most := x.Sessions(); n >= most || life.Err() != nil {
		t.Errorf("%d sessions are remembered, and the life of the held one: %v", n, life.Err())
	}
	for range x.sessions.most {
		use().Life()
	}
	if more := use(); more.Life().Err() == nil || more.Secret == "" {
		t.Error("with as many held sessions as there can be, a further one is to work, and its life to have ended")
	}
	x.Revoke([]access.Revocation{{Session: held.ID, Until: domain.TimeOf(x.at.Add(time.Hour))}})
	if life.Err() == nil {
		t.Error("the life of the held session did not end with its revocation")
	}
}

func TestHandle(t *testing.T) {
	x := newIssuer(t)
	key, _ := x.Find("LOBBY")
	session, _ := x.With(x.issue("a", Client, time.Hour).pair())
	for _, k := range []AccessKey{key, session} {
		if found, err := FindHandle(x, k.Handle(), "192.0.2.1"); err != nil || found.ID != k.ID {
			t.Errorf("by the handle of %s: %s, %v", k.ID, found.ID, err)
		}
	}
	if _, err := FindHandle(x, session.ID, "192.0.2.1"); err == nil {
		t.Error("temporary credentials are found without their token")
	}
}

// BenchmarkFindSession compares the cost of finding the key of a request.
func BenchmarkFindSession(b *testing.B) {
	x := newIssuer(b)
	c := x.issue("a", Backend, time.Hour)
	for name, pair := range map[string][2]string{"access key": {"LOBBY", ""}, "temporary": {c.ID, c.Token}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.With(pair[0], pair[1], "192.0.2.1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
