// Package ports allocates the ports on which a host's game servers listen. It tries each port over TCP and UDP before it allocates it, because
// programs that the agent did not start may use it.
package ports

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Limits of a range. The API allows game servers no other ports.
const (
	Lowest  = 1026
	Highest = 60000
)

// Rest is how long a port stays unused after its process has ended, because packets of the game's players may still arrive, and connections of the
// ended process keep the port in TIME_WAIT.
const Rest = 60 * time.Second

// Range is an inclusive range of ports.
type Range struct{ First, Last int }

// ParseRange reads a range such as 7000-7999, or a single port.
func ParseRange(text string) (Range, error) {
	first, last, found := strings.Cut(text, "-")
	if !found {
		last = first
	}
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(last)
	r := Range{a, b}
	if errA != nil || errB != nil || a < Lowest || b > Highest || a > b {
		return Range{}, fmt.Errorf("ports %q: want a range within %d-%d, such as 7000-7999", text, Lowest, Highest)
	}
	return r, nil
}

func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Len returns the number of ports in the range.
func (r Range) Len() int { return r.Last - r.First + 1 }

// Overlaps reports whether the two ranges share a port.
func (r Range) Overlaps(other Range) bool { return r.First <= other.Last && other.First <= r.Last }

// NoneError is the error if no port of the range is free.
type NoneError struct {
	Range          Range
	Taken, Resting int // used by processes of the agent; released less than Rest ago
	Busy           int // by other programs
}

func (e *NoneError) Error() string {
	return fmt.Sprintf("none of the ports %v is free: %d belong to server processes, %d rest for %v after use, %d are taken by other programs",
		e.Range, e.Taken, e.Resting, Rest, e.Busy)
}

// Pool has the ports of one range. It is not safe for concurrent use.
type Pool struct {
	ports  Range
	try    func(port int) bool
	next   int
	taken  map[int]bool
	rested map[int]time.Time // time from which each port may be used again
}

// NewPool returns the pool of a range. try reports whether a port can be listened on; if it is nil, the pool tries the port on all addresses of the
// host.
func NewPool(r Range, try func(port int) bool) *Pool {
	if try == nil {
		try = free
	}
	return &Pool{ports: r, try: try, next: r.First, taken: map[int]bool{}, rested: map[int]time.Time{}}
}

// Range returns the range of the pool.
func (p *Pool) Range() Range { return p.ports }

// Taken returns how many ports belong to processes.
func (p *Pool) Taken() int { return len(p.taken) }

// Take allocates a free port. It goes round the range, so that a port is reused as late as possible.
func (p *Pool) Take(now time.Time) (int, error) {
	none := NoneError{Range: p.ports, Taken: len(p.taken)}
	for range p.ports.Len() {
		port := p.next
		if p.next++; p.next > p.ports.Last {
			p.next = p.ports.First
		}
		switch {
		case p.taken[port]:
		case now.Before(p.rested[port]):
			none.Resting++
		case !p.try(port):
			none.Busy++
		default:
			delete(p.rested, port)
			p.taken[port] = true
			return port, nil
		}
	}
	return 0, &none
}

// Hold marks the ports of a running process as taken, also those outside the range, which an agent with other flags allocated.
func (p *Pool) Hold(ports ...int) {
	for _, port := range ports {
		p.taken[port] = true
	}
}

// Release frees the ports of an ended process, which can be reused after Rest.
func (p *Pool) Release(now time.Time, ports ...int) {
	for _, port := range ports {
		delete(p.taken, port)
		p.rested[port] = now.Add(Rest)
	}
}

// Return frees ports that were never used, such as those of a process that could not be started.
func (p *Pool) Return(ports ...int) {
	for _, port := range ports {
		delete(p.taken, port)
	}
}

// free reports whether a port can be listened on with both protocols.
func free(port int) bool {
	address := ":" + strconv.Itoa(port)
	var config net.ListenConfig
	tcp, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return false
	}
	tcp.Close()
	udp, err := config.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}
