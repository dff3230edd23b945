package serverlink

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
)

// testKeys are access keys that a test makes and revokes.
type testKeys struct {
	*identity.Keys
	all []access.Key
}

func newTestKeys(t testing.TB) *testKeys {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &testKeys{Keys: identity.NewKeys(secret, time.Now)}
}

func (k *testKeys) Create(role identity.Role, name string) (identity.AccessKey, error) {
	id := identity.NewKeyID()
	k.all = append(k.all, access.Key{ID: id, Role: role, Account: identity.DefaultAccount, Name: name})
	k.Publish(k.all)
	key, _ := k.Find(id)
	return key, nil
}

func (k *testKeys) Revoke(id string) error {
	for i := range k.all {
		if k.all[i].ID == id {
			k.all[i].Revoked = 1
		}
	}
	k.Publish(k.all)
	return nil
}
