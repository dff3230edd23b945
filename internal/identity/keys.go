// Package identity authenticates callers: it has the valid access keys, with their secrets and roles, the secret of the
// cell, and the tokens of game servers. It stores no secret but the cell's; all others are derived from that
// one.
package identity

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/policy"
)

// DefaultAccount is the account in ARNs: a signature names no account, so the key has one.
const DefaultAccount = "000000000000"

// Role is the set of permissions of an access key.
type Role = access.Role

// The roles.
const (
	Admin    = access.Admin
	Backend  = access.Backend
	Client   = access.Client
	ReadOnly = access.ReadOnly
)

// AccessKey is a key with which a client signs its requests.
type AccessKey struct {
	ID      string
	Name    string // chosen by the operator
	Secret  string
	Account string // 12 digits, for ARNs
	Role    Role
	Created time.Time
	Revoked time.Time // zero while the key works

	session  *Credentials // of temporary credentials; nil: it is an access key
	life     *life        // nil: it is never revoked
	policies *policy.Set  // nil: none hold
}

// Session returns what the session token of temporary credentials says; nil for an access key.
func (k AccessKey) Session() *Session {
	if k.session == nil {
		return nil
	}
	return &k.session.Session
}

// Handle is by which FindHandle finds the key again: its id, and with temporary credentials their session token. It is no secret.
func (k AccessKey) Handle() string {
	if k.session == nil {
		return k.ID
	}
	return k.ID + "." + k.session.Token
}

// principalID is the name of the key's holder.
func (k *AccessKey) principalID() string {
	if k.session != nil {
		return k.session.Principal()
	}
	return k.ID
}

// ErrRevoked is the cause of the end of an AccessKey's Life.
var ErrRevoked = errors.New("the access key was revoked")

// Life is done as soon as the key is revoked or has expired, with ErrRevoked or ErrExpired as its cause. Everything that a request opens and that outlives the
// request (a stream, a call that waits, a game server's link) has to end with the life of the key that opened it:
// context.AfterFunc(key.Life(), end) ends it also when the key was revoked a moment before.
func (k AccessKey) Life() context.Context { return k.life.context() }

// life ends once.
type life struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	held atomic.Bool // a request was given ctx, so its end must be announced
}

func (l *life) context() context.Context {
	if l == nil {
		return context.Background()
	}
	l.held.Store(true)
	return l.ctx
}

// LogValue keeps the secret out of the log.
func (k AccessKey) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("name", k.Name), slog.String("role", k.Role.String()))
}

// Keys finds valid access keys, and temporary credentials that were issued to their holders. Package keyring keeps it equal to the cell's state.
type Keys struct {
	secret CellSecret
	now    func() time.Time                     // of the cell, by which temporary credentials expire
	known  atomic.Pointer[map[string]AccessKey] // never changed once it is published

	publishing sync.Mutex // for one publication at a time
	sessions   sessions
	policies   policies
}

// NewKeys returns Keys that find nothing.
func NewKeys(secret CellSecret, now func() time.Time) *Keys {
	k := &Keys{secret: secret, now: now, sessions: sessions{most: sessionsMax, known: map[string]AccessKey{}}}
	k.known.Store(&map[string]AccessKey{})
	return k
}

// Find returns a valid key. It takes no lock.
func (k *Keys) Find(id string) (AccessKey, bool) {
	key, ok := (*k.known.Load())[id]
	return key, ok
}

// FindHandle returns a valid key by its Handle.
func FindHandle(keys Finder, handle string) (AccessKey, bool) {
	if key, ok := keys.Find(handle); ok { // ids of early releases may have a dot in them
		return key, true
	}
	id, token, _ := strings.Cut(handle, ".")
	key, err := keys.With(id, token)
	return key, err == nil
}

// Publish replaces the keys. When it returns, Find no longer finds a key that is
// not among them or is revoked, and its Life has ended, as has that of temporary credentials which it issued.
func (k *Keys) Publish(all []access.Key) {
	k.publishing.Lock()
	defer k.publishing.Unlock()
	before := *k.known.Load()
	now := make(map[string]AccessKey, len(all))
	for i := range all {
		record := &all[i]
		if !record.Works() {
			continue
		}
		key, known := before[record.ID]
		if !known || key.Role != record.Role || key.Name != record.Name || key.Account != record.Account {
			key = k.secret.AccessKey(record)
			ctx, end := context.WithCancelCause(context.Background())
			key.life = &life{ctx: ctx, end: end}
		}
		key.policies = k.policiesOf(&key)
		now[record.ID] = key
	}
	k.known.Store(&now)
	for id, key := range before {
		if is, ok := now[id]; !ok || is.life != key.life {
			key.life.end(ErrRevoked)
		}
	}
	k.endSessions()
	k.Regroup()
}

// CellSecret returns the secret that the keys are derived from.
func (k *Keys) CellSecret() CellSecret { return k.secret }

// AccessKey returns a key with its secret.
func (s CellSecret) AccessKey(r *access.Key) AccessKey {
	k := AccessKey{ID: r.ID, Name: r.Name, Secret: s.AccessKeySecret(r.ID), Account: r.Account, Role: r.Role, Created: r.Created.Std()}
	if !r.Works() {
		k.Revoked = r.Revoked.Std()
	}
	return k
}

// NewKeyID makes an id in the form of AWS's own, 20 capitals and digits, of which the first four name the issuer.
func NewKeyID() string {
	random := make([]byte, 10)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	return "MUST" + base32.StdEncoding.EncodeToString(random)
}
