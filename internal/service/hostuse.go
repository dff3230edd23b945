package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/gamemetrics"
)

const (
	// usesPath is the path at which a node answers how much the hosts of its agents use.
	usesPath  = "/agents/uses"
	usesEvery = 15 * time.Second
	usesWait  = 3 * time.Second
	usesMax   = 16 << 20 // bytes of an answer: 10,000 hosts need less
)

// hostUses has the last measurements that agents sent of their hosts: of the agents that are connected here and, in a cluster, of those that were
// connected to the other nodes a moment ago. So every node exposes the same metrics.
type hostUses struct {
	agents atomic.Pointer[agentlink.Server] // nil until the doors are open

	mu     sync.Mutex
	others map[string][]gamemetrics.HostUse // by node
}

// here returns the hosts whose agents are connected to this node.
func (u *hostUses) here() []gamemetrics.HostUse {
	all := []gamemetrics.HostUse{} // a list in JSON, not null
	agents := u.agents.Load()
	if agents == nil {
		return all
	}
	for _, r := range agents.Reports() {
		m := r.Metrics
		if m == nil || m.MemoryTotalBytes == 0 || r.Fleet == "" { // the official agent, one that cannot measure, or one that serves no fleet
			continue
		}
		all = append(all, gamemetrics.HostUse{
			Fleet: r.Fleet, Compute: r.Compute, CPUPercent: min(100, m.CPUPercent), MemoryPercent: min(100, 100*float64(m.MemoryUsedBytes)/float64(m.MemoryTotalBytes)),
			NetworkIn: m.NetworkInBytes, NetworkOut: m.NetworkOutBytes, DiskRead: m.DiskReadBytes, DiskWritten: m.DiskWriteBytes, DiskReads: m.DiskReadOps, DiskWrites: m.DiskWriteOps,
		})
	}
	return all
}

// all returns the hosts of all nodes, each once.
func (u *hostUses) all() []gamemetrics.HostUse {
	all := u.here()
	known := map[[2]string]bool{}
	for _, h := range all {
		known[[2]string{h.Fleet, h.Compute}] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, some := range u.others {
		for _, h := range some {
			if of := [2]string{h.Fleet, h.Compute}; !known[of] {
				known[of] = true
				all = append(all, h)
			}
		}
	}
	return all
}

// gatherUses asks the other nodes for the measurements of their hosts, until ctx ends.
func (x *Service) gatherUses(ctx context.Context) {
	x.uses.agents.Store(x.agents)
	if x.node == nil {
		return
	}
	x.questions.HandleFunc("GET "+usesPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(x.uses.here()) // if the asking node has gone, it asks again later
	})
	x.sweeping.Go(func() {
		again := time.NewTicker(usesEvery)
		defer again.Stop()
		for {
			x.uses.gather(ctx, x.node.Requests())
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

func (u *hostUses) gather(ctx context.Context, nodes *requests.Net) {
	ctx, cancel := context.WithTimeout(ctx, usesWait)
	defer cancel()
	now := map[string][]gamemetrics.HostUse{}
	var lock sync.Mutex
	var asking sync.WaitGroup
	for _, node := range nodes.Others() {
		asking.Go(func() {
			some, err := askUses(ctx, nodes, node)
			if err != nil {
				return // its hosts have no values for a while; if it is gone, they connect to another node
			}
			lock.Lock()
			defer lock.Unlock()
			now[node] = some
		})
	}
	asking.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.others = now
}

func askUses(ctx context.Context, nodes *requests.Net, node string) (some []gamemetrics.HostUse, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, requests.URL(node, usesPath), nil)
	if err != nil {
		return nil, err
	}
	answer, err := nodes.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, usesMax)).Decode(&some)
	return some, err
}
