package hosts

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// IssueToken creates a token with which hosts may join. It removes expired and used up tokens from the state.
type IssueToken struct {
	quota.Taking // of the hosts that join

	ID, Hash        string
	Fleet, Location string // at least one of them
	Uses            uint32 // 1 to UsesMax
	Valid           time.Duration
	By              string

	// Result
	Expires domain.Time
}

// Decide emits HostTokenIssued. A repeat finds the token.
func (cmd *IssueToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	switch {
	case cmd.ID == "" || len(cmd.ID) > hashMax || cmd.Hash == "" || len(cmd.Hash) > hashMax:
		return domain.Refuse(domain.Invalid, "join token %.200q: want an id and a hash of 1 to %d bytes", cmd.ID, hashMax)
	case cmd.Uses < 1 || cmd.Uses > UsesMax:
		return domain.Refuse(domain.Invalid, "uses %d: want 1 to %d", cmd.Uses, UsesMax)
	case cmd.Valid < time.Second || cmd.Valid > ValidMax:
		return domain.Refuse(domain.Invalid, "valid %v: want 1s to %v", cmd.Valid, ValidMax)
	case cmd.Fleet == "" && cmd.Location == "":
		return domain.Refuse(domain.Invalid, "a join token needs a fleet or a location")
	case len(cmd.By) > textMax:
		return domain.Refuse(domain.Invalid, "principal of %d bytes: want at most %d", len(cmd.By), textMax)
	}
	if err := t.fleets.CheckSite(cmd.Fleet, cmd.Location); err != nil {
		return err
	}
	var over []string
	var own int // valid ones of the same holder
	for i := range t.tokens {
		switch x := &t.tokens[i]; {
		case x.ID == cmd.ID && x.Hash == cmd.Hash:
			cmd.Expires = x.Expires
			return nil
		case x.ID == cmd.ID:
			return domain.Refuse(domain.Conflict, "join token %s exists already", cmd.ID)
		case x.Expires <= t.Now || x.Uses == 0:
			over = append(over, x.ID)
		case x.Holder == cmd.Holder:
			own++
		}
	}
	if cmd.Holder != 0 && own >= TokensOfHolderMax {
		return domain.Refuse(domain.LimitExceeded, "%d join tokens for hosts of this holder are valid, which is the limit for one; revoke one, or make one token with more uses", own)
	}
	if n := len(t.tokens) - len(over); n >= TokensMax {
		return domain.Refuse(domain.LimitExceeded, "%d join tokens for hosts are valid, which is the limit; revoke one, or wait until one expires", n)
	}
	if len(over) > 0 {
		t.Emit(&HostTokensForgotten{over})
	}
	cmd.Expires = t.Now.Add(cmd.Valid)
	t.Emit(&HostTokenIssued{Token{
		ID: cmd.ID, Hash: cmd.Hash, Fleet: cmd.Fleet, Location: cmd.Location, Uses: cmd.Uses, Issued: t.Now, Expires: cmd.Expires, By: cmd.By, Holder: cmd.Holder,
	}})
	return nil
}

// RevokeToken voids a token. Hosts that have joined with it are not affected.
type RevokeToken struct{ ID string }

// Decide emits HostTokensForgotten.
func (cmd *RevokeToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if !slices.ContainsFunc(t.tokens, func(x Token) bool { return x.ID == cmd.ID }) {
		return domain.Refuse(domain.NotFound, "there is no join token %.200q", cmd.ID)
	}
	t.Emit(&HostTokensForgotten{[]string{cmd.ID}})
	return nil
}
