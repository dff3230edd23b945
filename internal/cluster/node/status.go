package node

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/cluster/presence"
	"github.com/musterhq/muster/internal/cluster/trust"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// Status is a node's view of the cluster.
type Status struct {
	Cluster string   `json:"cluster"`
	By      string   `json:"by"`               // id of the node whose view it is
	Leader  string   `json:"leader,omitempty"` // id; empty: unknown
	Term    uint64   `json:"term"`
	Entry   uint64   `json:"entry"` // number of the last entry that the node knows to be committed
	Level   uint     `json:"level"` // of the journal; the leader raises it once the programs of all members know a higher one
	Members []Member `json:"members"`
	Outlook string   `json:"outlook"` // what would happen if one more node failed
}

// Member is a node of the cluster.
type Member struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Role    string `json:"role"` // leader, voter or observer

	// What the leader has heard of it; empty if nothing was heard, or in the view of another node.
	Version string   `json:"version,omitempty"`
	Level   uint     `json:"level,omitempty"` // the highest level that its program knows
	URL     string   `json:"url,omitempty"`
	Behind  uint64   `json:"behind"`              // entries that it lacked when it was last heard
	Silent  int64    `json:"silent_ms,omitempty"` // milliseconds since it was last heard
	Clock   int64    `json:"clock_off,omitempty"` // approximate lead of its clock over the leader's, in milliseconds
	Missing bool     `json:"missing,omitempty"`   // it has been silent for so long that it counts as lost
	Copies  bool     `json:"copies,omitempty"`    // its archive is incomplete, and it copies records from another node
	Short   bool     `json:"short,omitempty"`     // it is short of space, such as disk space
	NoVote  string   `json:"no_vote,omitempty"`   // why an observer has no vote, as it reports
	Differs []string `json:"differs,omitempty"`   // names of shared settings that differ from the leader's; only compared within a version, because defaults may differ between versions
}

// clockMost is how far a node's clock may be from the leader's. Reported clocks are slightly old, more so if the node is busy.
const clockMost = 5 * time.Second

// Apart is a node whose clock is far from the leader's.
type Apart struct {
	Node, Leader string
	Ahead        time.Duration // negative: its clock is behind
}

// Apart returns the nodes whose clocks are far from that of the node of the status; none if that node does not lead.
func (s *Status) Apart() (all []Apart) {
	if s.Leader != s.By {
		return nil
	}
	for i := range s.Members {
		m := &s.Members[i]
		if ahead := time.Duration(m.Clock) * time.Millisecond; ahead.Abs() > clockMost && !m.Missing {
			all = append(all, Apart{m.ID, s.By, ahead})
		}
	}
	return all
}

// Short returns the nodes that are short of space, other than the node of the status; none if that node does not lead.
func (s *Status) Short() (all []string) {
	for i := range s.Members {
		if m := &s.Members[i]; m.Short && !m.Missing && m.ID != s.By {
			all = append(all, m.ID)
		}
	}
	return all
}

// missingAfter is after how much silence the outlook counts a member as lost. Members report twice a second.
const missingAfter = 2 * time.Second

// Status returns this node's view of the cluster.
func (n *Node) Status() Status {
	at := n.journal.Status()
	s := Status{Cluster: n.data.Cluster().String(), By: at.ID, Leader: at.Leader, Term: at.Term, Entry: at.Last}
	s.Level, _ = n.engine.Level()
	if at.InOffice {
		s.Leader = at.ID
	}
	heard := map[string]presence.Present{}
	for _, p := range n.presence.Nodes() {
		if !p.Heard.IsZero() {
			heard[p.Node] = p
		}
	}
	voters, missing := 0, 0
	for _, m := range at.Members {
		x := Member{ID: m.ID, Address: m.Address, Role: role(m, s.Leader)}
		p, known := heard[m.ID]
		if known {
			x.hears(p, s.Entry)
			if p.Version == n.options.Version {
				x.Differs = differing(n.marks(), p.Marks)
			}
		}
		if m.ID == at.ID {
			x.NoVote = n.noVote()
		}
		x.Missing = at.InOffice && m.ID != at.ID && (!known || time.Since(p.Heard) > missingAfter)
		if m.Votes {
			voters++
			if x.Missing {
				missing++
			}
		}
		s.Members = append(s.Members, x)
	}
	s.Outlook = outlook(voters, missing, n.presence.Leading() <= missingAfter, s.Leader != "", n.removed(trust.NodeID(at.ID)), at.Contact) + archives(s.Members)
	return s
}

// archives names the node that must not be lost because it alone has all archived records.
func archives(members []Member) string {
	copies, whole := 0, []string{}
	for _, m := range members {
		switch {
		case m.Copies:
			copies++
		case m.Version != "" && !m.Missing:
			whole = append(whole, m.ID)
		}
	}
	if copies == 0 || len(whole) > 1 {
		return ""
	}
	if len(whole) == 0 {
		return "; no node is known that has all archived records"
	}
	return fmt.Sprintf("; %s alone has all archived records: keep it until the others have copied them", whole[0])
}

func role(m journalraft.Member, leader string) string {
	switch {
	case m.ID == leader:
		return "leader"
	case m.Votes:
		return "voter"
	}
	return "observer"
}

func (m *Member) hears(p presence.Present, entry uint64) {
	m.Version, m.Level, m.URL, m.Copies, m.Short = p.Version, p.Level, p.URL, p.Lacks, p.Short
	if m.Role == "observer" { // it may have got its vote since its last report
		m.NoVote = p.NoVote
	}
	if p.Applied < entry {
		m.Behind = entry - p.Applied
	}
	m.Silent = time.Since(p.Heard).Milliseconds()
	m.Clock = p.Clock - p.Heard.UnixMilli()
}

// wasRemoved describes the state of a node that has learnt of its removal, and what to do.
const wasRemoved = "was removed from the cluster, and cannot come back with its data: stop it, and start it with an empty data directory and a new join token if it is to join again"

// outlook describes the effect of a further failure. fresh means that the nodes may not have reported to this leader yet.
func outlook(voters, missing int, fresh, led, removed bool, contact time.Duration) string {
	spare := (voters-1)/2 - missing // how many further voters the majority can lose
	switch {
	case !led && removed:
		return "this node " + wasRemoved
	case !led:
		return "no leader is known to this node: it accepts no changes"
	case contact > readyContact:
		return fmt.Sprintf("this node has not heard of the leader for %s: it accepts no changes", contact.Round(time.Second))
	case missing > 0 && fresh:
		return fmt.Sprintf("this node has just become the leader and has not heard from %d of %d voters yet: ask again in %s", missing, voters, missingAfter)
	case missing > 0 && spare <= 0:
		return fmt.Sprintf("%d of %d voters are missing: if one more fails, the service stops; bring them back, or remove them and add others", missing, voters)
	case missing > 0:
		return fmt.Sprintf("%d of %d voters are missing: the service survives the loss of %d more", missing, voters, spare)
	case voters == 1:
		return "one node votes: if it fails, the service stops; add two more to survive the loss of one"
	case voters == 2:
		return "two nodes vote: if one fails, the service stops; add one more to survive the loss of one"
	}
	return fmt.Sprintf("%d nodes vote: the service survives the loss of %d of them", voters, spare)
}
