package identity

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
)

func newTestKeys(t testing.TB, all ...access.Key) *Keys {
	t.Helper()
	secret, err := OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := NewKeys(secret, time.Now)
	keys.Publish(all)
	return keys
}

func TestNewKeyID(t *testing.T) {
	if id := NewKeyID(); !regexp.MustCompile(`^MUST[A-Z2-7]{16}$`).MatchString(id) {
		t.Errorf("id %q: want 20 capitals and digits", id)
	}
}

func TestPublishedKeys(t *testing.T) {
	lobby := access.Key{ID: "MUST1", Role: Backend, Account: DefaultAccount, Name: "lobby", Created: 1000}
	gone := access.Key{ID: "MUST2", Role: Admin, Revoked: 5}
	keys := newTestKeys(t, lobby, gone)
	found, ok := keys.Find("MUST1")
	if !ok || found.Role != Backend || found.Name != "lobby" || found.Account != DefaultAccount || len(found.Secret) != 40 || found.Created.UnixMilli() != 1000 {
		t.Errorf("found %v, %+v", ok, found)
	}
	if _, ok := keys.Find("MUST2"); ok {
		t.Error("a revoked key is found")
	}
	keys.Publish([]access.Key{lobby, {ID: "MUST3", Role: Client}})
	if again, _ := keys.Find("MUST1"); again != found || found.Life().Err() != nil {
		t.Error("a key that was not changed became another one")
	}
}

// Connections that a key has opened end before Publish returns, even one that is opened a moment later.
func TestLifeEndsWithTheRevocation(t *testing.T) {
	key := access.Key{ID: "MUST1", Role: Admin}
	keys := newTestKeys(t, key)
	found, _ := keys.Find("MUST1")
	key.Revoked = 7
	keys.Publish([]access.Key{key})
	if _, ok := keys.Find("MUST1"); ok {
		t.Error("the revoked key is found")
	}
	if err := context.Cause(found.Life()); !errors.Is(err, ErrRevoked) {
		t.Errorf("the life of the revoked key ended with %v", err)
	}
	late := make(chan struct{})
	context.AfterFunc(found.Life(), func() { close(late) })
	<-late
}

// A key with another role is another key: connections that were opened with the old role end.
func TestLifeEndsWithTheRole(t *testing.T) {
	keys := newTestKeys(t, access.Key{ID: "MUST1", Role: Admin})
	found, _ := keys.Find("MUST1")
	keys.Publish([]access.Key{{ID: "MUST1", Role: Client}})
	if now, _ := keys.Find("MUST1"); now.Role != Client || found.Life().Err() == nil {
		t.Errorf("the key has role %s, and the life of the old one goes on: %t", now.Role, found.Life().Err() == nil)
	}
}

func TestFindBesideChanges(t *testing.T) { // for the race detector
	first := access.Key{ID: "MUST1", Role: Admin}
	keys := newTestKeys(t, first)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				if _, ok := keys.Find("MUST1"); !ok {
					t.Error("the key was not found for a moment")
					return
				}
				keys.Find("MUSTNOTTHERE")
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	all := []access.Key{first}
	for range 20 {
		all = append(all, access.Key{ID: NewKeyID(), Role: ReadOnly})
		keys.Publish(all)
	}
	close(done)
	readers.Wait()
}

func BenchmarkFind(b *testing.B) {
	keys := newTestKeys(b, access.Key{ID: "MUST1", Role: Admin})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := keys.Find("MUST1"); !ok {
				b.Error("not found")
			}
		}
	})
}

// BenchmarkPublish measures a change of one key among the default maximum of keys.
func BenchmarkPublish(b *testing.B) {
	all := make([]access.Key, 10_000)
	for i := range all {
		all[i] = access.Key{ID: NewKeyID(), Role: Backend}
	}
	keys := newTestKeys(b, all...)
	for b.Loop() {
		keys.Publish(all)
	}
}
