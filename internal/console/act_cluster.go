package console

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

var clusterActions = []*action{
	clusterAction(node.HandOver, action{name: "hand-over", text: "Make it the leader", done: "The node leads the cluster."},
		"Make node ", " the leader", "No call fails: calls that arrive meanwhile wait for the new leader. The node must be present, and have a vote."),
	clusterAction(node.Promote, action{name: "promote-node", text: "Give it a vote", done: "The node has a vote."},
		"Give node ", " a vote", "The node then counts towards the majority. It must have caught up, and all voters must be present."),
	clusterAction(node.Demote, action{name: "demote-node", text: "Take its vote", done: "The node has no vote any more."},
		"Take the vote of node ", "", "It stays as an observer: it takes connections, does not count towards a majority, and asks for no vote again. A leader hands over first."),
	clusterAction(node.Remove, action{name: "remove-node", text: "Remove", done: "The node is removed from the cluster."},
		"Remove node ", "", "It leaves the cluster permanently, and cannot come back with its data: to join again it needs an empty directory. Its connections are lost, and their clients go to the other nodes. "+
			"A leader hands over before."),
}

// ClusterAction is the policy action for a change of the cluster.
const ClusterAction = "muster:Console.ChangeCluster"

// clusterAction completes an action on a node, in which the leader executes a change. The title is the node's id between before and behind.
func clusterAction(do string, a action, before, behind, effect string) *action {
	a.section, a.object, a.may, a.service = "cluster", true, identity.MayAdminister, ClusterAction
	a.prepare = func(d *Door, r *http.Request, f *form) error {
		s, m, err := d.memberNamed(r.Context(), f.ID)
		if err != nil {
			return err
		}
		f.Title, f.Effect, f.Confirm, f.Now = before+m.ID+behind, effect, m.ID, "the role "+m.Role
		if do == node.HandOver && m.Role == "leader" {
			return domain.Refuse(domain.Invalid, "Node %s leads the cluster already.", m.ID)
		}
		if m.ID == s.By && do == node.Remove {
			return domain.Refuse(domain.Invalid, "Node %s shows this page, and could neither answer nor record its removal: remove it at another node.", m.ID)
		}
		if do == node.Remove || do == node.Demote {
			f.Effect += " As it is now: " + s.Outlook + "."
		}
		return nil
	}
	a.command = func(f *form) string { return terminal("muster cluster " + do + " " + shellWord(f.ID)) }
	a.do = func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		// The leader makes the change even if the browser leaves, and only its answer says that the audit log must have it.
		if _, err := d.config.Cluster.Change(audit.Without(context.WithoutCancel(ctx)), node.Change{Do: do, Node: f.ID}); err != nil {
			return "", err
		}
		d.config.Audit.Record(ctx, "node", f.ID)
		return "cluster", nil
	}
	return &a
}

// memberNamed returns the cluster and one of its nodes.
func (d *Door) memberNamed(ctx context.Context, id string) (node.Status, node.Member, error) {
	if d.config.Cluster == nil {
		return node.Status{}, node.Member{}, domain.Refuse(domain.NotFound, "This service is a single machine: it has no nodes.")
	}
	s, _ := d.look(ctx)
	for _, m := range s.Members {
		if m.ID == id {
			return s, m, nil
		}
	}
	return s, node.Member{}, domain.Refuse(domain.NotFound, "Node %.40q is no member of the cluster.", id)
}
