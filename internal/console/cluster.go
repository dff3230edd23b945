package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Cluster is this service's node of a cluster.
type Cluster interface {
	// Change has the leader execute a change, and returns what the leader knows of the cluster afterwards.
	Change(ctx context.Context, c node.Change) (node.Status, error)
	// Status returns this node's view of the cluster.
	Status() node.Status
}

// Bounds of the page of the cluster.
const (
	clusterWait = 500 * time.Millisecond // for the leader's answer; without one, the page shows this node's view
	clusterLook = 4096                   // records examined in one read to count connections
)

// memberRow is a node of the cluster.
type memberRow struct {
	node.Member
	By          bool        // it answered the request
	Known       bool        // it is the leader, or the leader has heard of it
	Began       domain.Time // since when it takes connections; 0: it takes none
	GameServers int         // connected to it
	Players     int         // players of player flow who are online there
}

// State describes the node's state in one word.
func (m *memberRow) State() string {
	switch {
	case m.Missing:
		return "missing"
	case m.Copies:
		return "copies the archive"
	case m.Began != 0:
		return "present"
	case m.Known:
		return "not taking connections"
	}
	return "not known here"
}

// reported returns a figure that the leader has received from the node; none for the leader itself or a missing node.
func (m *memberRow) reported(text string) value {
	if !m.Known || m.Role == "leader" || m.Missing {
		return words("–")
	}
	return words(text)
}

// clusterView is the page of the cluster.
type clusterView struct {
	node.Status
	Single bool // there is no cluster
	Away   bool // the leader did not answer, so this is the node's own view
	Grave  bool // one more failure would stop the service, or it accepts no changes now
	Table  *table
}

// look returns the leader's view of the cluster, or this node's if no leader answers in time.
func (d *Door) look(ctx context.Context) (s node.Status, away bool) {
	ctx, cancel := context.WithTimeout(ctx, clusterWait)
	defer cancel()
	s, err := d.config.Cluster.Change(ctx, node.Change{Do: node.Look})
	here := d.config.Cluster.Status()
	if err != nil {
		return here, true
	}
	s.By = here.By // the leader has answered
	return s, false
}

// members returns the nodes of a status, with what the state knows about them.
func (d *Door) members(ctx context.Context, s *node.Status) ([]memberRow, error) {
	links, online := map[uint32]int{}, map[uint32]int{}
	for at, begun := fleet.ProcessRef(0), false; at != 0 || !begun; begun = true {
		if err := d.engine.Read(ctx, func(v *cell.View) error { at = v.CountLinks(at, clusterLook, links); return nil }); err != nil {
			return nil, err
		}
	}
	for at, begun := flow.PlayerRef(0), false; at != 0 || !begun; begun = true {
		if err := d.engine.Read(ctx, func(v *cell.View) error { at = v.CountOnline(at, clusterLook, online); return nil }); err != nil {
			return nil, err
		}
	}
	all := make([]memberRow, len(s.Members))
	err := d.engine.Read(ctx, func(v *cell.View) error {
		for i, m := range s.Members {
			all[i] = memberRow{Member: m, By: m.ID == s.By, Known: m.ID == s.Leader || m.Level > 0 || m.Silent > 0 || m.Version != ""}
			for _, n := range v.Nodes() {
				if n.Name == m.ID {
					all[i].Began, all[i].GameServers, all[i].Players = n.Began, links[n.No], online[n.No]
				}
			}
		}
		return nil
	})
	return all, err
}

var memberList = list[memberRow]{
	name: "nodes", label: "Nodes", most: 200, empty: "No node is known.",
	columns: []column[memberRow]{
		{name: "node", head: "Node", value: func(m *memberRow) value { return words(m.ID) }},
		{name: "role", head: "Role", value: func(m *memberRow) value { return state(m.Role) }},
		{name: "state", head: "State", value: func(m *memberRow) value { return state(m.State()) }},
		{name: "address", head: "Address", value: func(m *memberRow) value { return code(m.Address) }},
		{name: "behind", head: "Entries behind", value: func(m *memberRow) value {
			if m.Role != "leader" && (!m.Known || m.Missing) {
				return words("–")
			}
			return number(m.Behind)
		}},
		{name: "heard", head: "Heard", value: func(m *memberRow) value {
			if m.Missing && m.Silent > 0 {
				return words(milliseconds(m.Silent) + " ago")
			}
			return m.reported(milliseconds(m.Silent) + " ago")
		}},
		{name: "clock", head: "Clock", value: func(m *memberRow) value {
			text := milliseconds(m.Clock)
			if m.Clock > 0 {
				text = "+" + text
			}
			return m.reported(text)
		}},
		{name: "since", head: "Takes connections since", hidden: true, value: func(m *memberRow) value { return instant(m.Began) }},
		{name: "game-servers", head: "Game servers", value: func(m *memberRow) value { return number(m.GameServers) }},
		{name: "players", head: "Players online", value: func(m *memberRow) value { return number(m.Players) }},
		{name: "version", head: "Version", value: func(m *memberRow) value { return words(cmp.Or(m.Version, "–")) }},
		{name: "level", head: "Highest level", hidden: true, value: func(m *memberRow) value { return number(uint64(m.Level)) }},
		{name: "url", head: "URL", hidden: true, value: func(m *memberRow) value { return words(m.URL) }},
		{name: "no-vote", head: "Why it has no vote", hidden: true, value: func(m *memberRow) value { return words(m.NoVote) }},
	},
	id: func(m *memberRow) string { return "node-" + m.ID },
	offers: func(m *memberRow) (all []offered) {
		switch {
		case m.Role == "observer":
			all = append(all, offered{action: "promote-node", id: m.ID})
		case m.Role == "voter" && !m.Missing:
			all = append(all, offered{action: "hand-over", id: m.ID}, offered{action: "demote-node", id: m.ID})
		default:
			all = append(all, offered{action: "demote-node", id: m.ID})
		}
		return append(all, offered{action: "remove-node", id: m.ID})
	},
	rows: func(d *Door, r *http.Request, _ url.Values, _ int) ([]memberRow, url.Values, error) {
		if d.config.Cluster == nil {
			return nil, nil, nil
		}
		s, _ := d.look(r.Context())
		all, err := d.members(r.Context(), &s)
		return all, nil, err
	},
}

// milliseconds formats a duration for people: to a tenth of a second from one second on.
func milliseconds(n int64) string {
	if n > -1000 && n < 1000 {
		return strconv.FormatInt(n, 10) + " ms"
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + " s"
}

// clusterPage returns the page of the nodes. Its content also changes independently of the state, so it ticks.
func (d *Door) clusterPage(r *http.Request, t *table) (*content, error) {
	x := &clusterView{Single: d.config.Cluster == nil, Table: t}
	c := &content{Title: "Cluster", Section: "cluster", page: "cluster", Data: x, Ticks: !x.Single, Command: "muster cluster status"}
	if x.Single {
		c.Command = "muster serve --cluster-listen HOST:PORT"
		return c, nil
	}
	x.Status, x.Away = d.look(r.Context())
	voters, missing := 0, 0
	for _, m := range x.Members {
		if m.Role != "observer" {
			voters++
		}
		if m.Missing {
			missing++
		}
	}
	x.Grave = x.Away || x.Leader == "" || missing > 0 || voters < 3
	return c, nil
}
