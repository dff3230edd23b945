// Package office begins and ends what must run at one node of a cluster at a time: the one that decides. A single node is always in office.
package office

import "sync"

// Part is work that runs only while its node decides. Lead and Rest are called in turn, any number of times, by one goroutine.
type Part interface {
	// Lead begins the work with what the state owes, when the engine decides.
	Lead()
	// Rest ends it, and returns when nothing of it runs any more. Rest without Lead does nothing. It needs no other node: it returns even while the node
	// reaches no other.
	Rest()
}

// Parts begin in their order, and end together.
type Parts []Part

// Lead begins all parts.
func (p Parts) Lead() {
	for _, part := range p {
		part.Lead()
	}
}

// Rest ends all parts.
func (p Parts) Rest() {
	var all sync.WaitGroup
	for _, part := range p {
		all.Go(part.Rest)
	}
	all.Wait()
}
