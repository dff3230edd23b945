package agones

import "sync"

// Target is where a host's server processes connect to the service, and as which compute.
type Target struct{ URL, Fleet, Compute, Token string }

// Service has the current target, which the agent sets and renews. The zero Service has none yet.
type Service struct {
	mu      sync.Mutex
	target  Target
	changed chan struct{} // closed when another target is set
}

// Set replaces the target.
func (s *Service) Set(t Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(t)
}

// renew replaces the target if it is the same compute.
func (s *Service) renew(t Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target.Fleet == t.Fleet && s.target.Compute == t.Compute {
		s.set(t)
	}
}

func (s *Service) set(t Target) {
	s.target = t
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// get returns the target, and a channel that is closed when another one is set.
func (s *Service) get() (Target, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.target, s.changed
}
