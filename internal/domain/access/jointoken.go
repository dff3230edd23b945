package access

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

const (
	// JoinTokenLife is how long a join token is valid.
	JoinTokenLife = time.Hour
	// JoinTokensMax is the most join tokens that may exist, including used ones.
	JoinTokensMax = 64
	nodeMax       = 64
)

// JoinToken lets one node join the cluster. The state contains only the hash of its secret.
type JoinToken struct {
	ID      string // public part of the token
	Hash    string // of its secret, in hexadecimal
	Expires domain.Time
	Node    string // the node that was admitted with it; empty: none
	By      Actor
}

func (j *JoinToken) Fields(c *wire.Codec) {
	c.String(1, &j.ID)
	c.String(2, &j.Hash)
	wire.Int(c, 3, &j.Expires)
	c.String(4, &j.Node)
	wire.Sub(c, 5, &j.By, j.By != Actor{}, (*Actor).Fields)
}

// IssueJoinToken creates a join token, valid for JoinTokenLife. It removes expired tokens from the state.
type IssueJoinToken struct {
	ID, Hash string
	By       Actor

	// Result
	Expires domain.Time
}

func (cmd *IssueJoinToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.ID == "" || len(cmd.ID) > idMax || cmd.Hash == "" || len(cmd.Hash) > idMax {
		return domain.Refuse(domain.Invalid, "join token %.200q: want an id and a hash of 1 to %d bytes", cmd.ID, idMax)
	}
	var expired []string
	for i := range t.joinTokens {
		switch x := &t.joinTokens[i]; {
		case x.ID == cmd.ID && x.Hash == cmd.Hash:
			cmd.Expires = x.Expires
			return nil
		case x.ID == cmd.ID:
			return domain.Refuse(domain.Conflict, "join token %s exists already", cmd.ID)
		case x.Expires <= t.Now:
			expired = append(expired, x.ID)
		}
	}
	if len(t.joinTokens)-len(expired) >= JoinTokensMax {
		return domain.Refuse(domain.LimitExceeded, "%d join tokens are valid, which is the limit: the first of them expires at %s", JoinTokensMax, t.joinTokens[0].Expires.Std().Format(time.RFC3339))
	}
	if len(expired) > 0 {
		t.Emit(&JoinTokensForgotten{expired})
	}
	cmd.Expires = t.Now.Add(JoinTokenLife)
	t.Emit(&JoinTokenIssued{JoinToken{ID: cmd.ID, Hash: cmd.Hash, Expires: cmd.Expires, By: cmd.By.Cut()}})
	return nil
}

// UseJoinToken admits a node with a join token. The same node may repeat it until its join is complete, because it may have lost
// the answer.
type UseJoinToken struct {
	ID, Hash string
	Node     string
}

func (cmd *UseJoinToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Node == "" || len(cmd.Node) > nodeMax {
		return domain.Refuse(domain.Invalid, "node %.200q: want 1 to %d bytes", cmd.Node, nodeMax)
	}
	at := slices.IndexFunc(t.joinTokens, func(x JoinToken) bool { return x.ID == cmd.ID && x.Hash == cmd.Hash })
	if at < 0 || t.joinTokens[at].Expires <= t.Now {
		return domain.Refuse(domain.NotFound, "the join token is unknown, was used, or has expired; make another one with `muster cluster join-token`")
	}
	switch t.joinTokens[at].Node {
	case "":
		t.Emit(&JoinTokenUsed{cmd.ID, cmd.Node})
	case cmd.Node:
	default:
		return domain.Refuse(domain.Conflict, "the join token was used by another node; make another one with `muster cluster join-token`")
	}
	return nil
}

// VoidJoinTokens removes the tokens that a node has used, because its join is complete or it was removed from the cluster.
type VoidJoinTokens struct{ Node string }

func (cmd *VoidJoinTokens) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Node == "" || len(cmd.Node) > nodeMax {
		return domain.Refuse(domain.Invalid, "node %.200q: want 1 to %d bytes", cmd.Node, nodeMax)
	}
	var void []string
	for i := range t.joinTokens {
		if t.joinTokens[i].Node == cmd.Node {
			void = append(void, t.joinTokens[i].ID)
		}
	}
	if len(void) > 0 {
		t.Emit(&JoinTokensForgotten{void})
	}
	return nil
}

func (c *State) applyJoinToken(event kernel.Event) {
	c.Touch()
	tokens := slices.Clone(c.joinTokens) // a snapshot may share the old slice
	switch e := event.(type) {
	case *JoinTokenIssued:
		tokens = append(tokens, e.Token)
	case *JoinTokenUsed:
		for i := range tokens {
			if tokens[i].ID == e.ID {
				tokens[i].Node = e.Node
			}
		}
	case *JoinTokensForgotten:
		tokens = slices.DeleteFunc(tokens, func(x JoinToken) bool { return slices.Contains(e.IDs, x.ID) })
	}
	c.joinTokens = tokens
}

// JoinTokens returns the join tokens in the state, oldest first. They include expired ones until the next token is issued.
func (v *View) JoinTokens() []JoinToken {
	v.SawAll()
	return slices.Clone(v.c.joinTokens)
}
