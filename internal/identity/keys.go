// Package identity authenticates callers. It has the valid access keys with their secrets and roles, the cell's secret, and
// the tokens of game servers. It stores only the cell's secret; all other secrets are derived from it.
package identity

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	"slices"
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
	Expires time.Time // zero: the key stays until it is revoked

	session  *Credentials // of temporary credentials; nil for an access key
	life     *life        // nil: never revoked
	derived  uint32       // generation of the cell's secret that Secret is derived from; 0: it is missing here, and no signature is valid
	policies *policy.Set  // nil: none apply
	standing *standing    // nil: no limits, and uses are not recorded
}

// Session returns the content of the session token of temporary credentials; nil for an access key.
func (k AccessKey) Session() *Session {
	if k.session == nil {
		return nil
	}
	return &k.session.Session
}

// Handle returns the text by which FindHandle finds the key again: its id, for temporary credentials followed by their session token. It is no secret.
func (k AccessKey) Handle() string {
	if k.session == nil {
		return k.ID
	}
	return k.ID + "." + k.session.Token
}

// principalID returns the name of the key's holder.
func (k *AccessKey) principalID() string {
	if k.session != nil {
		return k.session.Principal()
	}
	return k.ID
}

// ErrRevoked is the cause with which the Life of a revoked key ends.
var ErrRevoked = errors.New("the access key was revoked")

// Life is done as soon as the key is revoked or expires, with ErrRevoked or ErrExpired as its cause. Everything that a request opens and that outlives the
// request (a stream, a waiting call, a game server's link) must end with the life of the key that opened it.
// context.AfterFunc(key.Life(), end) also works if the key was revoked a moment before.
func (k AccessKey) Life() context.Context { return k.life.context() }

// life is the lifetime of a key. It ends once.
type life struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	held atomic.Bool // a request has ctx, which must therefore be canceled at the end; or it was, because the session was forgotten
}

func newLife() *life {
	ctx, end := context.WithCancelCause(context.Background())
	return &life{ctx: ctx, end: end}
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

// Keys finds valid access keys and the temporary credentials of their holders. Package keyring keeps it equal to the cell's state.
type Keys struct {
	secret CellSecret
	now    func() time.Time // the cell's time, which decides when keys and temporary credentials expire
	known  atomic.Pointer[published]

	publishing sync.Mutex // for one publication at a time
	sessions   sessions
	policies   policies
}

// published is a snapshot of the keys in force. It never changes.
type published struct {
	keys    map[string]AccessKey
	expired map[string]struct{} // keys that have expired and are still listed
	soonest time.Time           // when the next of the keys expires; zero: none does
}

// NewKeys returns Keys that find nothing.
func NewKeys(secret CellSecret, now func() time.Time) *Keys {
	k := &Keys{secret: secret, now: now, sessions: sessions{most: sessionsMax, known: map[string]AccessKey{}}}
	k.known.Store(&published{})
	return k
}

// Find returns a valid key and ignores the networks that it is limited to. It takes no lock.
func (k *Keys) Find(id string) (AccessKey, bool) {
	key, ok := k.known.Load().keys[id]
	if ok && key.standing.expired(k.now) {
		return AccessKey{}, false
	}
	return key, ok
}

// FindHandle returns the valid key with a Handle, for a request from an address.
func FindHandle(keys Finder, handle, from string) (AccessKey, error) {
	key, err := keys.With(handle, "", from)
	if id, token, ok := strings.Cut(handle, "."); ok && err != nil { // ids from early releases may contain a dot
		return keys.With(id, token, from)
	}
	return key, err
}

// Publish replaces the keys. When it returns, Find no longer finds a key that is revoked or not among them. The Life
// of such a key and of its temporary credentials has ended.
func (k *Keys) Publish(all []access.Key) {
	k.publishing.Lock()
	defer k.publishing.Unlock()
	before := k.known.Load()
	now := &published{keys: make(map[string]AccessKey, len(all)), expired: map[string]struct{}{}}
	for i := range all {
		record := &all[i]
		if !record.Works() {
			if record.Expired() {
				now.expired[record.ID] = struct{}{}
			}
			continue
		}
		key, known := before.keys[record.ID]
		if !known || key.derived != record.SecretGeneration() || key.Role != record.Role || key.Name != record.Name || key.Account != record.Account || !slices.Equal(key.standing.texts, record.Sources) {
			is := k.secret.AccessKey(record)
			if is.derived == 0 {
				is.Secret = rand.Text() // this node will soon get the generation; until then no signature is valid
			}
			if known && key.derived == 0 && is.derived == 0 {
				is.Secret = key.Secret
			}
			key = is
			key.life, key.standing = newLife(), newStanding(record, k.now)
			if old, ok := before.keys[record.ID]; ok {
				key.standing.used.Store(old.standing.used.Load())
			}
		}
		key.policies = k.policiesOf(&key)
		key.expireAt(record.Expires)
		if at := key.Expires; !at.IsZero() && (now.soonest.IsZero() || at.Before(now.soonest)) {
			now.soonest = at
		}
		now.keys[record.ID] = key
	}
	k.known.Store(now)
	for id, key := range before.keys {
		if is, ok := now.keys[id]; !ok || is.life != key.life {
			cause := ErrRevoked
			if _, expired := now.expired[id]; expired {
				cause = ErrExpired
			} else if ok && is.Role == key.Role { // its networks have changed; requests from within them may continue
				cause = ErrPolicies
			}
			key.life.end(cause)
		}
	}
	k.endSessions()
	k.Regroup()
}

// CellSecret returns the secret that the keys are derived from.
func (k *Keys) CellSecret() CellSecret { return k.secret }

// AccessKey returns a key with its secret, which is empty if the generation that it is derived from is missing here.
func (s CellSecret) AccessKey(r *access.Key) AccessKey {
	k := AccessKey{ID: r.ID, Name: r.Name, Account: r.Account, Role: r.Role, Created: r.Created.Std()}
	if from, ok := s.At(r.SecretGeneration()); ok {
		k.Secret, k.derived = from.AccessKeySecret(r.ID), r.SecretGeneration()
	}
	if !r.Works() {
		k.Revoked = r.Revoked.Std()
	}
	if r.Expires != 0 {
		k.Expires = r.Expires.Std()
	}
	if len(r.Sources) > 0 {
		k.standing = &standing{texts: r.Sources} // only to show the networks; Keys gives a key one that also records uses
	}
	return k
}

// Generation returns the generation of the cell's secret that the key's secret is derived from; 0: the first.
func (k AccessKey) Generation() uint32 {
	if k.derived == firstGeneration {
		return 0
	}
	return k.derived
}

// NewKeyID returns a new id in AWS's format: 20 capitals and digits, of which the first four name the issuer.
func NewKeyID() string { return newID("MUST") }

// newID returns a random id in AWS's format with a prefix of four characters.
func newID(prefix string) string {
	random := make([]byte, 10)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	return prefix + base32.StdEncoding.EncodeToString(random)
}
