package grants

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// AskDevice registers the request of a device. It removes expired requests from the state.
type AskDevice struct {
	UserCode, Code        string
	Client, Name, Address string
	Renews                bool

	// Result
	Expires domain.Time
}

// Decide emits DeviceAsked. A repeat finds the request. LimitExceeded: there are too many requests, in total or from the address.
func (cmd *AskDevice) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	for _, text := range []string{cmd.UserCode, cmd.Code, cmd.Client, cmd.Address} {
		if text == "" || len(text) > idMax {
			return domain.Refuse(domain.Invalid, "request of a device: want codes, client and address of 1 to %d bytes", idMax)
		}
	}
	if len(cmd.Name) > nameMax {
		return domain.Refuse(domain.Invalid, "name of %d bytes: want at most %d", len(cmd.Name), nameMax)
	}
	var over []string
	ofAddress := 0
	for i := range t.devices {
		switch x := &t.devices[i]; {
		case x.UserCode == cmd.UserCode && x.Code == cmd.Code:
			cmd.Expires = x.Expires
			return nil
		case x.UserCode == cmd.UserCode:
			return domain.Refuse(domain.Conflict, "another device has the code %s", cmd.UserCode)
		case x.Expires <= t.Now:
			over = append(over, x.UserCode)
		case x.Standing == Waiting && x.Address == cmd.Address:
			ofAddress++
		}
	}
	switch n := len(t.devices) - len(over); {
	case ofAddress >= DevicesOfAddress:
		return domain.Refuse(domain.LimitExceeded, "%d devices of this address wait for a person, which is the limit; each request is over after %v", ofAddress, DeviceLife)
	case n >= DevicesMax:
		return domain.Refuse(domain.LimitExceeded, "%d requests of devices are not over, which is the limit; each is over after %v", n, DeviceLife)
	}
	if len(over) > 0 {
		t.Emit(&DevicesForgotten{over})
	}
	cmd.Expires = t.Now.Add(DeviceLife)
	t.Emit(&DeviceAsked{Device{UserCode: cmd.UserCode, Code: cmd.Code, Client: cmd.Client, Name: cmd.Name, Address: cmd.Address, Expires: cmd.Expires, Renews: cmd.Renews}})
	return nil
}

// AnswerDevice is a person's answer to a device's request. It can be given only once.
type AnswerDevice struct {
	UserCode string
	SignIn   string // id of the person's sign-in session
	Approve  bool
}

// Decide emits DeviceAnswered. A repeat of the same answer changes nothing.
func (cmd *AnswerDevice) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.SignIn == "" || len(cmd.SignIn) > idMax {
		return domain.Refuse(domain.Invalid, "sign-in session %.200q: want an id of 1 to %d bytes", cmd.SignIn, idMax)
	}
	standing := Denied
	if cmd.Approve {
		standing = Approved
	}
	i := t.find(cmd.UserCode)
	switch {
	case i < 0 || t.devices[i].Expires <= t.Now:
		return domain.Refuse(domain.NotFound, "no device waits with this code")
	case t.devices[i].Standing == standing && t.devices[i].SignIn == cmd.SignIn:
		return nil
	case t.devices[i].Standing != Waiting:
		return domain.Refuse(domain.Conflict, "the request of this device was answered already")
	}
	t.Emit(&DeviceAnswered{UserCode: cmd.UserCode, Standing: standing, SignIn: cmd.SignIn})
	return nil
}

// CollectDevice is a device's request for its tokens. Only the caller whose command succeeds may issue them.
type CollectDevice struct{ Code, Client string }

// The result of CollectDevice, even with an error, is in the state: View.DeviceOf.

// Decide emits DeviceCollected. NotReady: no person has answered yet. Conflict: a person has denied the request, or the tokens were collected.
// NotFound: there is no such request. It never returns Stale.
func (cmd *CollectDevice) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	i := slices.IndexFunc(t.devices, func(x Device) bool { return x.Code == cmd.Code })
	if i < 0 || t.devices[i].Client != cmd.Client || t.devices[i].Expires <= t.Now {
		return domain.Refuse(domain.NotFound, "the request of this device is not known, or is over")
	}
	switch t.devices[i].Standing {
	case Waiting:
		return domain.Refuse(domain.NotReady, "no person has answered yet")
	case Approved:
		t.Emit(&DeviceCollected{UserCode: t.devices[i].UserCode})
		return nil
	}
	return domain.Refuse(domain.Conflict, "the request of this device was denied, or its tokens were collected")
}

// UseCode uses up an authorization code, or something else that must not be used twice. The caller has verified it.
type UseCode struct {
	Kind    Once
	ID      string
	SignIn  string
	Expires domain.Time // when the caller refuses it in any case
}

// ExpiresIn returns the Expires of something that the clock of a machine accepts for a while, given the time of the cell, which may run faster than the clock by one part in 20
// (docs/decisions/0064-time-of-the-cluster.md).
func ExpiresIn(now time.Time, accepted time.Duration) domain.Time {
	return domain.TimeOf(now.Add(accepted + accepted/20))
}

// Decide emits CodeUsed. Conflict: it was already used. Expired records of uses are removed from the state.
func (cmd *UseCode) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if int(cmd.Kind) >= len(onceLimits) {
		return domain.Refuse(domain.Invalid, "kind %d: want a code, a proof or a logout", cmd.Kind)
	}
	limits := &onceLimits[cmd.Kind]
	switch {
	case cmd.ID == "" || len(cmd.ID) > idMax || cmd.SignIn == "" || len(cmd.SignIn) > idMax:
		return domain.Refuse(domain.Invalid, "%s: want the ids of it and of a sign-in session, of 1 to %d bytes", limits.text, idMax)
	case cmd.Kind == Code && kindOf(cmd.ID) != Code:
		return domain.Refuse(domain.Invalid, "code: its id %.30q begins as that of something else", cmd.ID)
	case cmd.Expires <= t.Now:
		return domain.Refuse(domain.NotFound, "the %s has expired", limits.text)
	case cmd.Expires > t.Now.Add(limits.life):
		return domain.Refuse(domain.Invalid, "the %s is valid for more than %v", limits.text, limits.life)
	}
	id := limits.prefix + cmd.ID
	var over []string
	n, ofOne := 0, 0
	for i := range t.used {
		switch x := &t.used[i]; {
		case x.ID == id:
			return domain.Refuse(domain.Conflict, "the %s was used", limits.text)
		case x.Expires <= t.Now:
			over = append(over, x.ID)
		case kindOf(x.ID) == cmd.Kind:
			n++
			if x.SignIn == cmd.SignIn {
				ofOne++
			}
		}
	}
	switch {
	case n >= limits.most:
		return domain.Refuse(domain.LimitExceeded, "%d of this kind (%s) were used within %v, which is the limit", n, limits.text, limits.life)
	case limits.ofOne > 0 && ofOne >= limits.ofOne:
		return domain.Refuse(domain.LimitExceeded, "%d of one sign-in session (%s) were used within %v, which is the limit", ofOne, limits.text, limits.life)
	}
	if len(over) > 0 {
		t.Emit(&CodesForgotten{over})
	}
	t.Emit(&CodeUsed{Used{ID: id, SignIn: cmd.SignIn, Expires: cmd.Expires}})
	return nil
}

// UsedOnce reports whether something was already used.
func (v *View) UsedOnce(kind Once, id string) bool {
	v.SawAll()
	id = onceLimits[kind].prefix + id
	return slices.ContainsFunc(v.c.used, func(x Used) bool { return x.ID == id })
}
