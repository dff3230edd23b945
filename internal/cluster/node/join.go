package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
)

// joinRequest is the request of a joining node. The connection authenticates the member; the token authenticates the node.
type joinRequest struct {
	Token   string `json:"token"`  // its id
	Secret  string `json:"secret"` // of the token
	Node    string `json:"node"`
	Address string `json:"address"` // address for the other members
	Level   uint   `json:"level"`   // the highest level of the journal's events that its program knows
}

type joinAnswer struct {
	Refused   string    `json:"refused,omitempty"` // the reason; all other fields are then empty
	Cluster   uuid.UUID `json:"cluster,omitzero"`
	Authority []byte    `json:"authority,omitempty"`
	Secret    string    `json:"secret,omitempty"` // the cell's secret
}

// askToJoin asks the members named in a token to admit this node.
func (n *Node) askToJoin(ctx context.Context, token trust.Token, id, address string) (uuid.UUID, identity.CellSecret, error) {
	fail := func(err error) (uuid.UUID, identity.CellSecret, error) { return uuid.Nil, identity.CellSecret{}, err }
	request, err := json.Marshal(joinRequest{Token: token.ID, Secret: token.Secret.Text(), Node: id, Address: address, Level: cell.New(cell.DefaultConfig()).KnownLevel()})
	if err != nil {
		return fail(err)
	}
	n.log.Info("joining the cluster", "node", id, "address", address, "members", token.Addresses)
	content, err := link.Join(ctx, token, nil, request)
	if err != nil {
		return fail(err)
	}
	var answer joinAnswer
	if err := json.Unmarshal(content, &answer); err != nil {
		return fail(fmt.Errorf("join the cluster: the answer of the member: %w", err))
	}
	if answer.Refused != "" {
		return fail(fmt.Errorf("join the cluster: refused: %s", answer.Refused))
	}
	authority, err := trust.Parse(answer.Authority, answer.Cluster)
	if err != nil {
		return fail(err)
	}
	secret, err := identity.ParseCellSecret(answer.Secret)
	if err != nil {
		return fail(err)
	}
	return answer.Cluster, secret, authority.Save(n.options.Data.Dir, n.options.Data.Key)
}

// answerJoin admits a node. The same node may repeat its request with the same token.
func (n *Node) answerJoin(ctx context.Context, from netip.Addr, content []byte) ([]byte, error) {
	if !n.running.Load() {
		return nil, errors.New("the node is still starting")
	}
	var request joinRequest
	if err := json.Unmarshal(content, &request); err != nil {
		return nil, err
	}
	var answer joinAnswer
	if err := n.admit(ctx, from, request); err != nil {
		refusal, ok := errors.AsType[*domain.Refusal](err)
		if !ok {
			return nil, err
		}
		if write, left := n.refusals.Note(time.Now()); write {
			n.log.Warn("a node was refused", "node", fmt.Sprintf("%.80q", request.Node), "from", from.String(), "reason", refusal.Detail, "unlogged", left)
		}
		answer = joinAnswer{Refused: refusal.Detail}
	} else {
		// Read only now: until the node was added, the authority could be replaced; from now on, that needs the node itself.
		answer = joinAnswer{Cluster: n.data.Cluster(), Authority: n.identity.Authority().PEM(), Secret: n.data.Secret.Text()}
		n.log.Info("a node was admitted to the cluster", "node", request.Node, "address", request.Address, "from", from.String())
	}
	return json.Marshal(answer)
}

func (n *Node) admit(ctx context.Context, from netip.Addr, r joinRequest) error {
	secret, err := trust.ParseSecret(r.Secret)
	if err == nil {
		err = trust.NodeID(r.Node).Check()
	}
	if err == nil {
		err = trust.CheckAddress(r.Address)
	}
	if err != nil {
		return domain.Refuse(domain.Invalid, "%v", err)
	}
	if inForce, _ := n.engine.Level(); r.Level < inForce {
		return domain.Refuse(domain.Conflict, "the data of the cluster is at level %d, and the program of the node knows levels up to %d: start a later release on it", inForce, r.Level)
	}
	recorded := audit.With(ctx, audit.Origin{Principal: "join token " + r.Token, Door: audit.DoorCluster, Address: from.String(), Operation: "join"})
	if err := n.engine.Do(recorded, &access.UseJoinToken{ID: r.Token, Hash: hashText(secret), Node: r.Node}); err != nil {
		return err
	}
	_, err = n.Change(ctx, Change{Do: Add, Node: r.Node, Address: r.Address, Token: r.Token})
	return err
}

// add adds a node, unless its token has been voided since it was used, because the node may have been removed meanwhile.
func (n *Node) add(ctx context.Context, c Change) error {
	if err := n.lockAdmission(ctx); err != nil {
		return err
	}
	defer n.unlockAdmission()
	valid := false
	err := n.engine.Read(ctx, func(v *cell.View) error {
		valid = slices.ContainsFunc(v.JoinTokens(), func(x access.JoinToken) bool { return x.ID == c.Token && x.Node == c.Node })
		return nil
	})
	switch {
	case err != nil:
		return err
	case !valid:
		return domain.Refuse(domain.Conflict, "node %s was removed from the cluster while it joined; make another token with `muster cluster join-token`", c.Node)
	}
	return n.journal.AddObserver(ctx, c.Node, c.Address)
}

// remove removes a node permanently. It first voids the tokens that the node used, so that none of them admits it again.
func (n *Node) remove(ctx context.Context, id string) error {
	if err := n.lockAdmission(ctx); err != nil {
		return err
	}
	defer n.unlockAdmission()
	if err := n.engine.Do(ctx, &access.VoidJoinTokens{Node: id}); err != nil {
		return err
	}
	return n.journal.Remove(ctx, id)
}

// lockAdmission serializes the adding and removing of nodes by this node.
func (n *Node) lockAdmission(ctx context.Context) error {
	select {
	case n.admission <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *Node) unlockAdmission() { <-n.admission }

// voidTokens voids the token with which this node joined. The node has stored the authority and the secret, and no longer needs
// the token.
func (n *Node) voidTokens() {
	used := false
	_ = n.engine.ReadHere(n.ctx, func(v *cell.View) error {
		used = slices.ContainsFunc(v.JoinTokens(), func(x access.JoinToken) bool { return x.Node == n.ID() })
		return nil
	})
	for used && n.engine.Do(n.ctx, &access.VoidJoinTokens{Node: n.ID()}) != nil {
		if !n.pause(settleEvery) {
			return
		}
	}
}

func hashText(s trust.Secret) string {
	h := s.Hash()
	return hex.EncodeToString(h[:])
}

// NewJoinToken makes a token with which one node may join the cluster within the next hour.
func (n *Node) NewJoinToken(ctx context.Context, by access.Actor) (text string, err error) {
	addresses := []string{n.link.Advertised()}
	for _, m := range n.members() {
		if m.ID != n.ID() && len(addresses) < 8 {
			addresses = append(addresses, m.Address)
		}
	}
	token, err := trust.NewToken(n.identity.Authority(), addresses...)
	if err != nil {
		return "", err
	}
	if err := n.engine.Do(ctx, &access.IssueJoinToken{ID: token.ID, Hash: hashText(token.Secret), By: by}); err != nil {
		return "", err
	}
	n.log.Info("join token issued", "token", token.ID, "principal", by.Principal)
	return token.Text(), nil
}
