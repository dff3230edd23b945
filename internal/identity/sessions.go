package identity

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// sessionsMax bounds the sessions that a node remembers; each takes about 1 KiB. With more than that in use at the same time, tokens are checked anew with
// each request, and streams and other waits of further sessions end at once.
const sessionsMax = 64 << 10

// The errors of credentials that do not work.
var (
	ErrUnknown = errors.New("there are no such credentials")
	// ErrExpired is also the cause of the end of the Life of a key that has expired.
	ErrExpired = errors.New("the access key, or the temporary credentials, have expired")
)

// sessions are the temporary credentials that were used here lately, and those that were revoked. A token is checked once. After that, its session costs a
// look-up: whatever ends one removes it.
type sessions struct {
	most   int // that are remembered
	mu     sync.RWMutex
	known  map[string]AccessKey // by access key id
	bySelf map[string]struct{}  // access key ids of revoked credentials
	until  map[string]time.Time // by holder: what was issued until then is revoked

	certificates map[string]struct{} // that are revoked

	signIns map[string]SignIn // that go on, by id
}

// With returns the key that a request from an address names: an access key, or temporary ones if it has a session token. The error is ErrUnknown, ErrExpired or
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
	c.Token = strings.Clone(token) // or it would keep the whole header of its request alive
	key := AccessKey{ID: c.ID, Name: c.Name, Secret: c.Secret, Account: c.Account, Role: c.Role, Created: c.Issued, Expires: c.Expires, session: &c}
	s := &k.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	if key.standing, ok = k.stands(&c); !ok { // under the lock, so that a revocation finds the session or is found by it
		return AccessKey{}, ErrUnknown
	}
	if known, ok := s.known[id]; ok {
		return known, nil // another request was first
	}
	ctx, end := context.WithCancelCause(context.Background())
	key.life, key.policies = &life{ctx: ctx, end: end}, k.policiesOf(&key)
	if len(s.known) >= s.most {
		s.dropUnheld()
	}
	if len(s.known) >= s.most {
		end(ErrExpired)
		return key, nil
	}
	s.known[id] = key
	return key, nil
}

// stands reports whether a session was not revoked, and what it was issued for goes on. It returns the standing of the access key behind the session; nil: there is
// none. Its caller holds the lock of the sessions.
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

// certificateRevoked is called with the lock of the sessions.
func (k *Keys) certificateRevoked(x *Session) bool {
	for _, name := range x.certificates() {
		if _, ok := k.sessions.certificates[name]; ok {
			return true
		}
	}
	return false
}

// CertificateRevoked reports whether the certificate of a session that is to be issued is revoked.
func (k *Keys) CertificateRevoked(x *Session) bool {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	return k.certificateRevoked(x)
}

// dropUnheld forgets the sessions whose end no stream or other wait follows. Those that are used again come back.
func (s *sessions) dropUnheld() {
	for id, key := range s.known {
		if !key.life.held.Load() {
			delete(s.known, id)
		}
	}
}

// Revoke replaces the revocations of temporary credentials, of which later ones of a holder replace earlier ones. When it returns, With no longer finds
// those credentials, and their Life has ended. It returns the revocations that are not over.
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

// EndSessions ends the temporary credentials that stand no more, after a generation of the cell's secret has ended.
func (k *Keys) EndSessions() { k.endSessions() }

// endSessions ends the sessions that were revoked, whose access key was, or that have expired.
func (k *Keys) endSessions() {
	now := k.now()
	s := &k.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, key := range s.known {
		standing, ok := k.stands(key.session)
		_, holderExpired := k.known.Load().expired[key.session.Holder]
		switch {
		case ok && standing != key.standing: // of a key whose networks have changed; the next request is checked against those
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

// Expire ends the Life of access keys and temporary credentials that have expired. Requests need no call of it.
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

// Sessions returns how many temporary credentials are remembered, and how many there can be.
func (k *Keys) Sessions() (n, most int) {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	return len(k.sessions.known), k.sessions.most
}

// Grace is how long temporary credentials, and access tokens of people, work beyond the end that their client was told. Clients use them until that very moment: what they have
// signed just before it arrives later, and their clocks may be behind. docs/decisions/0110-grace-at-the-end-of-credentials.md.
const Grace = 30 * time.Second

// Issue makes temporary credentials that are valid for so long, and not longer than the access key behind them. Expires is the end that the client is told; the token
// has the Grace in it.
func (k *Keys) Issue(x Session, valid time.Duration) Credentials {
	x.Issued = k.now()
	x.Expires = x.Issued.Add(valid)
	if key, ok := k.Find(x.Holder); ok && x.Source == FromKey && !key.Expires.IsZero() && key.Expires.Before(x.Expires) {
		x.Expires = key.Expires
	}
	told := x.Expires.Truncate(time.Millisecond)
	if x.Expires = told.Add(Grace); x.Expires.Sub(x.Issued) > access.CredentialsLifeMax { // revocations are forgotten then
		x.Expires = x.Issued.Add(access.CredentialsLifeMax)
	}
	c := k.secret.NewSession(x)
	c.Expires = told
	return c
}
