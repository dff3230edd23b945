package identity

import (
	"maps"

	"github.com/musterhq/muster/internal/domain/access"
)

// SignIn is a continuing sign-in session. It limits the temporary credentials of its person.
type SignIn struct {
	Roles  access.RoleSet
	Groups []string // of the person; never changed in place
}

// PublishSignIns replaces the sign-in sessions. When it returns, With no longer finds temporary credentials of other sign-in sessions, or with a role
// that their person no longer has, and their Life has ended. The Life of those whose policies have changed has ended, too.
func (k *Keys) PublishSignIns(all map[string]SignIn) {
	k.sessions.mu.Lock()
	k.sessions.signIns = maps.Clone(all)
	k.sessions.mu.Unlock()
	k.endSessions()
	k.Regroup()
}

// ChangeSignIns is PublishSignIns for a change: it adds new and changed sign-in sessions and removes ended ones.
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

// SignInSignature signs a statement of the sign-in pages: about a sign-in in progress, or about the session of a browser.
func (s CellSecret) SignInSignature(text string) []byte {
	return s.derive([]byte("sign-in\x00" + text))
}

// RefreshTokenKey returns the key that encrypts identity providers' refresh tokens in the state. It has 32 bytes.
func (s CellSecret) RefreshTokenKey() []byte { return s.derive([]byte("refresh-token-key")) }

// SignIn returns a continuing sign-in session.
func (k *Keys) SignIn(id string) (SignIn, bool) {
	k.sessions.mu.RLock()
	defer k.sessions.mu.RUnlock()
	x, ok := k.sessions.signIns[id]
	return x, ok
}
