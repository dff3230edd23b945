package playerflow

import (
	"github.com/musterhq/muster/internal/domain/kernel"
)

const (
	contact = kernel.Wait(Room) * kernel.WaitsOfRoom
	wall    = kernel.FirstWall + contact
)

// Contact deadlines.
const (
	PlayerPresence     = contact + iota // a player's client
	PartyRemoval                        // a member of a party who is offline
	QueueRemoval                        // the party of a player who is offline, in the queue
	PartyLeader                         // a party's leader who is offline
	PartyStale                          // a party whose members are all offline
	PartyReady                          // a party whose members are ready, and do not search
	InviteExpiry                        // an invited player's answer; then the memory of the invite
	LoginExpiry                         // a login session's next sign of life; then the memory of it
	InstanceAllocation                  // a game instance's host
	InstanceAbsolute                    // its end, whatever happens
	InstanceEnding                      // its end, after its host was told to end
	InstanceEmpty                       // a player, while it has no members
	InstanceKeepAlive                   // its server's next sign of life
	SeatHold                            // a player's return to a kept seat
	StudioReceivers                     // the receivers of the studio's subscriptions; all in one, for the first of them
)

// Wall deadlines.
const (
	QueueDrain     = wall + iota // a closed queue's searches
	QueueEstimate                // those who search in a queue, to be told how long it takes now
	PlayerAge                    // what is remembered of a player who is away
	InstanceForget               // an ended game instance
	LoginTicketAge               // an unused login ticket
	PlayerUnlock                 // a lock that keeps a player from searching
)

// Due ends what d waits for.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	if d.Kind < kernel.FirstWall {
		t.contactDue(d)
		return false
	}
	t.wallDue(d)
	return d.Kind == QueueDrain || d.Kind == QueueEstimate // as much as a host with all its processes and players
}
