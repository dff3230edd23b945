package hosts

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// keyBytes is the length of a public key.
const keyBytes = 32

// ErrToken is the cause of a refusal because of the token. Refusals of unknown, used up and expired tokens are identical.
var ErrToken = domain.Refuse(domain.NotFound, "the join token is unknown, used up or expired; make another one with `muster hosts join-token`")

// Join makes a machine a host. A machine that may have lost the answer repeats it with the same token and key.
type Join struct {
	Token, Hash string // id of the token, and hash of its secret
	Name        string // letters, digits and hyphens
	Location    string // empty: the token's
	Fleet       string // empty: the token's
	Key         []byte // public key, Ed25519

	// Result
	Host Host
}

// Decide emits HostJoined.
func (cmd *Join) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	at := slices.IndexFunc(t.tokens, func(x Token) bool { return x.ID == cmd.Token && x.Hash == cmd.Hash })
	if at < 0 || t.tokens[at].Expires <= t.Now {
		return ErrToken
	}
	token := &t.tokens[at]
	var same, named *Host
	t.Each(func(h *Host) bool {
		if bytes.Equal(h.Key, cmd.Key) {
			same = h
		}
		if h.Name == cmd.Name {
			named = h
		}
		return true
	})
	location := cmp.Or(cmd.Location, token.Location)
	switch {
	case same != nil && same.Token == cmd.Token && same.Name == cmd.Name && same.Location == location:
		cmd.Host = *same
		return nil
	case token.Uses == 0:
		return ErrToken
	case same != nil:
		return domain.Refuse(domain.Conflict, "the public key belongs to another host: remove the agent's state directory to make a new one")
	case len(cmd.Key) != keyBytes:
		return domain.Refuse(domain.Invalid, "public key of %d bytes: want the %d of Ed25519", len(cmd.Key), keyBytes)
	case !nameOK(cmd.Name):
		return domain.Refuse(domain.Invalid, "name %.200q: want 1 to %d letters, digits and hyphens", cmd.Name, NameMax)
	case location == "":
		return domain.Refuse(domain.Invalid, "location: the join token names none; name one with --location")
	case token.Location != "" && location != token.Location:
		return domain.Refuse(domain.Invalid, "location %.200q: the join token is for %s", location, token.Location)
	case cmd.Fleet != "" && cmd.Fleet != token.Fleet:
		return domain.Refuse(domain.Invalid, "fleet %.200q: the join token is for %s", cmd.Fleet, cmp.Or(token.Fleet, "any fleet of a build in "+location))
	case named != nil:
		return domain.Refuse(domain.Conflict, "host %s has the name %s already: choose another one with --compute-name, or revoke that host", named.ID, cmd.Name)
	}
	if err := t.fleets.CheckSite(token.Fleet, location); err != nil {
		return err
	}
	if err := t.fleets.CheckName(token.Fleet, cmd.Name); err != nil {
		return err
	}
	old := t.forgettable()
	if n := t.Records.Len() - len(old); n >= HostsMax {
		return domain.Refuse(domain.LimitExceeded, "%d hosts have joined and were not revoked, which is the limit", n)
	}
	if err := t.Quotas.Check(quota.Hosts, t.Records.Held(), token.Holder, 1, HostsMax); err != nil {
		return err
	}
	if len(old) > 0 {
		t.Emit(&HostsForgotten{old})
	}
	cmd.Host = Host{ID: ID(t.NewID()).String(), Name: cmd.Name, Location: location, Fleet: token.Fleet, Key: cmd.Key, Joined: t.Now, Token: token.ID, Holder: token.Holder}
	t.Emit(&HostJoined{cmd.Host})
	return nil
}

func nameOK(name string) bool {
	return name != "" && len(name) <= NameMax && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// forgettable returns the revoked hosts whose records are removed when one more host joins: those older than RevokedKept and, if there is still no
// room, the one that was revoked first.
func (t *Tx) forgettable() (ids []string) {
	before := t.Now.Add(-RevokedKept)
	var first *Host // of the others
	for _, h := range t.Records.All() {
		switch {
		case h.Revoked == 0:
		case h.Revoked < before:
			ids = append(ids, h.ID)
		case first == nil || cmp.Or(cmp.Compare(h.Revoked, first.Revoked), cmp.Compare(h.ID, first.ID)) < 0:
			first = h
		}
	}
	if len(ids) == 0 && first != nil && t.Records.Len() >= HostsMax {
		return []string{first.ID}
	}
	slices.Sort(ids) // map order must not reach the journal
	return ids
}
