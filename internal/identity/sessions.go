package identity

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// sessionsMax bounds the sessions that a node remembers; each takes about 1 KiB. If more are in use at the same time, the node checks the tokens of further
// sessions on each request, and their streams and other waits end at once.
const sessionsMax = 64 << 10

// The errors of credentials that do not work.
var (
	ErrUnknown = errors.New("there are no such credentials")
	// ErrExpired is also the cause of the end of the Life of a key that has expired.
	ErrExpired = errors.New("the access key, or the temporary credentials, have expired")
)

// sessions are the temporary credentials that were recently used on this node, and those that were revoked. A token is checked once. After that, its session
// costs a lookup: whatever ends a session removes it.
type sessions struct {
	most   int // sessions that are remembered
	mu     sync.RWMutex
	known  map[string]AccessKey // by access key id
	bySelf map[string]struct{}  // access key ids of revoked credentials
	until  map[string]time.Time // by holder: credentials that were issued until then are revoked

	certificates map[string]struct{} // that are revoked

	signIns map[string]SignIn // that continue, by id
}

// With returns the key that a request from an address names: an access key, or temporary credentials if it has a session token. The error is ErrUnknown, ErrExpired or
// ErrElsewhere.
func (k *Keys) With(id, token, from string) (AccessKey, error) {
	key, err := k.named(id, token)
	if err == nil {
		err = key.standing.check(from)
	}
	if err != nil {
		return AccessKey{}, err
	}
	return key, nil
}

func (k *Keys) named(id, token string) (AccessKey, error) {
	if token == "" {
		known := k.known.Load()
		if key, ok := known.keys[id]; ok {
			return key, nil
		}
		if _, ok := known.expired[id]; ok {
			return AccessKey{}, ErrExpired
		}
		return AccessKey{}, ErrUnknown
	}
	now := k.now()
	k.sessions.mu.RLock()
	key, ok := k.sessions.known[id]
	k.sessions.mu.RUnlock()
	if ok && key.session.Token == token {
		switch {
		case !now.Before(key.session.Expires):
			return AccessKey{}, ErrExpired
		case !k.secret.Accepted(key.session.generation, "temporary credentials"):
			return AccessKey{}, ErrUnknown
		}
		return key, nil
	}
	return k.admit(id, token, now)
}

// admit checks a token and remembers its session.
func (k *Keys) admit(id, token string, now time.Time) (AccessKey, error) {
	c, ok := k.secret.readSession(token)
	switch {
	case !ok || c.ID != id:
		return AccessKey{}, ErrUnknown
	case !now.Before(c.Expires):
		return AccessKey{}, ErrExpired
	}
	c.Token = strings.Clone(token) // otherwise it would keep the whole header of its request alive
	key := AccessKey{ID: c.ID, Name: c.Name, Secret: c.Secret, Account: c.Account, Role: c.Role, Created: c.Issued, Expires: c.Expires, session: &c}
	s := &k.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	if key.standing, ok = k.stands(&c); !ok { // under the lock, so that either a revocation finds the session or this finds the revocation
		return AccessKey{}, ErrUnknown
	}
	if known, ok := s.known[id]; ok {
		return known, nil // another request was first
	}
	key.life, key.policies = newLife(), k.policiesOf(&key)
	if len(s.known) >= s.most {
		s.dropUnheld()
	}
	if len(s.known) >= s.most {
		key.life.end(ErrExpired)
		return key, nil
	}
	s.known[id] = key
	return key, nil
}

// stands reports whether a session is still valid: it was not revoked, and what it was issued for continues. It returns the standing of the access key behind the
// session; nil: there is none. The caller holds the lock of the sessions.
func (k *Keys) stands(x *Credentials) (*standing, bool) {
	if !k.secret.stands(x.generation) {
		return nil, false
	}
	if _, ok := k.sessions.bySelf[x.ID]; ok {
		return nil, false
	}
	if until, ok := k.sessions.until[x.Holder]; ok && !x.Issued.After(until) {
		return nil, false
	}
	switch x.Source {
	case FromCertificate:
		return nil, !k.certificateRevoked(&x.Session)
	case FromPerson:
		signIn, ok := k.sessions.signIns[x.SignIn]
		return nil, ok && signIn.Roles.Covers(x.Role)
	case FromKey:
		key, ok := k.known.Load().keys[x.Holder]
		return key.standing, ok && key.Role.Covers(x.Role)
	}
	return nil, true
}

// certificateRevoked is CertificateRevoked for callers that hold the lock of the sessions.
func (k *Keys) certificateRevoked(x *Session) bool {
	for _, name := range x.certificates() {
		if _, ok := k.sessions.certificates[name]; ok {
			return true
		}
	}
	return false
}

// CertificateRevoked reports whether the certificate for a new session is revoked.
func (k *Keys) CertificateRevoked(x *Session) bool {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	return k.certificateRevoked(x)
}

// dropUnheld forgets the sessions on whose end no stream or other wait depends. The next request of such a session admits it again. A request that has already found
// the session opens no streams: no revocation would end them.
func (s *sessions) dropUnheld() {
	for id, key := range s.known {
		if key.life.held.CompareAndSwap(false, true) {
			key.life.end(ErrExpired)
			delete(s.known, id)
		}
	}
}

// Revoke replaces the revocations of temporary credentials. For the same holder, later ones replace earlier ones. When it returns, With no longer finds
// those credentials, and their Life has ended. It returns the revocations that have not expired.
func (k *Keys) Revoke(all []access.Revocation) (left []access.Revocation) {
	bySelf, certificates, until, now := map[string]struct{}{}, map[string]struct{}{}, map[string]time.Time{}, domain.TimeOf(k.now())
	for i := range all {
		x := &all[i]
		switch {
		case x.Until <= now:
			continue // the credentials have expired
		case x.Certificate != "":
			certificates[x.Certificate] = struct{}{}
		case x.Session != "":
			bySelf[x.Session] = struct{}{}
		default:
			until[x.Holder] = x.IssuedUntil.Std()
		}
		left = append(left, *x)
	}
	k.sessions.mu.Lock()
	k.sessions.bySelf, k.sessions.certificates, k.sessions.until = bySelf, certificates, until
	k.sessions.mu.Unlock()
	k.endSessions()
	return left
}

// endSessions ends sessions that have expired, or that were revoked themselves or with their access key.
func (k *Keys) endSessions() {
	now := k.now()
	s := &k.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, key := range s.known {
		standing, ok := k.stands(key.session)
		_, holderExpired := k.known.Load().expired[key.session.Holder]
		switch {
		case ok && standing != key.standing: // the key's networks have changed; the next request is checked against the new ones
			key.life.end(ErrPolicies)
		case !now.Before(key.session.Expires), holderExpired, ok && standing.expired(k.now):
			key.life.end(ErrExpired)
		case !ok:
			key.life.end(ErrRevoked)
		default:
			continue
		}
		delete(s.known, id)
	}
}

// Expire ends the Life of access keys and temporary credentials that have expired. Requests do not depend on it.
func (k *Keys) Expire() {
	if known := k.known.Load(); !known.soonest.IsZero() && !k.now().Before(known.soonest) {
		for _, key := range known.keys {
			if key.standing.expired(k.now) {
				key.life.end(ErrExpired)
			}
		}
	}
	k.endSessions()
}

// Sessions returns how many temporary credentials are remembered, and how many can be.
func (k *Keys) Sessions() (n, most int) {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	return len(k.sessions.known), k.sessions.most
}

// Grace is how long temporary credentials and access tokens of people work beyond the expiry that their client knows. Clients use them until that very moment: a request
// that was signed just before arrives later, and the client's clock may be behind. docs/decisions/0110-grace-at-the-end-of-credentials.md.
const Grace = 30 * time.Second

// Issue issues temporary credentials that are valid for the given time, but not longer than the access key behind them. Expires is the end for the client; the token
// includes the Grace.
func (k *Keys) Issue(x Session, valid time.Duration) Credentials {
	x.Issued = k.now()
	x.Expires = x.Issued.Add(valid)
	if key, ok := k.Find(x.Holder); ok && x.Source == FromKey && !key.Expires.IsZero() && key.Expires.Before(x.Expires) {
		x.Expires = key.Expires
	}
	told := x.Expires.Truncate(time.Millisecond)
	if x.Expires = told.Add(Grace); x.Expires.Sub(x.Issued) > access.CredentialsLifeMax { // revocations are forgotten after that time
		x.Expires = x.Issued.Add(access.CredentialsLifeMax)
	}
	c := k.secret.NewSession(x)
	c.Expires = told
	return c
}
