package node

import (
	"github.com/prometheus/client_golang/prometheus"

	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

var (
	leadsDesc   = prometheus.NewDesc("muster_cluster_leads", "1 at the node that leads, 0 at others.", nil, nil)
	readyDesc   = prometheus.NewDesc("muster_cluster_ready", "1 while clients should use this node.", nil, nil)
	termDesc    = prometheus.NewDesc("muster_cluster_term", "Term of Raft that this node knows; it grows with each election.", nil, nil)
	entryDesc   = prometheus.NewDesc("muster_cluster_entry", "Number of the last journal entry that this node knows to be committed.", nil, nil)
	appliedDesc = prometheus.NewDesc("muster_cluster_applied_entry", "Number of the last journal entry that this node has applied.", nil, nil)
	contactDesc = prometheus.NewDesc("muster_cluster_contact_seconds", "Time since this node has heard of the leader; 0 at the leader.", nil, nil)
	levelDesc   = prometheus.NewDesc("muster_cluster_level", "Level of the journal's events in force.", nil, nil)
	membersDesc = prometheus.NewDesc("muster_cluster_members", "Members by role, as this node knows them.", []string{"role"}, nil)
	missingDesc = prometheus.NewDesc("muster_cluster_members_missing", "Members that the leader has not heard for two seconds; only at the leader.", nil, nil)
	behindDesc  = prometheus.NewDesc("muster_cluster_behind_entries", "Entries that a member lacked when the leader last heard of it; only at the leader.", []string{"node"}, nil)
)

// Describe implements prometheus.Collector.
func (n *Node) Describe(to chan<- *prometheus.Desc) {
	n.link.Describe(to)
	for _, d := range []*prometheus.Desc{leadsDesc, readyDesc, termDesc, entryDesc, appliedDesc, contactDesc, levelDesc, membersDesc, missingDesc, behindDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (n *Node) Collect(to chan<- prometheus.Metric) {
	n.link.Collect(to)
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	flag := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	at, s := n.journal.Status(), n.Status()
	leads := at.Role == journalraft.Leader && at.InOffice
	gauge(leadsDesc, flag(leads))
	gauge(readyDesc, flag(n.Ready() == nil))
	gauge(termDesc, float64(at.Term))
	gauge(entryDesc, float64(at.Last))
	gauge(appliedDesc, float64(n.engine.Applied()))
	gauge(contactDesc, at.Contact.Seconds())
	gauge(levelDesc, float64(s.Level))
	roles, missing := map[string]int{"leader": 0, "voter": 0, "observer": 0}, 0
	for _, m := range s.Members {
		roles[m.Role]++
		if m.Missing {
			missing++
		}
		if leads && m.ID != at.ID && !m.Missing {
			gauge(behindDesc, float64(m.Behind), m.ID)
		}
	}
	for role, count := range roles {
		gauge(membersDesc, float64(count), role)
	}
	if leads {
		gauge(missingDesc, float64(missing))
	}
}
