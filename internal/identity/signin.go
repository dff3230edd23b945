package identity

import (
	"maps"

	"github.com/musterhq/muster/internal/domain/access"
)

// SignIn is a sign-in session that goes on: what temporary credentials of its person may be.
type SignIn struct {
	Roles  access.RoleSet
	Groups []string // of the person; never changed in place
}

// PublishSignIns replaces the sign-in sessions. When it returns, With no longer finds temporary credentials of other ones or with a role that
// their person does not have any more, and their Life has ended; so has the Life of those whose policies are others now.
func (k *Keys) PublishSignIns(all map[string]SignIn) {
	k.sessions.mu.Lock()
	k.sessions.signIns = maps.Clone(all)
	k.sessions.mu.Unlock()
	k.endSessions()
	k.Regroup()
}

// ChangeSignIns is PublishSignIns of those that are new or changed, without those that have ended.
func (k *Keys) ChangeSignIns(changed map[string]SignIn, ended []string) {
	k.sessions.mu.Lock()
	if k.sessions.signIns == nil {
		k.sessions.signIns = map[string]SignIn{}
	}
	maps.Copy(k.sessions.signIns, changed)
	for _, id := range ended {
		delete(k.sessions.signIns, id)
	}
	k.sessions.mu.Unlock()
	k.endSessions()
	k.Regroup()
}

// SignInSignature signs a statement of the pages on which people sign in: a sign-in that is in progress, or which session a browser has.
func (s CellSecret) SignInSignature(text string) []byte {
	return s.derive([]byte("sign-in\x00" + text))
}

// RefreshTokenKey encrypts the refresh tokens of identity providers in the state: 32 bytes.
func (s CellSecret) RefreshTokenKey() []byte { return s.derive([]byte("refresh-token-key")) }

// SignIn returns a sign-in session that goes on.
func (k *Keys) SignIn(id string) (SignIn, bool) {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	x, ok := k.sessions.signIns[id]
	return x, ok
}
