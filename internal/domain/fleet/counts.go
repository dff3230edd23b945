package fleet

// Standing tells whether a running process could host a game session now, and if not, why.
type Standing uint8

// If several apply, the first one counts.
const (
	NoStanding   Standing = iota // it has ended
	Ending                       // it was asked to end
	Starting                     // it has not called ProcessReady
	Hosting                      // it hosts a game session
	Disconnected                 // its connection is lost
	ChangingOver                 // it was asked to open another connection and has not done so yet
	Spent                        // it has already hosted its one game session
	Sick                         // it is unhealthy, or silent
	Unproven                     // it is ready, and its first health report has not come
	Drained                      // available except that its compute is drained
	Free                         // it could host a game session, unless its compute is at its limit of activations
	standings
)

func (s Standing) String() string {
	return [...]string{
		"ENDED", "ENDING", "STARTING", "HOSTING", "DISCONNECTED", "CHANGING_OVER", "SPENT", "UNHEALTHY", "UNHEARD", "DRAINED", "FREE",
	}[s]
}

// Standings lists the standings of running processes.
func Standings() []Standing {
	all := make([]Standing, 0, standings-1)
	for s := Ending; s < standings; s++ {
		all = append(all, s)
	}
	return all
}

// Standing returns the standing of the process; on is its compute.
func (p *Process) Standing(on *Compute) Standing {
	switch {
	case p.State == Ended:
		return NoStanding
	case p.TerminateBy != 0:
		return Ending
	case p.State == Initialized:
		return Starting
	case p.Session != 0:
		return Hosting
	case !p.Linked:
		return Disconnected
	case p.Refreshing:
		return ChangingOver
	case p.HadSession:
		return Spent
	case p.Health == Unhealthy:
		return Sick
	case !p.Eligible():
		return Unproven
	case on.Draining():
		return Drained
	}
	return Free
}

// SiteCounts holds the counts of a fleet in one location.
type SiteCounts struct {
	Computes         int32
	ComputesReady    int32 // with processes that are ready or hosting
	ComputesWithGame int32
	Processes        int32 // ready or hosting
	Healthy          int32 // how many of these were healthy at their last report
	Idle             int32 // could host a game session now
	standing         [standings]int32
}

// Of returns the number of processes with a standing.
func (n *SiteCounts) Of(s Standing) int32 { return n.standing[s] }

// Running returns the number of running processes.
func (n *SiteCounts) Running() (all int32) {
	for _, some := range n.standing {
		all += some
	}
	return all
}

// HeldBack returns the number of processes that could host a game session but whose computes have reached the fleet's limit of
// ACTIVATING game sessions.
func (n *SiteCounts) HeldBack() int32 { return n.standing[Free] - n.Idle }

// Add adds the counts of another place.
func (n *SiteCounts) Add(m *SiteCounts) { n.add(m, 1) }

// Sub subtracts the counts of another place.
func (n *SiteCounts) Sub(m *SiteCounts) { n.add(m, -1) }

func (n *SiteCounts) add(m *SiteCounts, by int32) {
	n.Computes += by * m.Computes
	n.ComputesReady += by * m.ComputesReady
	n.ComputesWithGame += by * m.ComputesWithGame
	n.Processes += by * m.Processes
	n.Healthy += by * m.Healthy
	n.Idle += by * m.Idle
	for s := range n.standing {
		n.standing[s] += by * m.standing[s]
	}
}

// count changes the counts of a site and the sum of all sites.
func (s *State) count(at *site, by *SiteCounts) {
	at.counts.Add(by)
	s.all.Add(by)
}

// stand moves a process from one standing to another.
func (s *State) stand(at *site, from, to Standing) {
	for _, n := range []*SiteCounts{&at.counts, &s.all} {
		n.standing[from]--
		n.standing[to]++
		n.standing[NoStanding] = 0
	}
}

// SiteCounts returns the counts of a fleet in one location.
func (s *State) SiteCounts(fleet, location string) SiteCounts {
	at := s.sites[place{fleet, location}]
	if at == nil {
		return SiteCounts{}
	}
	n := at.counts
	n.Computes = int32(at.order.Len())
	return n
}

// ComputeCounts returns the counts of one compute. It reads each of its processes.
func (s *State) ComputeCounts(r ComputeRef) SiteCounts {
	c := s.Computes.Get(r)
	n := SiteCounts{Computes: 1, Processes: c.Ready, ComputesReady: min(c.Ready, 1), ComputesWithGame: min(c.Hosting, 1)}
	s.ProcessesOn(r, func(_ ProcessRef, p *Process) bool {
		if p.State != Ended {
			n.standing[p.Standing(c)]++
		}
		if p.State == ProcessReady && p.Health == Healthy {
			n.Healthy++
		}
		return true
	})
	if c.offer().open {
		n.Idle = c.idle
	}
	return n
}

// AllCounts returns the counts of all locations of all fleets.
func (s *State) AllCounts() SiteCounts {
	n := s.all
	n.Computes = int32(s.Computes.Len())
	return n
}
