package identity

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// change publishes the access key after a change of its record.
func (x *issuer) change(f func(*access.Key)) {
	f(&x.all[0])
	x.Publish(x.all)
}

// A key, its temporary credentials and their connections end when the key expires, whether or not the state has noticed that.
func TestKeyExpires(t *testing.T) {
	x := newIssuer(t)
	end := x.at.Add(time.Hour)
	x.change(func(k *access.Key) { k.Expires = domain.TimeOf(end) })
	c := x.issue("a", Backend, 2*time.Hour)
	if !c.Expires.Equal(end.Truncate(time.Millisecond)) {
		t.Errorf("temporary credentials are valid until %s, the key until %s", c.Expires, end)
	}
	key, _ := x.Find("LOBBY")
	session, err := x.With(c.pair())
	if err != nil {
		t.Fatal(err)
	}
	lives := []context.Context{key.Life(), session.Life()}
	x.at = end.Add(-time.Millisecond)
	x.Expire()
	for i, life := range lives {
		if life.Err() != nil {
			t.Errorf("life %d ended before the key expired", i)
		}
	}
	wants := func(when string) {
		t.Helper()
		if _, err := x.With("LOBBY", "", "192.0.2.1"); !errors.Is(err, ErrExpired) {
			t.Errorf("%s the key is found with %v", when, err)
		}
		if _, ok := x.Find("LOBBY"); ok {
			t.Errorf("%s the key is found", when)
		}
	}
	x.at = end
	wants("once it has expired")
	if _, err := x.With(c.pair()); !errors.Is(err, ErrExpired) {
		t.Errorf("its temporary credentials: %v", err)
	}
	x.Expire()
	x.change(func(k *access.Key) { k.Revoked = k.Expires })
	for i, life := range lives {
		if !errors.Is(context.Cause(life), ErrExpired) {
			t.Errorf("life %d ended with %v", i, context.Cause(life))
		}
	}
	wants("when the state has its end")
}

// An earlier expiry applies to a key that is in use, without ending the connections that it has opened.
func TestKeyGetsAnEnd(t *testing.T) {
	x := newIssuer(t)
	key, _ := x.Find("LOBBY")
	session, _ := x.With(x.issue("a", Backend, 2*time.Hour).pair())
	x.change(func(k *access.Key) { k.Expires, k.Successor = domain.TimeOf(x.at.Add(time.Minute)), "NEXT" })
	if key.Life().Err() != nil || session.Life().Err() != nil {
		t.Error("a new end of the key ended what it had opened at once")
	}
	x.at = x.at.Add(time.Minute)
	x.Expire()
	if !errors.Is(context.Cause(key.Life()), ErrExpired) || !errors.Is(context.Cause(session.Life()), ErrExpired) {
		t.Errorf("the lives ended with %v and %v", context.Cause(key.Life()), context.Cause(session.Life()))
	}
}

func TestKeyWorksFromItsNetworks(t *testing.T) {
	x := newIssuer(t)
	c := x.issue("a", Backend, time.Hour)
	if _, err := x.With(c.pair()); err != nil { // remembered before the limit
		t.Fatal(err)
	}
	sources, err := ParseSources([]string{"10.1.0.0/16", "192.0.2.7", "2001:db8:1::/48", " 10.1.2.3/16"})
	if err != nil || !slices.Equal(sources, []string{"10.1.0.0/16", "192.0.2.7/32", "2001:db8:1::/48"}) {
		t.Fatalf("networks %q, %v", sources, err)
	}
	x.change(func(k *access.Key) { k.Sources = sources })
	for from, want := range map[string]error{
		"10.1.255.255": nil, "192.0.2.7": nil, "2001:db8:1:5::/64": nil,
		"10.2.0.1": ErrElsewhere, "192.0.2.8": ErrElsewhere, "2001:db8:2::/64": ErrElsewhere, "": ErrElsewhere, "@": ErrElsewhere, "::ffff:10.1.0.1": nil,
	} {
		if _, err := x.With("LOBBY", "", from); !errors.Is(err, want) {
			t.Errorf("the key from %q: %v, want %v", from, err, want)
		}
		if _, err := x.With(c.ID, c.Token, from); !errors.Is(err, want) {
			t.Errorf("its temporary credentials from %q: %v, want %v", from, err, want)
		}
	}
	x.change(func(k *access.Key) { k.Sources = []string{"what a later release writes"} })
	if _, err := x.With("LOBBY", "", "10.1.0.1"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("with a network that cannot be read: %v", err)
	}
	for _, wrong := range []string{"", "10.0.0.0/33", "lobby.example", "2001:db8::1", "2001:db8::/65", "::ffff:10.0.0.0/104", "10.0.0.1:80"} {
		if got, err := ParseSources([]string{wrong}); err == nil {
			t.Errorf("network %q is read as %q", wrong, got)
		}
	}
}

// Like a change of policies, a change of the networks ends the connections of the key and its temporary credentials. Game servers within the new networks may reconnect.
func TestNetworksChangeInUse(t *testing.T) {
	x := newIssuer(t)
	key, _ := x.Find("LOBBY")
	by := key.Principal("192.0.2.1")
	by.Used("CreateGameSession")
	c := x.issue("a", Backend, time.Hour)
	session, _ := x.With(c.pair())
	x.change(func(k *access.Key) { k.Sources = []string{"192.0.2.0/24"} })
	for what, life := range map[string]context.Context{"the key": key.Life(), "its temporary credentials": session.Life()} {
		if cause := context.Cause(life); !errors.Is(cause, ErrPolicies) {
			t.Errorf("%s: the life ended with %v", what, cause)
		}
	}
	if len(x.Uses()) != 1 {
		t.Error("the last use is forgotten")
	}
	again, err := x.With(c.pair())
	if err != nil || again.Life().Err() != nil {
		t.Errorf("from one of the networks: %v, %v", err, again.Life().Err())
	}
	if _, err := x.With(c.ID, c.Token, "198.51.100.1"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("from elsewhere: %v", err)
	}
	x.change(func(k *access.Key) { k.Role = ReadOnly })
	if cause := context.Cause(again.Life()); !errors.Is(cause, ErrRevoked) {
		t.Errorf("with another role: %v", cause)
	}
}

// Uses of a key's temporary credentials also count for its last use, which is recorded once in a while.
func TestLastUse(t *testing.T) {
	x := newIssuer(t)
	if got := x.Uses(); len(got) != 0 {
		t.Errorf("an unused key has uses: %+v", got)
	}
	key, _ := x.Find("LOBBY")
	by := key.Principal("192.0.2.1")
	by.Used("CreateGameSession")
	want := access.Use{Key: "LOBBY", At: domain.TimeOf(x.at), Address: "192.0.2.1", Operation: "CreateGameSession"}
	session, _ := x.With(x.issue("a", Client, time.Hour).pair())
	then := session.Principal("192.0.2.2")
	then.Used("within the same half minute")
	if got := x.Uses(); !slices.Equal(got, []access.Use{want}) {
		t.Errorf("uses %+v, want %+v", got, want)
	}
	x.at = x.at.Add(usedEvery)
	then.Used("JoinSession")
	want = access.Use{Key: "LOBBY", At: domain.TimeOf(x.at), Address: "192.0.2.2", Operation: "JoinSession"}
	if got := x.Uses(); !slices.Equal(got, []access.Use{want}) {
		t.Errorf("uses %+v, want %+v", got, want)
	}
	allocates := testing.AllocsPerRun(100, func() { by.Used("CreateGameSession") })
	if allocates != 0 {
		t.Errorf("a use allocates %v times", allocates)
	}
}
