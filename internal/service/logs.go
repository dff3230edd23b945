package service

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/operator"
)

// output implements operator.Output: it streams what a server process writes from its agent to operators.
func (x *Service) output(process fleet.Key, bytes, lines int, follow bool) (next func(context.Context) (string, bool, error), end func(), err error) {
	o, err := x.agents.Output(process, bytes, lines, follow)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (string, bool, error) {
		p, err := o.Next(ctx)
		return p.Text, p.Skipped, err
	}, o.Close, nil
}

// outputReaders returns the metrics of output's readers.
func (x *Service) outputReaders() prometheus.Collector {
	return gauge("muster_output_readers", "Operators who are reading the output of server processes.", func() float64 { return float64(x.agents.Stats().Readers) })
}

// agentsPath is the path at which a node answers whether an agent is connected to it; the query has the fleet and the
// compute.
const agentsPath = "/agents/connected"

// agentWait is how long other nodes may take to answer at agentsPath.
const agentWait = 3 * time.Second

// agentNodes implements operator.Nodes.
type agentNodes struct{ *requests.Net }

// otherNodes returns the other nodes of the cluster; nil without one.
func (x *Service) otherNodes() operator.Nodes {
	if x.node == nil {
		return nil
	}
	x.questions.HandleFunc("GET "+agentsPath, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); x.agents.Connected(q.Get("fleet"), q.Get("compute")) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Error(w, "no such agent is connected to this node", http.StatusNotFound)
	})
	return agentNodes{x.node.Requests()}
}

// Connected implements operator.Nodes.
func (n agentNodes) Connected(ctx context.Context, processes []fleet.Key) (node string) {
	ctx, cancel := context.WithTimeout(ctx, agentWait)
	defer cancel()
	var found sync.Mutex
	var asking sync.WaitGroup
	for _, other := range n.Others() {
		asking.Go(func() {
			for _, p := range processes {
				if n.connected(ctx, other, p) {
					found.Lock()
					node = other
					found.Unlock()
					cancel()
				}
			}
		})
	}
	asking.Wait()
	return node
}

func (n agentNodes) connected(ctx context.Context, node string, p fleet.Key) bool {
	query := url.Values{"fleet": {p.Fleet}, "compute": {p.Compute}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, requests.URL(node, agentsPath+"?"+query), nil)
	if err != nil {
		return false
	}
	answer, err := n.Do(r)
	if err != nil {
		return false // as if it had no agent: the reader gets this node's refusal
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusNoContent
}

// Forwarded implements operator.Nodes.
func (agentNodes) Forwarded(r *http.Request) bool { return requests.Forwarded(r) }
