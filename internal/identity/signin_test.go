package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

func (x *issuer) issueTo(signIn string, role Role) Credentials {
	return x.Issue(Session{Source: FromPerson, SignIn: signIn, Holder: "studio/ann", Name: "ann", Role: role, Account: DefaultAccount}, time.Hour)
}

// Temporary credentials of a person are valid as long as the sign-in session lasts and its roles include theirs.
func TestCredentialsOfAPerson(t *testing.T) {
	x := newIssuer(t)
	works := func(what string, c Credentials, want bool) AccessKey {
		t.Helper()
		key, err := x.With(c.pair())
		if (err == nil) != want || err != nil && !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v; want valid %t", what, err, want)
		}
		return key
	}
	early := x.issueTo("signin-1", Backend)
	works("before the session is known here", early, false)
	x.ChangeSignIns(map[string]SignIn{"signin-1": {access.Roles(Backend, ReadOnly), []string{"dev"}}}, nil)
	key := works("then", early, true)
	if got := key.Principal("192.0.2.1"); got.ID != "studio/ann:ann" || key.Session().SignIn != "signin-1" {
		t.Errorf("the principal is %+v", got)
	}
	works("a role that backend covers", x.issueTo("signin-1", Client), true)
	works("above the roles", x.issueTo("signin-1", Admin), false)
	works("of another session", x.issueTo("signin-2", Backend), false)
	works("without a session", x.issueTo("", Backend), false)

	life := key.Life()
	x.ChangeSignIns(map[string]SignIn{"signin-1": {access.Roles(Backend), []string{"dev", "ops"}}}, nil)
	if works("after the groups have changed", early, true); life.Err() != nil {
		t.Errorf("the life has ended: %v", context.Cause(life))
	}
	read := x.issueTo("signin-1", ReadOnly)
	works("readonly", read, true)
	x.ChangeSignIns(map[string]SignIn{"signin-1": {access.Roles(ReadOnly), nil}}, nil)
	works("after the role has gone", early, false)
	works("what the roles still cover", read, true)
	if !errors.Is(context.Cause(life), ErrRevoked) {
		t.Errorf("the life of credentials above the roles has ended with %v", context.Cause(life))
	}
	life = works("still", read, true).Life()
	x.ChangeSignIns(nil, []string{"signin-1"})
	works("after the session", read, false)
	if life.Err() == nil {
		t.Error("the life goes on after the session")
	}
	x.PublishSignIns(map[string]SignIn{"signin-1": {access.Roles(ReadOnly), nil}})
	works("all published", read, true)
	x.PublishSignIns(nil)
	works("none published", read, false)
}

// A service that does not know the claim of a sign-in session must refuse the token, because the end of the session would not end the credentials there.
func TestCredentialsOfAPersonHaveAnotherVersion(t *testing.T) {
	x := newIssuer(t)
	x.PublishSignIns(map[string]SignIn{"signin-1": {access.Roles(Backend), nil}})
	for version, c := range map[byte]Credentials{1: x.issue("a", Backend, time.Hour), 2: x.issueTo("signin-1", Backend)} {
		text, _ := base64.RawURLEncoding.DecodeString(c.Token)
		if text[0] != version {
			t.Errorf("token of %v has version %d, want %d", c.Source, text[0], version)
		}
		text[0] ^= 3
		if _, err := x.With(c.ID, base64.RawURLEncoding.EncodeToString(text), "192.0.2.1"); !errors.Is(err, ErrUnknown) {
			t.Errorf("with the other version: %v", err)
		}
	}
}

// Access can be explained while people sign in and out. The race detector watches.
func TestTargetsWhilePeopleSignIn(t *testing.T) {
	x := newIssuer(t)
	x.ChangeSignIns(map[string]SignIn{"signin-1": {access.Roles(ReadOnly), []string{"dev"}}}, nil)
	key, err := x.With(x.issueTo("signin-1", ReadOnly).pair())
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	others.Go(func() {
		for range 1000 {
			x.ChangeSignIns(map[string]SignIn{"signin-2": {access.Roles(ReadOnly), nil}}, nil)
			x.ChangeSignIns(nil, []string{"signin-2"})
		}
	})
	want := []access.Target{{Kind: access.RoleTarget, Name: "readonly"}, {Kind: access.GroupTarget, Name: "dev"}}
	for range 1000 {
		if got := x.TargetsOf(key); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	others.Wait()
}
