package playerflow

import (
	"github.com/musterhq/muster/internal/domain/kernel"
)

const (
	contact = kernel.Wait(Room) * kernel.WaitsOfRoom
	wall    = kernel.FirstWall + contact
)

// Contact deadlines, named by what they wait for.
const (
	PlayerPresence     = contact + iota // a player's client
	PartyRemoval                        // an offline member's removal from the party
	QueueRemoval                        // removal from the queue of an offline player's party
	PartyLeader                         // a new leader, because the party's leader is offline
	PartyStale                          // the end of a party whose members are all offline
	PartyReady                          // the end of members' readiness while the party does not search
	InviteExpiry                        // an invited player's answer; later the removal of the expired invite
	LoginExpiry                         // a login session's next sign of life; later the removal of a replaced one
	InstanceAllocation                  // a game instance's host
	InstanceAbsolute                    // a game instance's end in any case
	InstanceEnding                      // a game instance's end after its host was asked to end
	InstanceEmpty                       // a player in a game instance without members
	InstanceKeepAlive                   // its server's next sign of life
	SeatHold                            // a player's return to a kept seat
	StudioReceivers                     // receivers of the studio's subscriptions; one deadline for the first to lapse
)

// Wall deadlines.
const (
	QueueDrain     = wall + iota // the end of a closed queue's searches
	QueueEstimate                // the next message about the expected wait in a queue
	PlayerAge                    // the removal of records of an absent player
	InstanceForget               // the removal of an ended game instance
	LoginTicketAge               // the expiry of an unused login ticket
	PlayerUnlock                 // the end of a lock that keeps a player from searching
)

// Due handles a deadline that has passed.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	if d.Kind < kernel.FirstWall {
		t.contactDue(d)
		return false
	}
	t.wallDue(d)
	return d.Kind == QueueDrain || d.Kind == QueueEstimate // as much work as ending a host with all its processes and players
}
