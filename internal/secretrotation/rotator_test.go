package secretrotation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/waittest"
)

// machine is a single machine with its data directory, and a clock that the test moves.
type machine struct {
	*Rotator
	t      *testing.T
	engine *engine.Engine
	keys   *keyring.Ring
	secret identity.CellSecret
	clock  *engine.Clock
	dir    string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	x := &machine{t: t, dir: t.TempDir(), clock: engine.NewClock(time.Now())}
	return x.on(engine.Config{Cell: cell.DefaultConfig(), Clock: x.clock})
}

// on opens the machine's engine and its service.
func (x *machine) on(c engine.Config) *machine {
	t := x.t
	t.Helper()
	x.engine = enginetest.Open(t, c)
	secret, err := identity.OpenCellSecret(x.dir)
	if err != nil {
		t.Fatal(err)
	}
	x.open(secret)
	return x
}

// open starts the service with the secret of the file.
func (x *machine) open(secret identity.CellSecret) {
	x.t.Helper()
	x.secret = secret.Kept(x.dir, nil)
	var err error
	if x.keys, err = keyring.Open(x.t.Context(), keyring.Config{Engine: x.engine, Secret: x.secret, Log: slog.New(slog.DiscardHandler)}); err != nil {
		x.t.Fatal(err)
	}
	if x.Rotator, err = Open(x.t.Context(), Config{Engine: x.engine, Secret: x.secret, Changed: x.keys.SecretChanged, Log: slog.New(slog.DiscardHandler)}); err != nil {
		x.t.Fatal(err)
	}
	x.Lead()
	var once sync.Once
	end := func() {
		once.Do(func() {
			x.Rest()
			x.Close()
			x.keys.Close()
		})
	}
	x.t.Cleanup(end)
}

func (x *machine) rotate(overlap time.Duration) []Document {
	x.t.Helper()
	all, err := x.Rotate(x.t.Context(), ops, overlap)
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

var ops = access.Actor{Principal: "ops", Door: "operator"}

func (x *machine) state(number uint32) Document {
	x.t.Helper()
	all, err := x.List(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	d, err := numbered(all, number)
	if err != nil {
		x.t.Fatal(err)
	}
	return d
}

func TestRotation(t *testing.T) {
	x := newMachine(t)
	old, err := x.keys.Create(t.Context(), ops, keyring.New{Role: access.Admin, Name: "old"})
	if err != nil {
		t.Fatal(err)
	}
	session := x.keys.Issue(identity.Session{Source: identity.FromKey, Holder: old.ID, Role: access.Admin, Account: identity.DefaultAccount}, 36*time.Hour)
	for _, overlap := range []time.Duration{time.Minute, -time.Hour, 400 * 24 * time.Hour} {
		if _, err := x.Rotate(t.Context(), ops, overlap); !domain.IsRefused(err, domain.Invalid) {
			t.Errorf("an overlap of %s: %v", overlap, err)
		}
		if _, ok := x.secret.At(2); ok {
			t.Fatal("a refused rotation has left a generation")
		}
	}
	all := x.rotate(time.Hour)
	if len(all) != 2 || all[0].State != Accepted || all[1].State != Signs || all[0].AccessKeys != 1 || all[1].CreatedBy.Principal != "ops" || !all[0].Until.Equal(all[1].Activated.Add(time.Hour)) {
		t.Fatalf("after the rotation %+v", all)
	}
	made, err := x.keys.Create(t.Context(), ops, keyring.New{Role: access.Backend, Name: "new"})
	if err != nil || made.Generation() != 2 {
		t.Errorf("a key of generation %d, %v", made.Generation(), err)
	}
	if _, err := x.keys.With(session.ID, session.Token, "192.0.2.1"); err != nil {
		t.Errorf("temporary credentials of before: %v", err)
	}
	if use := x.state(1).LastUse; use == nil || use.Purpose != "temporary credentials" {
		t.Errorf("last use %+v", use)
	}
	if _, err := x.Retire(t.Context(), ops, Retirement{Number: 2}); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("the one that signs was retired: %v", err)
	}
	if _, err := x.Retire(t.Context(), ops, Retirement{Number: 9}); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("an unknown one was retired: %v", err)
	}

	x.clock.Skip(time.Hour)
	waittest.Until(x.t, "the date of last use", func() bool { return x.state(1).State == Ended })
	if _, err := x.keys.With(session.ID, session.Token, "192.0.2.1"); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("temporary credentials after the date of last use: %v", err)
	}
	if key, ok := x.keys.Find(old.ID); !ok || key.Secret != old.Secret {
		t.Error("the access key has changed")
	}
	if d := x.state(1); d.Destroyed {
		t.Error("a generation is destroyed that an access key needs")
	}
	if _, err := x.keys.Revoke(t.Context(), ops, old.ID, true); err != nil {
		t.Fatal(err)
	}
	waittest.Until(x.t, "the generation to be destroyed", func() bool {
		_, ok := x.secret.At(1)
		return !ok && x.state(1).Destroyed
	})
	waittest.Until(x.t, "the file to be written", func() bool { // which follows what is in force
		read, err := identity.ReadCellSecret(x.dir, nil)
		return err == nil && read.Text() == x.secret.Text()
	})

	x.Rest()
	x.Close()
	x.keys.Close()
	read, err := identity.ReadCellSecret(x.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.open(read)
	if key, ok := x.keys.Find(made.ID); !ok || key.Secret != made.Secret || x.secret.Generation() != 2 {
		t.Error("after a start, the key or the generation is another one")
	}
}

func TestRetirement(t *testing.T) {
	x := newMachine(t)
	key := func(role access.Role) identity.AccessKey {
		k, err := x.keys.Create(t.Context(), ops, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	admin, backend := key(access.Admin), key(access.Backend)
	session := x.keys.Issue(identity.Session{Source: identity.FromKey, Holder: admin.ID, Role: access.Admin, Account: identity.DefaultAccount}, time.Hour)
	x.rotate(0)
	if would, err := x.Retire(t.Context(), ops, Retirement{Number: 1, DryRun: true}); err != nil || would.Ended || len(would.Keys) != 2 {
		t.Errorf("a dry run: %+v, %v", would, err)
	}
	if _, err := x.keys.With(session.ID, session.Token, "192.0.2.1"); err != nil {
		t.Errorf("after a dry run: %v", err)
	}
	if _, err := x.Retire(t.Context(), ops, Retirement{Number: 1, RevokeKeys: true}); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("the last admin key was revoked: %v", err)
	}
	done, err := x.Retire(t.Context(), ops, Retirement{Number: 1})
	if err != nil || !done.Ended || len(done.Keys) != 2 || done.Revoked || done.Generation.EndedBy.Principal != "ops" {
		t.Errorf("retired: %+v, %v", done, err)
	}
	if _, err := x.keys.With(session.ID, session.Token, "192.0.2.1"); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("temporary credentials of a retired generation: %v", err)
	}
	if k, ok := x.keys.Find(backend.ID); !ok || k.Secret != backend.Secret {
		t.Error("an access key has changed")
	}
	later := key(access.Admin)
	done, err = x.Retire(t.Context(), ops, Retirement{Number: 1, RevokeKeys: true})
	if err != nil || !done.Revoked || len(done.Keys) != 2 {
		t.Errorf("retired with its keys: %+v, %v", done, err)
	}
	waittest.Until(x.t, "the keys to be revoked", func() bool { _, ok := x.keys.Find(backend.ID); return !ok })
	if _, ok := x.keys.Find(later.ID); !ok {
		t.Error("a key of the next generation was revoked")
	}
}

// The maximum number of generations can be in use.
// A generation that was retired is reported as retired even if the leader is lost at that moment.
func TestRetirementWithoutALeader(t *testing.T) {
	peers := &enginetest.Leading{}
	x := (&machine{t: t, dir: t.TempDir()}).on(engine.Config{Cell: cell.DefaultConfig(), Peers: peers, Patience: time.Millisecond})
	x.rotate(0)
	peers.Lost.Store(true)
	done, err := x.Retire(t.Context(), ops, Retirement{Number: 1, Force: true})
	if err != nil || !done.Ended || done.Generation.State != Ended {
		t.Errorf("retired: %+v, %v", done, err)
	}
}

func TestMostGenerations(t *testing.T) {
	x := newMachine(t)
	for n := 1; n < access.SecretsMax; n++ {
		x.rotate(0)
	}
	if _, err := x.Rotate(t.Context(), ops, 0); !domain.IsRefused(err, domain.LimitExceeded) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := x.Retire(t.Context(), ops, Retirement{Number: 1}); err != nil {
		t.Fatal(err)
	}
	x.rotate(0)
	if got := x.secret.Generation(); got != access.SecretsMax+1 {
		t.Errorf("generation %d signs", got)
	}
}

// While callers check and sign, rotations refuse no valid credentials.
func TestRotationUnderLoad(t *testing.T) {
	x := newMachine(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var pair sync.RWMutex // a token is made and checked without a retirement in between
	for range 4 {
		load.Go(func() {
			check := func() {
				pair.RLock()
				defer pair.RUnlock()
				token := x.secret.PartnerToken("gi-1")
				if !x.secret.Accepts("token", func(g identity.CellSecret) bool { return identity.Equal(token, g.PartnerToken("gi-1")) }) {
					t.Error("a token that was just made is refused")
				}
				if x.secret.Accepts("token", func(g identity.CellSecret) bool { return identity.Equal("forged", g.PartnerToken("gi-1")) }) {
					t.Error("a forged token is accepted")
				}
			}
			for ctx.Err() == nil && !t.Failed() {
				check()
			}
		})
	}
	for n := uint32(1); n <= 6; n++ {
		x.rotate(0)
		if n > 1 {
			pair.Lock()
			if _, err := x.Retire(t.Context(), ops, Retirement{Number: n - 1}); err != nil {
				t.Error(err)
			}
			pair.Unlock()
		}
	}
	stop()
	load.Wait()
}
