package keyring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/waittest"
)

var ops = access.Actor{Principal: "ops", Address: "192.0.2.1", Door: "operator"}

// running is a running service's use of a data directory.
type running struct {
	*Ring
	dir    *datadir.Dir
	engine *engine.Engine
}

func start(t *testing.T, dir string) (_ *running, err error) {
	t.Helper()
	d, err := datadir.Open(datadir.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	x := &running{dir: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if x.engine, err = engine.Open(t.Context(), engine.Config{Journal: d.Journal, Archive: d.Archive, Cell: cell.DefaultConfig(), Loaded: d.CheckState}); err != nil {
		return nil, err
	}
	if err := d.Commit(t.Context()); err != nil {
		return nil, errors.Join(err, x.engine.Close())
	}
	x.Ring, err = Open(t.Context(), Config{Engine: x.engine, Dir: dir, Secret: d.Secret})
	if err != nil {
		return nil, errors.Join(err, x.engine.Close())
	}
	return x, nil
}

func mustStart(t *testing.T, dir string) *running {
	t.Helper()
	x, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *running) stop(t *testing.T) {
	t.Helper()
	x.Close()
	if err := errors.Join(x.engine.Close(), x.dir.Close()); err != nil {
		t.Fatal(err)
	}
}

// writeFile writes the file of an earlier release.
func writeFile(t *testing.T, dir string) (content string) {
	t.Helper()
	content = `{"format": 1, "keys": [
		{"id": "MUSTAAAAAAAAAAAAAAAA", "role": "backend", "account": "123456789012", "name": "lobby", "created": "2026-01-02T03:04:05Z"},
		{"id": "MUSTBBBBBBBBBBBBBBBB", "role": "admin", "account": "000000000000", "name": "", "created": "2026-01-03T00:00:00Z", "revoked": "2026-02-01T00:00:00Z"}]}`
	put(t, dir, identity.KeysFile, content)
	return content
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// oldSecret writes a secret in the format of releases that stored access keys in a file.
func oldSecret(t *testing.T, dir string, fill byte) {
	t.Helper()
	put(t, dir, "cell.secret", strings.Repeat(string(rune(fill)), 32))
}

func TestFileIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	oldSecret(t, dir, 7)
	content := writeFile(t, dir)
	x := mustStart(t, dir)
	key, ok := x.Find("MUSTAAAAAAAAAAAAAAAA")
	if !ok || key.Role != identity.Backend || key.Account != "123456789012" || key.Name != "lobby" || key.Secret != x.CellSecret().AccessKeySecret(key.ID) {
		t.Errorf("found %v, %v", ok, key)
	}
	if _, ok := x.Find("MUSTBBBBBBBBBBBBBBBB"); ok {
		t.Error("a key that had been revoked works")
	}
	all, err := x.List(t.Context())
	want := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	if err != nil || len(all) != 2 || !all[0].Created.Std().Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || !all[1].Revoked.Std().Equal(want) || all[0].CreatedBy.Door != "file" {
		t.Errorf("listed %+v, %v", all, err)
	}
	if exists(dir, identity.KeysFile) {
		t.Error("the file is still there")
	}
	if kept, err := os.ReadFile(filepath.Join(dir, identity.ImportedKeysFile)); err != nil || string(kept) != content {
		t.Errorf("the imported file: %q, %v", kept, err)
	}
	if _, err := x.Revoke(t.Context(), ops, key.ID, false); err != nil {
		t.Fatal(err)
	}
	x.stop(t)

	// A crash between the import and the renaming leaves the file. It is recognised, and later revocations stay in force.
	writeFile(t, dir)
	x = mustStart(t, dir)
	if _, ok := x.Find(key.ID); ok || exists(dir, identity.KeysFile) {
		t.Errorf("the file came again: the revoked key works: %t, the file is still there: %t", ok, exists(dir, identity.KeysFile))
	}
	if all, err := x.List(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%d keys, %v", len(all), err)
	}
	x.stop(t)

	// Any other file is refused, and is not changed.
	other := strings.Replace(content, "MUSTAAAA", "MUSTCCCC", 1)
	put(t, dir, identity.KeysFile, other)
	if _, err := start(t, dir); err == nil || !strings.Contains(err.Error(), identity.KeysFile) || !strings.Contains(err.Error(), "muster keys create") {
		t.Errorf("a file that was put there by hand: %v", err)
	}
	if !exists(dir, identity.KeysFile) {
		t.Error("the refused file is gone")
	}
}

// A new directory does not import a file either once it was used.
func TestLaterFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	mustStart(t, dir).stop(t)
	writeFile(t, dir)
	if _, err := start(t, dir); err == nil || !strings.Contains(err.Error(), identity.KeysFile) {
		t.Errorf("started: %v", err)
	}
	if _, err := OpenOffline(t.Context(), dir, nil, cell.DefaultConfig()); err == nil || !strings.Contains(err.Error(), identity.KeysFile) {
		t.Errorf("opened offline: %v", err)
	}
}

func TestDamagedFileStopsTheStart(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"not JSON":      func(string) string { return "{" },
		"empty":         func(string) string { return "" },
		"unknown field": func(s string) string { return strings.Replace(s, `"name"`, `"only-from"`, 1) },
		"unknown role":  func(s string) string { return strings.Replace(s, `"admin"`, `"root"`, 1) },
		"no role":       func(s string) string { return strings.Replace(s, `"role": "admin",`, "", 1) },
		"no id":         func(s string) string { return strings.Replace(s, `MUSTAAAAAAAAAAAAAAAA`, "", 1) },
		"twice":         func(s string) string { return strings.Replace(s, `MUSTAAAAAAAAAAAAAAAA`, "MUSTBBBBBBBBBBBBBBBB", 1) },
		"newer format":  func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			oldSecret(t, dir, 7)
			good := writeFile(t, dir)
			put(t, dir, identity.KeysFile, change(good))
			if _, err := start(t, dir); err == nil || !strings.Contains(err.Error(), identity.KeysFile) {
				t.Errorf("want an error that names %s, got %v", identity.KeysFile, err)
			}
			put(t, dir, identity.KeysFile, good) // mended, it is taken over
			x := mustStart(t, dir)
			defer x.stop(t)
			if _, ok := x.Find("MUSTAAAAAAAAAAAAAAAA"); !ok {
				t.Error("the mended file was not taken over")
			}
		})
	}
}

// With another secret every key and token is invalid. This happens if a backup is assembled from the wrong parts.
func TestForeignSecretStopsTheStart(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	mustStart(t, dir).stop(t)
	oldSecret(t, other, 8)
	if err := os.Rename(filepath.Join(other, "cell.secret"), filepath.Join(dir, "cell.secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, dir); err == nil || !strings.Contains(err.Error(), "cell.secret") {
		t.Errorf("started: %v", err)
	}
}

// An acknowledged command is in force at once, for all callers, and after a restart.
func TestChangesAreInForceWhenTheyAreAnswered(t *testing.T) {
	dir := t.TempDir()
	x := mustStart(t, dir)
	var made sync.WaitGroup
	for range 8 {
		made.Go(func() {
			for range 10 {
				key, err := x.Create(t.Context(), ops, New{Role: access.Backend, Name: "lobby"})
				if err != nil {
					t.Error(err)
					return
				}
				found, ok := x.Find(key.ID)
				if !ok || found.Secret != key.Secret {
					t.Errorf("created key %s: found %t", key.ID, ok)
				}
				if _, err := x.Revoke(t.Context(), ops, key.ID, false); err != nil {
					t.Error(err)
				}
				if _, ok := x.Find(key.ID); ok || found.Life().Err() == nil {
					t.Errorf("revoked key %s: found %t, its life has ended: %t", key.ID, ok, found.Life().Err() != nil)
				}
			}
		})
	}
	made.Wait()
	kept, err := x.Create(t.Context(), ops, New{Role: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Revoke(t.Context(), ops, kept.ID, false); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("the last admin key was revoked: %v", err)
	}
	if _, err := x.Revoke(t.Context(), ops, "MUSTNOTTHERE", true); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("an unknown key was revoked: %v", err)
	}
	x.stop(t)
	x = mustStart(t, dir)
	defer x.stop(t)
	all, err := x.List(t.Context())
	if err != nil || len(all) != 81 || all[0].CreatedBy != ops || all[0].RevokedBy != ops {
		t.Errorf("%d keys after a restart, %v: %+v", len(all), err, all[0])
	}
	if _, ok := x.Find(kept.ID); !ok {
		t.Error("a key is gone after the restart")
	}
}

func TestRefusedKeys(t *testing.T) {
	x := mustStart(t, t.TempDir())
	defer x.stop(t)
	for name, n := range map[string]New{
		"no role": {}, "an unknown role": {Role: 9}, "two lines": {Role: access.Admin, Name: "two\nlines"},
		"a long name": {Role: access.Admin, Name: strings.Repeat("x", access.NameMax+1)}, "no UTF-8": {Role: access.Admin, Name: "\xff"},
		"an end in the past": {Role: access.Admin, Expires: time.Now().Add(-time.Hour)}, "no network": {Role: access.Admin, Sources: []string{"lobby.example"}},
		"many networks": {Role: access.Admin, Sources: manyNetworks()},
	} {
		if _, err := x.Create(t.Context(), ops, n); !domain.IsRefused(err, domain.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A change while the service is down must not count as uptime. Otherwise game servers would have less time to return.
func TestOfflineChangeMovesNoDeadline(t *testing.T) {
	dir := t.TempDir()
	x := mustStart(t, dir)
	if err := x.engine.Do(t.Context(), &hosting.CreateLocation{Name: "custom-home"}); err != nil {
		t.Fatal(err)
	}
	x.stop(t)
	last := lastOf(t, dir)
	time.Sleep(5 * time.Millisecond)
	o, err := OpenOffline(t.Context(), dir, nil, cell.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	key, err := o.Create(t.Context(), ops, New{Role: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	if key.Created.UnixMilli() <= int64(last) {
		t.Errorf("created at %v, the service went down at %v", key.Created, last.Std())
	}
	if _, err := start(t, dir); err == nil {
		t.Error("two processes have the directory")
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if now := lastOf(t, dir); now != last {
		t.Errorf("the last transaction was at %v, is at %v", last, now)
	}
	x = mustStart(t, dir)
	defer x.stop(t)
	if found, ok := x.Find(key.ID); !ok || found.Secret != key.Secret {
		t.Error("the service does not know the key")
	}
}

// lastOf returns the time of the last transaction in a directory.
func lastOf(t *testing.T, dir string) (last domain.Time) {
	t.Helper()
	j, err := journalpebble.Open(journalpebble.Options{Dir: filepath.Join(dir, "journal"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for entry, err := range j.Read(context.Background(), 0) { // the first ones may be in a snapshot alone
		if err != nil {
			t.Fatal(err)
		}
		if err := cell.EachEvent(entry.Batch, func(at domain.Time, _ kernel.Event) { last = max(last, at) }); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// A node that missed events takes the keys from the state. An event that is older than the state restores no key.
func TestKeysBehindAGap(t *testing.T) {
	x := mustStart(t, t.TempDir())
	defer x.stop(t)
	before, err := x.Create(t.Context(), ops, New{Role: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	x.unfollow()
	create := func(id string) *access.CreateAccessKey {
		cmd := &access.CreateAccessKey{Key: access.Key{ID: id, Role: access.Admin}}
		if err := x.engine.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	create("MUSTMISSED")
	revoked := create("MUSTSHORT")
	for _, id := range []string{before.ID, "MUSTSHORT"} {
		if err := x.engine.Do(t.Context(), &access.RevokeAccessKey{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	old, _ := x.Find(before.ID)
	x.follow(engine.Committed{Number: revoked.Key.Changed, Gap: true})
	works := func(want string) {
		t.Helper()
		for _, id := range []string{before.ID, "MUSTMISSED", "MUSTSHORT"} {
			if _, ok := x.Find(id); ok != (id == want) {
				t.Errorf("key %s works: %t", id, ok)
			}
		}
	}
	works("MUSTMISSED")
	if old.Life().Err() == nil {
		t.Error("the life of a revoked key has not ended")
	}
	x.follow(engine.Committed{Number: revoked.Key.Changed + 1, Events: []kernel.Emitted{{Event: &access.AccessKeyCreated{Key: revoked.Key}}}})
	works("MUSTMISSED")
}

// A policy is in force when the command that attaches it returns, and also after a restart. Invalid policy documents change nothing.
func TestPolicies(t *testing.T) {
	dir := t.TempDir()
	x := mustStart(t, dir)
	if err := x.engine.Do(t.Context(), &kernel.RaiseLevel{To: kernel.Level}); err != nil {
		t.Fatal(err)
	}
	key, err := x.Create(t.Context(), ops, New{Role: access.Admin, Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	document := `{"Version":"2012-10-17","Statement":{"Sid":"Look","Effect":"Allow","Action":"gamelift:Describe*","Resource":"arn:aws:gamelift:*:*:fleet/fleet-a"}}`
	if _, err := x.CreatePolicy(t.Context(), ops, PolicyChange{Name: "look", Document: []byte(`{"Version":"2012-10-17","Statement":[]}`)}); !domain.IsRefused(err, domain.Invalid) {
		t.Errorf("a bad document: %v", err)
	}
	if _, err := x.CreatePolicy(t.Context(), ops, PolicyChange{Name: "look", Document: []byte(document)}); err != nil {
		t.Fatal(err)
	}
	if err := x.AttachPolicy(t.Context(), ops, "look", key.ID); err != nil {
		t.Fatal(err)
	}
	roles := func(policy.Action) (identity.Roles, bool) { return identity.MayAdminister, true }
	check := func(who, action, resource string, allowed bool, want string) {
		t.Helper()
		a, err := x.ExplainAccess(AccessQuestion{Who: who, Action: action, Resource: resource}, roles)
		if err != nil || a.Allowed != allowed || !strings.Contains(a.Why, want) {
			t.Errorf("%s, %s, %s: %+v, %v; want %t, %q", who, action, resource, a, err, allowed, want)
		}
	}
	fleet := "arn:aws:gamelift:us-east-1:000000000000:fleet/fleet-a"
	check(key.ID, "gamelift:DescribeBuild", fleet, true, `Statement "Look" of policy look allows it.`)
	check(identity.UserARN(key.Account, key.Role, key.ID), "gamelift:DescribeBuild", fleet+"b", false, "No statement allows it")
	check("role:admin", "gamelift:DescribeBuild", fleet, true, "no policy is attached to role:admin")
	check("role:readonly", "gamelift:DescribeBuild", fleet, false, "The role readonly may not")
	if found, _ := x.Find(key.ID); found.SetOf() == nil || key.Life().Err() != nil {
		t.Error("the policy is not in force")
	}
	c := x.Issue(identity.Session{Source: identity.FromKey, Holder: key.ID, Name: "build-1", Role: identity.Admin, Account: identity.DefaultAccount}, time.Hour)
	if _, err := x.ExplainAccess(AccessQuestion{Who: c.ARN(), Action: "gamelift:DescribeBuild", Resource: fleet}, roles); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("a session that was not used: %v", err)
	}
	if _, err := x.With(c.ID, c.Token, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	check(c.ARN(), "gamelift:ListFleets", "*", false, "No statement allows it, and policies are attached to key:"+key.ID+".")
	if _, err := x.UpdatePolicy(t.Context(), ops, "look", PolicyChange{Version: 2, Document: []byte(document)}); !domain.IsRefused(err, domain.Conflict) {
		t.Errorf("an update of another version: %v", err)
	}
	if p, err := x.UpdatePolicy(t.Context(), ops, "look", PolicyChange{Version: 1, Document: []byte(strings.Replace(document, "Allow", "Deny", 1))}); err != nil || p.Version != 2 || len(p.Attached) != 1 {
		t.Errorf("updated: %+v, %v", p, err)
	}
	check(key.ID, "gamelift:DescribeBuild", fleet, false, `Statement "Look" of policy look denies it.`)
	x.stop(t)

	x = mustStart(t, dir)
	defer x.stop(t)
	check(key.ID, "gamelift:DescribeBuild", fleet, false, `Statement "Look" of policy look denies it.`)
	if err := x.DetachPolicy(t.Context(), ops, "look", "key:"+key.ID); err != nil {
		t.Fatal(err)
	}
	if found, _ := x.Find(key.ID); found.SetOf() != nil {
		t.Error("the policy is in force after it was detached")
	}
	if err := x.DeletePolicy(t.Context(), ops, "look"); err != nil {
		t.Fatal(err)
	}
	if all, err := x.Policies(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d policies, %v", len(all), err)
	}
}

// A policy that was updated is returned even if the leader is lost at that moment.
func TestPolicyUpdatedWithoutALeader(t *testing.T) {
	peers := &enginetest.Leading{}
	r, err := Open(t.Context(), Config{
		Engine: enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Peers: peers, Patience: time.Millisecond}), Secret: identity.NewCellSecret(),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	document := func(effect string) PolicyChange {
		return PolicyChange{Name: "look", Version: 1, Document: []byte(`{"Version":"2012-10-17","Statement":{"Effect":"` + effect + `","Action":"*","Resource":"*"}}`)}
	}
	if _, err := r.CreatePolicy(t.Context(), ops, document("Allow")); err != nil {
		t.Fatal(err)
	}
	if err := r.AttachPolicy(t.Context(), ops, "look", "role:backend"); err != nil {
		t.Fatal(err)
	}
	peers.Lost.Store(true)
	d, err := r.UpdatePolicy(t.Context(), ops, "look", document("Deny"))
	if err != nil || d.Version != 2 || !strings.Contains(string(d.Document), "Deny") || !slices.Equal(d.Attached, []string{"role:backend"}) {
		t.Errorf("updated: %+v, %v", d, err)
	}
}

func manyNetworks() (all []string) {
	for i := range access.SourcesMax + 1 {
		all = append(all, fmt.Sprintf("10.%d.0.0/16", i))
	}
	return all
}

// The uses of keys that a node has seen are recorded, in parts. Lists show them even before that.
func TestUsesAreRecorded(t *testing.T) {
	x := mustStart(t, t.TempDir())
	defer x.stop(t)
	key, err := x.Create(t.Context(), ops, New{Role: access.Backend, Name: "lobby"})
	if err != nil {
		t.Fatal(err)
	}
	lastUse := func() access.Use {
		t.Helper()
		all, err := x.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d keys, %v", len(all), err)
		}
		return all[0].LastUse
	}
	if use := lastUse(); use != (access.Use{}) {
		t.Errorf("a new key was used: %+v", use)
	}
	found, err := x.With(key.ID, "", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	by := found.Principal("192.0.2.1")
	by.Used("CreateGameSession")
	if use := lastUse(); use.Operation != "CreateGameSession" || use.Address != "192.0.2.1" || use.At == 0 {
		t.Errorf("the list has the use %+v", use)
	}
	uses := x.unrecorded()
	if len(uses) != 1 {
		t.Fatalf("%d uses are to be recorded", len(uses))
	}
	if err := x.engine.Do(t.Context(), &access.NoteKeyUses{Uses: make([]access.Use, access.UsesMax+1)}); !domain.IsRefused(err, domain.Invalid) {
		t.Errorf("too many uses at once: %v", err)
	}
	if err := x.engine.Do(t.Context(), &access.NoteKeyUses{Uses: uses}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the follower has the event", func() bool { return len(x.unrecorded()) == 0 })
}

// At a cluster's node, the leader imports the file of an earlier release after the ring was opened. The keys work at once.
func TestFileIsTakenOverByALeader(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir)
	r, err := Open(t.Context(), Config{Engine: enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig()}), Dir: dir, Secret: identity.NewCellSecret(), Node: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the imported key works", func() bool { _, ok := r.Find("MUSTAAAAAAAAAAAAAAAA"); return ok })
	if _, ok := r.Find("MUSTBBBBBBBBBBBBBBBB"); ok {
		t.Error("a key that had been revoked works")
	}
}
