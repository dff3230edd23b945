package people

import (
	"bytes"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// StartSession starts a sign-in session. The caller has verified the person's identity.
type StartSession struct {
	SignIn SignIn        // ID, Kind, Provider, Subject, Name, Groups, Roles, Refresh, Address, Agent
	Valid  time.Duration // time until it expires
	Check  time.Duration // time until the provider must confirm the person again

	Passkey []byte // id of the passkey with which one of the cell's own people has signed in; empty in commands of earlier releases

	// Result: SignIn, as stored.
}

// Decide emits SignedIn. A repeat finds the session. If the person has too many, the oldest ones end.
func (cmd *StartSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x := &cmd.SignIn
	x.Groups = sortedGroups(x.Groups)
	if err := x.check(); err != nil {
		return err
	}
	if err := checkPeriods(cmd.Valid, cmd.Check); err != nil {
		return err
	}
	if r, ok := t.SignIns.Find(x.ID); ok {
		old := t.SignIns.Get(r)
		if old.Holder() != x.Holder() {
			return domain.Refuse(domain.Conflict, "sign-in session %s exists already", x.ID)
		}
		*x = *old
		return nil
	}
	if x.Provider == Own {
		if err := t.unchanged(x, cmd.Passkey); err != nil {
			return err
		}
	}
	var over []string
	if own := t.of[x.Holder()]; len(own) >= SessionsOfPersonMax {
		over = slices.Clone(own[:len(own)-SessionsOfPersonMax+1])
	}
	if n := t.SignIns.Len() - len(over); n >= SessionsMax {
		return domain.Refuse(domain.LimitExceeded, "%d sign-in sessions exist, which is the limit; end some, or wait until some expire", n)
	}
	if len(over) > 0 {
		t.Emit(&SignInsEnded{IDs: over, Cause: Replaced})
	}
	x.Started, x.Checked, x.Used = t.Now, t.Now, t.Now
	x.Expires, x.CheckBy, x.Changed = t.Now.Add(cmd.Valid), t.Now.Add(cmd.Check), 0
	t.Emit(&SignedIn{*x})
	x.Changed = t.Number()
	return nil
}

// unchanged refuses a session that does not have the groups of its person, or whose passkey is gone: another command has changed the person since the
// caller read them, and the roles in the session are those of before.
func (t *Tx) unchanged(x *SignIn, passkey []byte) error {
	r, ok := t.People.Find(x.Subject)
	if !ok {
		return domain.Refuse(domain.NotFound, "there is no person %.100q", x.Subject)
	}
	person := t.People.Get(r)
	if !slices.Equal(x.Groups, person.Groups) {
		return domain.Refuse(domain.Conflict, "the groups of %s have just changed: sign in again", person.Name)
	}
	if len(passkey) > 0 && !slices.ContainsFunc(person.Passkeys, func(p Passkey) bool { return bytes.Equal(p.ID, passkey) }) {
		return domain.Refuse(domain.Conflict, "a passkey of %s has just been removed: sign in again", person.Name)
	}
	return nil
}

func checkPeriods(valid, check time.Duration) error {
	switch {
	case valid < time.Second || valid > SessionLifeMax:
		return domain.Refuse(domain.Invalid, "valid %v: want 1s to %v", valid, SessionLifeMax)
	case check < time.Second || check > SessionLifeMax:
		return domain.Refuse(domain.Invalid, "check within %v: want 1s to %v", check, SessionLifeMax)
	}
	return nil
}

// signIn returns a sign-in session.
func (t *Tx) signIn(id string) (SignIn, error) {
	r, ok := t.SignIns.Find(id)
	if !ok {
		return SignIn{}, domain.Refuse(domain.NotFound, "there is no sign-in session %.100q", id)
	}
	return *t.SignIns.Get(r), nil
}

// RenewSession records that the provider has confirmed a person, with the groups and roles that it now reports. Without
// a role the session ends.
type RenewSession struct {
	ID      string
	Name    string
	Groups  []string
	Roles   access.RoleSet
	Refresh []byte // encrypted; empty: none was received, and the previous one is kept
	Check   time.Duration

	// Result
	SignIn SignIn // zero: the session has ended
}

// Decide emits SignInChanged, or SignInsEnded.
func (cmd *RenewSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, err := t.signIn(cmd.ID)
	if err != nil {
		return err
	}
	if err := checkPeriods(time.Second, cmd.Check); err != nil {
		return err
	}
	if cmd.Roles == 0 {
		t.Emit(&SignInsEnded{IDs: []string{cmd.ID}, Cause: NoRole})
		return nil
	}
	x.Groups, x.Roles, x.Checked, x.CheckBy = sortedGroups(cmd.Groups), cmd.Roles, t.Now, t.Now.Add(cmd.Check)
	if cmd.Name != "" {
		x.Name = cmd.Name
	}
	if len(cmd.Refresh) > 0 {
		x.Refresh = cmd.Refresh
	}
	if err := x.check(); err != nil {
		return err
	}
	if x.Provider == Own {
		if err := t.unchanged(&x, nil); err != nil {
			return err
		}
	}
	t.Emit(&SignInChanged{x})
	x.Changed = t.Number()
	cmd.SignIn = x
	return nil
}

// KeepRefresh stores a new refresh token of a session whose check has failed after the provider had replaced the token. The session keeps its latest moment of
// the next check.
type KeepRefresh struct {
	ID      string
	Refresh []byte // encrypted
}

// Decide emits SignInChanged.
func (cmd *KeepRefresh) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	x, err := t.signIn(cmd.ID)
	if err != nil {
		return err
	}
	x.Refresh = cmd.Refresh
	if err := x.check(); err != nil {
		return err
	}
	t.Emit(&SignInChanged{x})
	return nil
}

// EndSession ends one session. If the session has already ended, that is not an error.
type EndSession struct {
	ID    string
	Cause Cause

	// Result
	Holder string // holder of the session; empty: it had already ended
	Number uint64 // of the journal entry
}

// Decide emits SignInsEnded.
func (cmd *EndSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := checkCause(cmd.Cause); err != nil {
		return err
	}
	r, ok := t.SignIns.Find(cmd.ID)
	if !ok {
		return nil
	}
	cmd.Holder = t.SignIns.Get(r).Holder()
	t.Emit(&SignInsEnded{IDs: []string{cmd.ID}, Cause: cmd.Cause})
	cmd.Number = t.Number()
	return nil
}

// EndSessionsOf ends all sessions of a person, or those that resulted from one session at a provider.
type EndSessionsOf struct {
	Holder   string // PROVIDER/SUBJECT; empty with a Sid: any person
	Sid      string // of the session at the Provider; empty: all sessions of the Holder
	Provider string // with a Sid
	Cause    Cause

	// Result
	Ended  int
	Number uint64 // of the journal entry
}

// Decide emits SignInsEnded, unless there are none.
func (cmd *EndSessionsOf) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := checkCause(cmd.Cause); err != nil {
		return err
	}
	if cmd.Sid == "" {
		cmd.Ended = t.endAllOf(cmd.Holder, cmd.Cause)
	} else {
		cmd.Ended = t.endThoseOf(cmd.Provider, cmd.Sid, cmd.Holder, cmd.Cause)
	}
	if cmd.Ended > 0 {
		cmd.Number = t.Number()
	}
	return nil
}

// endThoseOf ends the sessions that resulted from one session at a provider; if holder is not empty, only that
// person's.
func (t *Tx) endThoseOf(provider, sid, holder string, cause Cause) int {
	var ids []string
	t.SignIns.Since(catalog.Place{}, func(x *SignIn) bool {
		if x.Provider == provider && x.Sid == sid && (holder == "" || x.Holder() == holder) {
			ids = append(ids, x.ID)
		}
		return true
	})
	if len(ids) > 0 {
		t.Emit(&SignInsEnded{IDs: ids, Cause: cause})
	}
	return len(ids)
}

func checkCause(c Cause) error {
	if c == 0 || int(c) >= len(causes) {
		return domain.Refuse(domain.Invalid, "cause %d of the end of a sign-in session is unknown", c)
	}
	return nil
}

func (t *Tx) endAllOf(holder string, cause Cause) int {
	ids := slices.Clone(t.of[holder])
	if len(ids) > 0 {
		t.Emit(&SignInsEnded{IDs: ids, Cause: cause})
	}
	return len(ids)
}

// NoteUses stores when and from where sessions were last used. It ignores ended sessions.
type NoteUses struct{ Uses []Use }

// Decide emits SignInsUsed for the sessions whose recorded use is older.
func (cmd *NoteUses) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if len(cmd.Uses) > UsesMax {
		return domain.Refuse(domain.Invalid, "uses of %d sign-in sessions: want at most %d", len(cmd.Uses), UsesMax)
	}
	var noted []Use
	for _, use := range cmd.Uses {
		use.At, use.Address = min(use.At, t.Now), Short(use.Address, textMax)
		if r, ok := t.SignIns.Find(use.ID); ok && use.At > t.SignIns.Get(r).Used {
			noted = append(noted, use)
		}
	}
	if len(noted) > 0 {
		t.Emit(&SignInsUsed{noted})
	}
	return nil
}
