package localdoor

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
)

// Cluster is the service's node in a cluster.
type Cluster interface {
	NewJoinToken(ctx context.Context, by access.Actor) (text string, err error)
	Change(ctx context.Context, c node.Change) (node.Status, error)
	Status() node.Status
}

const (
	joinTokenPath = "/v1/cluster/join-token"
	changePath    = "/v1/cluster/change"
	statusPath    = "/v1/cluster/status"
)

type changeRequest struct {
	node.Change
	sender
}

type joinTokenAnswer struct {
	Token string `json:"token"`
}

func (d *Door) clusterPaths(mux *http.ServeMux) {
	mux.HandleFunc("POST "+joinTokenPath, d.wrap(d.joinToken))
	mux.HandleFunc("POST "+changePath, d.wrap(d.change))
	mux.HandleFunc("POST "+statusPath, d.wrap(d.status))
}

func (d *Door) cluster() (Cluster, error) {
	if d.config.Cluster == nil {
		return nil, domain.Refuse(domain.Conflict, "this service is a single machine; `muster serve --cluster-listen HOST:PORT` makes it the first node of a cluster")
	}
	return d.config.Cluster, nil
}

func (d *Door) joinToken(r *http.Request, body []byte) (any, error) {
	c, err := d.cluster()
	if err != nil {
		return nil, err
	}
	return changing(d, "cluster join-token", func(ctx context.Context, by access.Actor, _ *sender) (any, error) {
		text, err := c.NewJoinToken(ctx, by)
		return joinTokenAnswer{text}, err
	})(r, body)
}

func (d *Door) change(r *http.Request, body []byte) (any, error) {
	in, err := read[changeRequest](body)
	if err != nil {
		return nil, err
	}
	c, err := d.cluster()
	if err != nil {
		return nil, err
	}
	d.config.Log.Info("a change of the cluster was asked for", "change", in.Do, "node", in.Node, "principal", Principal(in.User))
	ctx, err := recorded(r, byUser(r, in.User), "cluster "+in.Do, in.Reason)
	if err != nil {
		return nil, err
	}
	// The leader makes the change even if the command is interrupted, and only its answer says that the audit log must have it.
	s, err := c.Change(audit.Without(context.WithoutCancel(ctx)), in.Change)
	d.config.Audit.Refused(ctx, err)
	if err == nil && in.Do != node.Look {
		d.config.Audit.Record(ctx, "node", in.Node)
	}
	return s, err
}

// status returns the leader's view of the cluster, or this node's if no leader can be reached.
func (d *Door) status(r *http.Request, _ []byte) (any, error) {
	c, err := d.cluster()
	if err != nil {
		return nil, err
	}
	if s, err := c.Change(r.Context(), node.Change{Do: node.Look}); err == nil {
		return s, nil
	}
	return c.Status(), nil
}

// JoinToken makes a token with which one node may join the cluster within the next hour.
func (c *Client) JoinToken(ctx context.Context) (text string, err error) {
	var answer joinTokenAnswer
	err = c.call(ctx, joinTokenPath, c.sender(), &answer)
	return answer.Token, err
}

// ChangeCluster changes the members of the cluster or its leader, and returns the resulting status.
func (c *Client) ChangeCluster(ctx context.Context, change node.Change) (s node.Status, err error) {
	err = c.call(ctx, changePath, changeRequest{change, c.sender()}, &s)
	return s, err
}

// ClusterStatus returns the leader's view of the cluster, or this node's if no leader can be reached.
func (c *Client) ClusterStatus(ctx context.Context) (s node.Status, err error) {
	err = c.call(ctx, statusPath, c.sender(), &s)
	return s, err
}
