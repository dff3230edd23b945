package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// authorities is the question for the certificates of the cluster's authority that a node trusts, the signing one first. If the question has a body,
// the node first replaces its authority with the one in the body.
const authorities = 'k'

// replaceAuthority gives the cluster a new authority; it runs on the leader. A certificate must not sign before every node trusts it, and must be
// trusted as long as any node signs with it. So all nodes take each of these steps before any takes the next:
//
//	old        the initial state
//	old, new   both are trusted, the old one signs
//	new, old   both are trusted, the new one signs
//	new        the old one is void
//
// At any moment, nodes are at two adjacent steps, which trust each other. An interrupted replacement (a node failed, or leadership ended) leaves the
// cluster at such a pair of steps, which is a stable state. The next replacement continues from the leader's step; from "old, new" and "new, old" it
// finishes with the same new certificate.
func (n *Node) replaceAuthority(ctx context.Context) error {
	if err := n.lockAdmission(ctx); err != nil { // no node may join meanwhile
		return err
	}
	defer n.unlockAdmission()
	n.setReplacing(true)
	defer n.setReplacing(false)
	trusted, err := n.askAuthorities(ctx, nil)
	if err != nil {
		return err
	}
	step := n.identity.Authority()
	if step.Replacing() == trust.NotReplaced {
		if step, err = step.WithNext(time.Now()); err != nil {
			return err
		}
	}
	for {
		if err := fits(step, trusted); err != nil {
			return err
		}
		if _, err = n.askAuthorities(ctx, step.PEM()); err != nil {
			return err
		}
		// Another leader that replaced the authority until a moment ago may have changed a node behind this step. Now that it has taken the step, too, it has
		// no more questions under way.
		if trusted, err = n.askAuthorities(ctx, nil); err != nil {
			return err
		}
		if err := n.took(step, trusted); err != nil {
			return err
		}
		if err := n.takeAuthority(step.PEM()); err != nil {
			return err
		}
		trusted[n.ID()] = step.Fingerprints()
		switch step.Replacing() {
		case trust.NextTrusted:
			if step, err = step.Switched(); err != nil {
				return err
			}
		case trust.NextSigns:
			step = step.Alone()
		case trust.NotReplaced:
			n.log.Info("the authority of the cluster was replaced", "fingerprint", step.Fingerprint())
			return nil
		}
	}
}

// took checks that all other nodes are at a step.
func (n *Node) took(step *trust.Authority, trusted map[string][]trust.Fingerprint) error {
	for node, has := range trusted {
		if node != n.ID() && !slices.Equal(has, step.Fingerprints()) {
			return domain.Refuse(domain.Conflict, "node %s has taken a step of another replacement of the authority; run the command again", node)
		}
	}
	return nil
}

// fits checks that nodes at a step accept nodes with the currently trusted certificates, and vice versa.
func fits(step *trust.Authority, trusted map[string][]trust.Fingerprint) error {
	next := step.Fingerprints()
	for node, has := range trusted {
		if !slices.Contains(next, has[0]) || !slices.Contains(has, next[0]) {
			return domain.Refuse(domain.Conflict, "node %s has another authority than the leader; remove it from the cluster, and let it join empty", node)
		}
	}
	return nil
}

// askAuthorities asks all members which certificates they trust, after they have stored the authority in store, if any. All members must answer.
func (n *Node) askAuthorities(ctx context.Context, store []byte) (map[string][]trust.Fingerprint, error) {
	trusted := map[string][]trust.Fingerprint{}
	var errs []error
	var lock sync.Mutex
	var asking sync.WaitGroup
	for _, m := range n.members() {
		asking.Go(func() {
			has, err := n.askAuthority(ctx, m, store)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				errs = append(errs, domain.Refuse(domain.Conflict, "the authority can be replaced only while all nodes run, but node %s does not take part: %v; start it, or remove it from the cluster, and run the command again", m.ID, err))
				return
			}
			trusted[m.ID] = has
		})
	}
	asking.Wait()
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return trusted, nil
}

// authorityWait is how long one member has to answer.
const authorityWait = 2 * time.Second

func (n *Node) askAuthority(ctx context.Context, m journalraft.Member, store []byte) (has []trust.Fingerprint, err error) {
	if m.ID == n.ID() {
		return n.identity.Authority().Fingerprints(), nil // this node stores it last: see replaceAuthority
	}
	ctx, cancel := context.WithTimeout(ctx, authorityWait)
	defer cancel()
	conn, err := n.dial(ctx, m.Address, m.ID)
	if err != nil {
		return nil, err
	}
	c := exchange.NewClient(conn)
	defer c.Close()
	answer, err := c.AskFor(ctx, authorities, store)
	if err != nil {
		return nil, err
	}
	if err = json.Unmarshal(answer, &has); err == nil && len(has) == 0 {
		err = errors.New("the answer names no authority")
	}
	return has, err
}

// voidAfter is how long connections stay open whose peer presented a certificate that is now void. One of them carries the answer to the caller that
// requested the replacement.
const voidAfter = time.Second

// setReplacing records whether this node replaces the authority of the cluster. Afterwards no step of another leader is in progress here.
func (n *Node) setReplacing(is bool) {
	n.taking.Lock()
	defer n.taking.Unlock()
	n.replacing = is
}

// answerAuthorities answers the leader's question. A node that replaces the authority itself takes no steps of another leader: of two leaders that
// follow each other, both might otherwise complete a step with their own new certificate, and leave nodes behind that do not trust each other. Since
// each needs the other, neither gets beyond the step that all nodes have taken.
func (n *Node) answerAuthorities(ctx context.Context, store []byte) ([]byte, error) {
	n.taking.Lock()
	defer n.taking.Unlock()
	if err := ctx.Err(); err != nil { // the leader has given up meanwhile, and the next replacement may have begun
		return nil, err
	}
	if len(store) > 0 {
		if n.replacing {
			return nil, domain.Refuse(domain.Conflict, "this node is replacing the authority, too")
		}
		if err := n.take(store); err != nil {
			return nil, err
		}
	}
	return json.Marshal(n.identity.Authority().Fingerprints())
}

// takeAuthority takes a step of this node's own replacement.
func (n *Node) takeAuthority(store []byte) error {
	n.taking.Lock()
	defer n.taking.Unlock()
	return n.take(store)
}

// take stores an authority and uses it; n.taking is locked.
func (n *Node) take(store []byte) error {
	own := n.identity.Authority()
	if bytes.Equal(store, own.PEM()) {
		return nil
	}
	next, err := trust.Parse(store, n.data.Cluster())
	if err == nil {
		err = fits(next, map[string][]trust.Fingerprint{n.ID(): own.Fingerprints()})
	}
	if err == nil {
		err = next.Save(n.options.Data.Dir, n.options.Data.Key)
	}
	if err == nil {
		err = n.identity.Use(next)
	}
	if err != nil {
		return errors.Join(errors.New("take over the authority of the cluster"), err)
	}
	if next.Replacing() == trust.NotReplaced { // the other steps make no certificate void
		n.work.Go(func() {
			if n.pause(voidAfter) {
				n.link.CloseUntrusted()
			}
		})
	}
	return nil
}
